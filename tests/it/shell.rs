//! Completions and manual pages.

use crate::command::Desk;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Gives a text to a program, if this machine has it.
fn accepts(program: &str, args: &[&str], text: &str) {
    let started = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        println!("{program} is not installed, so nothing was checked with it");
        return;
    };
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.is_empty(),
        "{program}: {stderr}"
    );
}

#[test]
fn completions_are_what_the_shells_read() {
    let desk = Desk::new();
    for (shell, check) in [
        ("bash", Some(("bash", &["-n"][..]))),
        ("zsh", Some(("zsh", &["-n"]))),
        ("fish", Some(("fish", &["--no-execute"]))),
        ("elvish", Some(("elvish", &["-compileonly", "/dev/stdin"]))),
        ("powershell", None),
    ] {
        let ran = desk.tine(&["completions", shell]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for word in ["resume", "doctor", "explain"] {
            assert!(ran.stdout.contains(word), "no {word} for {shell}");
        }
        if let Some((program, args)) = check {
            accepts(program, args, &ran.stdout);
        }
    }
    assert_eq!(desk.tine(&["completions", "tcsh"]).code, 2);
}

#[test]
fn bash_completes_commands_and_options() {
    let desk = Desk::new();
    let script = desk.tine(&["completions", "bash"]).stdout;
    let ask = "COMP_WORDS=(tine tools call --th); COMP_CWORD=3; _tine tine --th call; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["-c", &format!("{script}\n{ask}")])
        .output();
    if let Ok(output) = output {
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "--thread");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let desk = Desk::new();
    let ran = desk.tine(&["man", "pages/man1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let pages: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        pages.contains(&"pages/man1/tine.1") && pages.contains(&"pages/man1/tine-tools-call.1")
    );
    for page in pages {
        let text = std::fs::read_to_string(desk.path().join(page)).unwrap();
        assert!(
            text.contains("\n.SH EXAMPLES\n.nf\ntine "),
            "{page}: {text}"
        );
        accepts("man", &["--warnings", "-l", "-"], &text);
    }
    let main = desk.tine(&["man"]).stdout;
    let written = std::fs::read_to_string(desk.path().join("pages/man1/tine.1")).unwrap();
    assert_eq!(main, written);
    desk.file("plain", "");
    let ran = desk.tine(&["man", "plain/pages"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
}
