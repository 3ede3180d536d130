//! The names that ship, and DeerFlow's.

use std::sync::Arc;

use super::registry::Registry;
use crate::config::{DEFAULT_LS_CHARS, DEFAULT_READ_FILE_CHARS};
use crate::sandbox::{DEFAULT_MOST_BYTES, Ls, ReadFile, WriteFile};
use crate::search::{FolderSearch, LocalWebSearch, MOST_RESULTS};

const LOCAL_SEARCH: &str = "tine.community.local:web_search_tool";

/// DeerFlow's sandbox tools that nothing stands behind yet.
const SANDBOX: [&str; 4] = ["bash", "glob", "grep", "str_replace"];

/// DeerFlow's community modules and the tools in them.
const COMMUNITY: [(&str, &[&str]); 15] = [
    ("brave", &["web_search", "image_search"]),
    (
        "browser_automation",
        &[
            "browser_navigate",
            "browser_snapshot",
            "browser_click",
            "browser_type",
            "browser_get_text",
            "browser_back",
            "browser_screenshot",
            "browser_close",
        ],
    ),
    ("browserless", &["web_fetch", "web_capture"]),
    ("crawl4ai", &["web_fetch"]),
    ("ddg_search", &["web_search"]),
    ("exa", &["web_search", "web_fetch"]),
    ("fastcrw", &["web_search", "web_fetch"]),
    ("firecrawl", &["web_search", "web_fetch"]),
    ("groundroute", &["web_search", "web_fetch"]),
    ("image_search", &["image_search"]),
    ("infoquest", &["web_search", "web_fetch", "image_search"]),
    ("jina_ai", &["web_fetch"]),
    ("searxng", &["web_search"]),
    ("serper", &["web_search", "image_search"]),
    ("tavily", &["web_search", "web_fetch"]),
];

/// DeerFlow's sandbox providers that nothing stands behind yet.
pub(super) const PROVIDERS: [&str; 4] = [
    "deerflow.community.aio_sandbox:AioSandboxProvider",
    "deerflow.community.boxlite:BoxliteProvider",
    "deerflow.community.e2b_sandbox:E2BSandboxProvider",
    "deerflow.community.tenki:TenkiSandboxProvider",
];

/// The two spellings of the provider without isolation.
pub(super) const LOCAL_PROVIDERS: [&str; 2] = [
    "deerflow.sandbox.local:LocalSandboxProvider",
    "deerflow.sandbox.local.local_sandbox_provider:LocalSandboxProvider",
];

pub(super) fn register(registry: &mut Registry) {
    registry.ready("deerflow.sandbox.tools:ls_tool", &[], |cx| {
        let sandbox = cx.config.sandbox();
        let most = sandbox.map_or(DEFAULT_LS_CHARS, |s| s.ls_output_max_chars);
        Ok(Arc::new(Ls::new(most)))
    });
    registry.ready("deerflow.sandbox.tools:read_file_tool", &[], |cx| {
        let sandbox = cx.config.sandbox();
        let most = sandbox.map_or(DEFAULT_READ_FILE_CHARS, |s| s.read_file_output_max_chars);
        Ok(Arc::new(ReadFile::new(most)))
    });
    registry.ready(
        "deerflow.sandbox.tools:write_file_tool",
        &["max_bytes"],
        |cx| {
            let most = cx.settings().whole("max_bytes")?;
            Ok(Arc::new(WriteFile::new(most.unwrap_or(DEFAULT_MOST_BYTES))))
        },
    );
    registry.ready(LOCAL_SEARCH, &["path", "max_results"], |cx| {
        let settings = cx.settings();
        let folder = settings
            .path("path")?
            .ok_or_else(|| settings.missing("path"))?;
        let most = settings.whole("max_results")?;
        if let Some(number) = most.filter(|most| !(1..=MOST_RESULTS).contains(most)) {
            let expected = "a whole number from 1 to 50";
            return Err(settings.wrong("max_results", expected, &number.into()));
        }
        let place = cx.entry.settings.place_of("path");
        let setting = format!("`path` of {} ({place})", cx.entry.settings.owner());
        Ok(Arc::new(LocalWebSearch::new(
            FolderSearch::new(folder),
            most,
            setting,
        )))
    });
    for tool in SANDBOX {
        registry.unavailable(&format!("deerflow.sandbox.tools:{tool}_tool"), None);
    }
    for (module, tools) in COMMUNITY {
        for tool in tools {
            let instead = (*tool == "web_search").then_some(LOCAL_SEARCH);
            let path = format!("deerflow.community.{module}.tools:{tool}_tool");
            registry.unavailable(&path, instead);
        }
    }
}
