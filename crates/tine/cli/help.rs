//! The list of commands in `tine --help`.

use clap::Command;
use std::fmt::Write as _;

/// The commands by what they are for. What stands in no group comes last.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Run", &["run", "resume", "threads"]),
    ("Write graphs", &["init", "validate", "explain", "show"]),
    ("Look into a setup", &["doctor", "tools"]),
    ("Set up a shell", &["completions", "man"]),
];

/// Gives the command a help text that lists its commands in groups.
pub(super) fn grouped(command: Command) -> Command {
    let list = list(&command);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\n{{options}}{{after-help}}"
    );
    command.help_template(template.replace("{options}", "Options:\n{options}"))
}

fn list(command: &Command) -> String {
    let commands: Vec<(&str, String)> = command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
        .map(|inner| {
            let about = inner.get_about().map(ToString::to_string);
            (inner.get_name(), about.unwrap_or_default())
        })
        .collect();
    let width = commands.iter().map(|(name, _)| name.len()).max();
    let width = width.unwrap_or_default();
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let mut list = String::new();
    let mut group = |title: &str, names: &[&str]| {
        let _ = writeln!(list, "{title}:");
        for name in names {
            if let Some((_, about)) = commands.iter().find(|(known, _)| known == name) {
                let _ = writeln!(list, "  {name:width$}  {about}");
            }
        }
        list.push('\n');
    };
    for (title, names) in GROUPS {
        group(title, names);
    }
    let mut others: Vec<&str> = commands.iter().map(|(name, _)| *name).collect();
    others.retain(|name| !grouped(name));
    if !others.is_empty() {
        group("More", &others);
    }
    list.push_str("`tine help COMMAND` says more about each.\n");
    list
}
