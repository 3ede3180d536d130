//! Recorded traffic of model providers is read, and what can not be read is told.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tine_testkit::traffic::{self, Count, Verdict};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traffic")
}

#[tokio::test]
async fn each_exchange_has_a_line_and_each_provider_its_counts() {
    let mut shown = String::new();
    let folder = fixtures();
    let counts = traffic::replay_all(&folder, |line| {
        let _ = writeln!(shown, "{}", serde_json::to_string(line).unwrap());
    });
    for (provider, count) in counts.await.unwrap() {
        let _ = writeln!(shown, "{provider}: {count}");
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn a_file_that_is_no_traffic_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.yaml");
    for text in ["when: {method: POST}\n", "[1\n", "text"] {
        std::fs::write(&file, text).unwrap();
        let error = traffic::replay_all(folder.path(), |_| {})
            .await
            .unwrap_err();
        assert!(error.contains("broken.yaml: "), "{error}");
    }
    let nowhere = folder.path().join("nowhere");
    let error = traffic::replay_all(&nowhere, |_| {}).await.unwrap_err();
    assert!(error.contains("nowhere: "), "{error}");
}

/// What seventeen providers really sent, where it is at hand.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the samples are not part of the repository"
)]
async fn what_providers_really_sent_is_read() {
    let Some(samples) = std::env::var_os("TINE_SAMPLES") else {
        println!("skipped: TINE_SAMPLES does not name the folder with recorded traffic");
        return;
    };
    let mut failed = Vec::new();
    let traffic = Path::new(&samples).join("provider-traffic");
    let counts = traffic::replay_all(&traffic, |line| {
        if line.verdict == Verdict::Failed {
            failed.push(serde_json::to_string(line).unwrap());
        }
    });
    let counts = counts.await.unwrap();
    assert_eq!(failed, Vec::<String>::new());
    for provider in [
        "openai",
        "openrouter",
        "deepseek",
        "mistral",
        "groq",
        "llamacpp",
    ] {
        let count = counts.get(provider).copied().unwrap_or_default();
        assert!(count.passed > 10, "{provider}: {count}");
    }
    let mut total = Count::default();
    for count in counts.values() {
        total.passed += count.passed;
        total.failed += count.failed;
        total.skipped += count.skipped;
    }
    println!("{total}");
}
