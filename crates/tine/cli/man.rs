//! `tine man`

use super::Cx;
use super::failure::Failure;
use super::status::Status;
use clap::{Args, Command};
use clap_mangen::Man;
use std::io;
use std::path::{Path, PathBuf};

/// Prints the manual page, or writes the pages of all commands into a folder
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// The folder for the pages: tine.1, tine-run.1, ...
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

const EXAMPLES: &str = "\
EXAMPLES
  tine man | man -l -
  tine man ~/.local/share/man/man1 && man tine-run";

pub(crate) fn man(cx: &mut Cx, args: &ManArgs) -> Result<Status, Failure> {
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.folder else {
        let page = page(&command, "tine").map_err(|error| unwritable(Path::new("-"), &error))?;
        cx.stdout.write(&page);
        return Ok(Status::Done);
    };
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let mut open = vec![(command.clone(), "tine".to_owned())];
    while let Some((command, name)) = open.pop() {
        let path = folder.join(format!("{name}.1"));
        let written = page(&command, &name).and_then(|page| std::fs::write(&path, page));
        written.map_err(|error| unwritable(&path, &error))?;
        cx.stdout.line(&path.display().to_string());
        let inner = command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set());
        let mut inner: Vec<_> = inner
            .map(|inner| (inner.clone(), format!("{name}-{}", inner.get_name())))
            .collect();
        inner.reverse();
        open.extend(inner);
    }
    Ok(Status::Done)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("{} can not be written: {error}", path.display()))
        .hint("name a folder that can be written to: `tine man DIR`")
}

/// One page. What help says after the options stands in it line by line: these are commands to copy.
fn page(command: &Command, name: &str) -> io::Result<String> {
    let after = command.get_after_help().map(ToString::to_string);
    let man = Man::new(command.clone().display_name(name.to_owned()))
        .title(name.to_uppercase())
        .source(concat!("tine ", env!("CARGO_PKG_VERSION")))
        .manual("Manual of tine");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8_lossy(&page).into_owned();
    if let Some(after) = after {
        let mut open = false;
        for line in after.lines() {
            let is_title =
                !line.is_empty() && line.chars().all(|c| c.is_ascii_uppercase() || c == ' ');
            if is_title && !line.starts_with(' ') {
                close(&mut page, &mut open);
                page.push_str(&format!(".SH {line}\n"));
            } else {
                if !open {
                    page.push_str(".nf\n");
                    open = true;
                }
                page.push_str(&escaped(line.strip_prefix("  ").unwrap_or(line)));
                page.push('\n');
            }
        }
        close(&mut page, &mut open);
    }
    let mut rest = Vec::new();
    man.render_version_section(&mut rest)?;
    page.push_str(&String::from_utf8_lossy(&rest));
    Ok(page)
}

fn close(page: &mut String, open: &mut bool) {
    if std::mem::take(open) {
        page.push_str(".fi\n");
    }
}

/// A line as roff shows it unchanged.
fn escaped(line: &str) -> String {
    let line = line
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq");
    match line.starts_with('.') {
        true => format!("\\&{line}"),
        false => line,
    }
}
