//! Help.

use crate::command::Desk;

#[test]
fn every_command_has_help_with_examples() {
    let desk = Desk::new();
    for command in [
        &[][..],
        &["run"],
        &["resume"],
        &["threads"],
        &["threads", "list"],
        &["threads", "show"],
        &["threads", "delete"],
        &["threads", "history"],
        &["threads", "diff"],
        &["threads", "update"],
        &["threads", "fork"],
        &["threads", "cancel"],
        &["threads", "export"],
        &["threads", "import"],
        &["validate"],
        &["explain"],
        &["show"],
        &["tools"],
    ] {
        let mut args = command.to_vec();
        args.push("--help");
        let ran = desk.tine(&args);
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.stderr);
        assert!(
            ran.stdout.contains("EXAMPLES\n  tine "),
            "{command:?}: {}",
            ran.stdout
        );
        assert!(ran.stderr.is_empty());
    }
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
