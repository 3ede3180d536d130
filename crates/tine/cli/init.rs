//! `tine init`

use super::Cx;
use super::failure::Failure;
use super::output::Tone;
use super::status::Status;
use super::terminal::line::quoted;
use clap::Args;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes a small project to start from
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// The folder, made if it is missing
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine init
  tine init my-agent && cd my-agent && tine run graphs/agent.yaml \"remember the milk\"

The project runs as it is, with a scripted model: no key, no network. Nothing is overwritten.";

/// One file of the project.
struct File {
    path: &'static str,
    text: &'static str,
    /// Whether the project does without it, so that one that is there may stay.
    optional: bool,
}

const FILES: [File; 5] = [
    File {
        path: "graphs/agent.yaml",
        text: include_str!("init/project/graphs/agent.yaml"),
        optional: false,
    },
    File {
        path: "graphs/agent.script.yaml",
        text: include_str!("init/project/graphs/agent.script.yaml"),
        optional: false,
    },
    File {
        path: "config/config.yaml",
        text: include_str!("init/project/config/config.yaml"),
        optional: false,
    },
    File {
        path: "README.md",
        text: include_str!("init/project/README.md"),
        optional: true,
    },
    File {
        path: ".gitignore",
        text: include_str!("init/project/gitignore"),
        optional: true,
    },
];

pub(crate) fn init(cx: &mut Cx, args: &InitArgs) -> Result<Status, Failure> {
    let folder = &args.folder;
    let shown = folder.display().to_string();
    let there = |file: &File| folder.join(file.path).symlink_metadata().is_ok();
    let in_the_way: Vec<&str> = FILES
        .iter()
        .filter(|file| !file.optional && there(file))
        .map(|file| file.path)
        .collect();
    if !in_the_way.is_empty() {
        return Err(Failure::usage(format!(
            "{} in {shown} would be overwritten; nothing was written",
            in_the_way.join(", ")
        ))
        .hint("move them away, or name another folder: `tine init DIR`"));
    }
    for file in &FILES {
        let path = folder.join(file.path);
        if file.optional && there(file) {
            let advice = match file.path {
                ".gitignore" => "; `.tine/` belongs in it",
                _ => "",
            };
            let kept = cx.stdout.paint(Tone::Hint, "kept");
            cx.stdout
                .line(&format!("{kept}   {}{advice}", path.display()));
            continue;
        }
        write(&path, file.text).map_err(|error| {
            Failure::usage(format!("{} can not be written: {error}", path.display()))
                .hint("what was written before it stays; name a folder that can be written to")
        })?;
        let wrote = cx.stdout.paint(Tone::Good, "wrote");
        cx.stdout.line(&format!("{wrote}  {}", path.display()));
    }
    cx.stdout.line("\nnext");
    if folder != Path::new(".") {
        cx.stdout.line(&format!("  cd {}", quoted(&shown)));
    }
    cx.stdout.line("  tine validate graphs/*.yaml");
    cx.stdout
        .line("  tine run graphs/agent.yaml \"remember the milk\"");
    Ok(Status::Done)
}

/// Writes a new file. One that came to be in the meantime stays as it is.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = std::fs::File::create_new(path)?;
    file.write_all(text.as_bytes())
}
