//! Help.

use crate::command::Desk;

/// The words of every command, of `tine` itself none.
fn commands(desk: &Desk) -> Vec<Vec<String>> {
    let pages = desk.tine(&["man", "pages"]).stdout;
    let names = pages.lines().map(|page| {
        let name = page.strip_prefix("pages/tine").unwrap();
        let words = name.strip_suffix(".1").unwrap().split('-');
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    });
    names.collect()
}

#[test]
fn every_command_has_help_with_examples() {
    let desk = Desk::new();
    let commands = commands(&desk);
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut name = vec!["help"];
        name.extend(&args);
        let name = name.join("_");
        args.push("--help");
        let ran = desk.tine(&args);
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.stderr);
        assert!(
            ran.stdout.contains("EXAMPLES\n  tine "),
            "{command:?}: {}",
            ran.stdout
        );
        assert!(ran.stderr.is_empty());
        // `tine help X` is the same as `tine X --help`.
        let mut other = vec!["help"];
        other.extend(command.iter().map(String::as_str));
        assert_eq!(desk.tine(&other).stdout, ran.stdout, "{command:?}");
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, ran.stdout);
        });
    }
}

#[test]
fn every_command_stands_in_a_group() {
    let help = Desk::new().tine(&["--help"]).stdout;
    assert!(!help.contains("\nMore:\n"), "{help}");
}

#[test]
fn a_wrong_command_is_a_usage_error() {
    let desk = Desk::new();
    for args in [
        &[][..],
        &["rnu"],
        &["run"],
        &["run", "g.yaml", "--max-steps", "0"],
    ] {
        let ran = desk.tine(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{args:?}");
    }
}
