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
