//! The fixtures of the repository.

use std::path::Path;

use super::check_file;

fn code(path: &Path) -> String {
    let name = path.file_stem().unwrap().to_string_lossy();
    name.split('_').next().unwrap_or_default().to_owned()
}

#[test]
fn wrong_files_are_told_what_is_wrong_with_them() {
    insta::glob!("../../../../tests/fixtures/invalid", "*.yaml", |path| {
        let (outline, diagnostics) = check_file(path);
        let wanted = code(path);
        assert!(
            diagnostics.iter().any(|found| found.check.code == wanted),
            "{}",
            diagnostics.render()
        );
        assert_eq!(outline.is_none(), diagnostics.has_errors());
        insta::assert_snapshot!(diagnostics.render());
    });
}

#[test]
fn right_files_have_nothing_to_hear() {
    insta::glob!("../../../../tests/fixtures/valid", "*.yaml", |path| {
        let (outline, diagnostics) = check_file(path);
        assert!(diagnostics.is_empty(), "{}", diagnostics.render());
        assert!(outline.is_some());
    });
}

#[test]
fn every_check_has_a_file_that_it_finds_something_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/invalid");
    let mut silent: Vec<&str> = crate::CHECKS.iter().map(|check| check.code).collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            let (_, diagnostics) = check_file(&path);
            silent.retain(|code| !diagnostics.iter().any(|found| found.check.code == *code));
        }
    }
    assert_eq!(silent, Vec::<&str>::new());
}
