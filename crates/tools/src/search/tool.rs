use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;

use super::{FolderSearch, SearchError};
use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::schema::{ArgSchema, Args};
use crate::spec::{Effect, Source, ToolSpec};
use crate::tool::Tool;

/// How many results are given when neither the configuration nor the model
/// says.
const DEFAULT_RESULTS: usize = 5;

/// The most results that are given, whoever asks: `maximum` below says so to
/// the model.
pub(crate) const MOST_RESULTS: usize = 50;

const ARGS: &str = r#"{
  "type": "object",
  "properties": {
    "query": {"type": "string", "minLength": 1, "description": "What to search for, in a few words."},
    "max_results": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 50}, {"type": "null"}], "default": null, "description": "How many results to give at most."}
  },
  "required": ["query"],
  "additionalProperties": false
}"#;

/// `web_search` over a folder of this machine.
pub(crate) struct LocalWebSearch {
    spec: ToolSpec,
    search: Arc<FolderSearch>,
    /// What the configuration says wins over what the model says.
    max_results: Option<usize>,
    /// Where the folder was named, for the one who can change it.
    setting: String,
}

#[derive(Deserialize)]
struct Wanted {
    query: String,
    max_results: Option<usize>,
}

impl LocalWebSearch {
    pub(crate) fn new(search: FolderSearch, max_results: Option<usize>, setting: String) -> Self {
        let spec = ToolSpec::new(
            Source::Config,
            "web_search",
            "Searches for pages and gives a JSON list of {title, url, snippet}, best first.",
            ArgSchema::literal(ARGS),
        );
        Self {
            spec: spec.effect(Effect::ReadOnly),
            search: Arc::new(search),
            max_results,
            setting,
        }
    }
}

#[async_trait]
impl Tool for LocalWebSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let wanted: Wanted = crate::schema::typed(args)?;
        let most = self
            .max_results
            .or(wanted.max_results)
            .unwrap_or(DEFAULT_RESULTS);
        let search = Arc::clone(&self.search);
        let found = cx
            .blocking(move || search.search(&wanted.query, most))
            .await?
            .map_err(|error| self.explain(error))?;
        for note in &found.notes {
            cx.note(&format!("{}: {note}", self.spec.name));
        }
        match serde_json::to_string_pretty(&found.hits) {
            Ok(json) => Ok(ToolOutput::text(json)),
            Err(error) => Err(ToolError::Failed {
                message: "the results could not be written".to_owned(),
                source: Some(Box::new(error)),
            }),
        }
    }
}

impl LocalWebSearch {
    fn explain(&self, error: SearchError) -> ToolError {
        let message = match &error {
            SearchError::Folder { .. } => {
                format!("{error}; the folder is set by {}", self.setting)
            }
            SearchError::Index(_) => error.to_string(),
        };
        ToolError::Failed {
            message,
            source: Some(Box::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::fixture::Fixture;

    fn tool(f: &Fixture, max_results: Option<usize>) -> LocalWebSearch {
        let folder = f.disk.path().join("corpus");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.md"), "# 今日 AI\n\n模型发布了。").unwrap();
        std::fs::write(folder.join("b.md"), "# AI chips\n\nA new AI chip.").unwrap();
        std::fs::write(folder.join("c.txt"), b"\xff").unwrap();
        LocalWebSearch::new(FolderSearch::new(folder), max_results, "`path`".to_owned())
    }

    #[tokio::test]
    async fn results_are_deerflows_json_with_chinese_as_it_is() {
        let f = Fixture::new();
        let said = f
            .say(tool(&f, None), json!({"query": "今天 AI 新闻"}))
            .await;
        insta::assert_snapshot!(said, @r#"
        [
          {
            "title": "AI chips",
            "url": "local:/b.md",
            "snippet": "A new AI chip."
          },
          {
            "title": "今日 AI",
            "url": "local:/a.md",
            "snippet": "模型发布了。"
          }
        ]
        "#);
        assert_eq!(
            *f.heard.notes.lock().unwrap(),
            ["web_search: c.txt: not UTF-8, left out"]
        );
    }

    #[tokio::test]
    async fn the_configuration_wins_over_the_model() {
        let f = Fixture::new();
        let count = |text: String| {
            serde_json::from_str::<Vec<serde_json::Value>>(&text)
                .unwrap()
                .len()
        };
        let asked = |most| json!({"query": "AI", "max_results": most});
        assert_eq!(count(f.say(tool(&f, None), asked(1)).await), 1);
        assert_eq!(count(f.say(tool(&f, Some(2)), asked(1)).await), 2);
        assert_eq!(f.say(tool(&f, None), json!({"query": "量子"})).await, "[]");
    }

    #[tokio::test]
    async fn a_missing_folder_names_itself_and_its_setting() {
        let f = Fixture::new();
        let search = FolderSearch::new("no/such");
        let tool = LocalWebSearch::new(
            search,
            None,
            "`path` of tools.web_search (c.yaml:3:5)".to_owned(),
        );
        let said = f.say(tool, json!({"query": "x"})).await;
        assert!(
            said.starts_with("error: the folder no/such cannot be searched:"),
            "{said}"
        );
        assert!(
            said.ends_with("; the folder is set by `path` of tools.web_search (c.yaml:3:5)"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn a_query_that_is_no_text_is_refused() {
        let f = Fixture::new();
        let mut lines = Vec::new();
        for args in [
            json!({}),
            json!({"query": ["AI"]}),
            json!({"query": ""}),
            json!({"query": "x", "max_results": 0}),
            json!({"q": "x"}),
        ] {
            lines.push(f.say(tool(&f, None), args).await);
        }
        insta::assert_snapshot!(lines.join("\n"), @"
        error: web_search was not run, because its arguments are wrong:
        - `query`: is missing and required: a string
        error: web_search was not run, because its arguments are wrong:
        - `query`: expected a string, got a list of 1
        error: web_search was not run, because its arguments are wrong:
        - `query`: must not be empty
        error: web_search was not run, because its arguments are wrong:
        - `max_results`: expected at least 1, got the number 0
        error: web_search was not run, because its arguments are wrong:
        - `q`: is not an argument of this tool; it takes max_results, query
        - `query`: is missing and required: a string
        ");
    }
}
