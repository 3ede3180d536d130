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
fn the_graphs_we_ship_have_nothing_to_hear() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs");
    let mut registry = super::registry();
    registry.tools.entry("ls".to_owned()).or_default();
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // `name.script.yaml` and the like stand beside graphs and are none.
        if name.ends_with(".yaml") && name.matches('.').count() == 1 {
            let text = std::fs::read_to_string(&path).unwrap();
            let (_, diagnostics) = crate::check(&name, &text, &crate::NoSources, &registry);
            assert!(diagnostics.is_empty(), "{}", diagnostics.render());
            seen += 1;
        }
    }
    assert!(seen >= 2);
}

#[test]
fn every_check_has_a_file_that_it_finds_something_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/invalid");
    // Only a host that makes nodes can refuse one.
    let codes = crate::CHECKS.iter().map(|check| check.code);
    let mut silent: Vec<&str> = codes.filter(|code| *code != "G108").collect();
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

/// A file that was cut, doubled or scrambled anywhere is refused or read, and never brings us down.
#[test]
fn damaged_files_are_reported_and_never_panic() {
    let whole = include_str!("../../../../tests/fixtures/valid/everything.yaml");
    let react = include_str!("../../../../tests/fixtures/valid/react.yaml");
    let registry = super::registry();
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below.max(1)
    };
    const PIECES: [&str; 16] = [
        "\t", "\n", ": ", "- ", "{", "}", "[", "]", "\"", "'", "${", "}}", "中", "#", "&a ", "\r\n",
    ];
    for round in 0..400 {
        let mut text: Vec<char> = if round % 2 == 0 { whole } else { react }.chars().collect();
        for _ in 0..=random(3) {
            let at = random(text.len());
            match random(4) {
                0 => text.truncate(at),
                1 => {
                    let end = (at + random(40)).min(text.len());
                    text.drain(at..end);
                }
                2 => {
                    let end = (at + random(60)).min(text.len());
                    let piece: Vec<char> = text[at..end].to_vec();
                    let to = random(text.len());
                    text.splice(to..to, piece);
                }
                _ => {
                    text.splice(at..at, PIECES[random(PIECES.len())].chars());
                }
            }
        }
        let text: String = text.into_iter().collect();
        let (outline, diagnostics) = crate::check("t.yaml", &text, &crate::NoSources, &registry);
        assert_eq!(outline.is_none(), diagnostics.has_errors(), "{text}");
        assert!(!diagnostics.render().is_empty() || diagnostics.is_empty());
        let _shown = diagnostics.to_json();
    }
}

#[test]
fn the_graphs_of_the_guide_and_their_kin_pass() {
    let guide = include_str!("../../../../graphs/README.md");
    let registry = super::registry();
    let graphs = guide
        .split("```yaml\n")
        .skip(1)
        .filter_map(|block| block.split("```").next());
    let graphs: Vec<&str> = graphs
        .filter(|block| block.starts_with("schema:"))
        .collect();
    assert!(!graphs.is_empty());
    for graph in graphs {
        let (_, diagnostics) = crate::check("README.md", graph, &crate::NoSources, &registry);
        assert!(diagnostics.is_empty(), "{}", diagnostics.render());
    }
}

/// The keys of the format are read off its own suggestions, so that none can be forgotten.
#[test]
fn the_guide_names_every_key() {
    let guide = include_str!("../../../../graphs/README.md");
    let heads = [
        "zz: 1\nname: t\n",
        "name: t\nstate: { a: { type: any, zz: 1 } }\nnodes: {}\nstart: end\n",
        "name: t\nstate: {}\nlimits: { zz: 1 }\n",
    ];
    let kinds = ["model", "tools", "tool", "set", "interrupt", "call"];
    let nodes = kinds.map(|kind| {
        format!("name: t\nnodes: {{ n: {{ type: {kind}, zz: 1 }} }}\nstate: {{}}\nstart: n\n")
    });
    let texts = heads.iter().map(|text| (*text).to_owned()).chain(nodes);
    for text in texts {
        let text = format!("schema: graph/v1\n{text}");
        let (_, diagnostics) = crate::check("t.yaml", &text, &crate::NoSources, &super::registry());
        let found = diagnostics.iter().find(|found| found.check.code == "G002");
        let help = &found
            .unwrap_or_else(|| panic!("{}", diagnostics.render()))
            .help[0];
        for key in help.split('`').skip(1).step_by(2) {
            let named = [
                format!("`{key}`"),
                format!("`limits.{key}`"),
                format!("`{key}:"),
                format!("`{key}."),
            ];
            assert!(
                named.iter().any(|named| guide.contains(named)),
                "{key} in {help}"
            );
        }
    }
}

#[test]
fn a_thousand_nodes_are_checked_as_well() {
    let mut text = String::from(
        "schema: graph/v1\nname: chain\nstate:\n  n: { type: integer, reduce: add }\nstart: n0\nnodes:\n",
    );
    for node in 0..1000 {
        let next = if node == 999 {
            "end".to_owned()
        } else {
            format!("n{}", node + 1)
        };
        text.push_str(&format!(
            "  n{node}: {{ type: set, set: {{ n: 1 }}, then: {next} }}\n"
        ));
    }
    let (outline, diagnostics) =
        crate::check("t.yaml", &text, &crate::NoSources, &super::registry());
    assert!(diagnostics.is_empty(), "{}", diagnostics.render());
    assert_eq!(outline.unwrap().width, Some(1));
}
