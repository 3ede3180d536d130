use std::fmt;

use rusqlite::{Connection, params};

use super::document::Document;
use super::segment::{self, Terms};
use super::snippet::snippet;

/// How much more a word counts in the title than in the text.
const TITLE_WEIGHT: f64 = 8.0;

/// A full-text index over documents, in memory.
pub(super) struct Index {
    table: Connection,
    documents: Vec<Document>,
}

/// One document that a query found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Hit {
    /// The document's title.
    pub title: String,
    /// Its address: what the document names, or `local:/` and its path.
    pub url: String,
    /// The part of its text that has most words of the query.
    pub snippet: String,
}

impl Index {
    pub(super) fn build(documents: Vec<Document>) -> rusqlite::Result<Self> {
        let mut table = Connection::open_in_memory()?;
        // Contentless: the texts stay in `documents`, the table has words only.
        table.execute_batch(
            "CREATE VIRTUAL TABLE words USING fts5(
                 title, body, content='', tokenize='porter unicode61 remove_diacritics 2');",
        )?;
        let transaction = table.transaction()?;
        {
            let mut insert = transaction
                .prepare("INSERT INTO words (rowid, title, body) VALUES (?1, ?2, ?3)")?;
            for (row, document) in (0_i64..).zip(&documents) {
                insert.execute(params![
                    row,
                    segment::for_index(&document.title),
                    segment::for_index(&document.body)
                ])?;
            }
        }
        transaction.commit()?;
        Ok(Self { table, documents })
    }

    /// Finds the best documents, best first; equals keep the order of paths.
    pub(super) fn search(&self, query: &str, most: usize) -> rusqlite::Result<Vec<Hit>> {
        let terms = Terms::of(query);
        if terms.finding.is_empty() {
            return Ok(Vec::new());
        }
        let mut select = self.table.prepare_cached(
            "SELECT rowid FROM words WHERE words MATCH ?1
             ORDER BY bm25(words, ?2, 1.0), rowid LIMIT ?3",
        )?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = select.query_map(params![terms.expression(), TITLE_WEIGHT, most], |row| {
            row.get::<_, i64>(0)
        })?;
        let mut hits = Vec::new();
        for row in rows {
            let found = usize::try_from(row?)
                .ok()
                .and_then(|row| self.documents.get(row));
            if let Some(document) = found {
                hits.push(Hit {
                    title: document.title.clone(),
                    url: document.url.clone(),
                    snippet: snippet(&document.body, &terms.finding),
                });
            }
        }
        Ok(hits)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("documents", &self.documents.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn index() -> Index {
        let document = |title: &str, body: &str| Document {
            title: title.to_owned(),
            url: format!("local:/{title}"),
            body: body.to_owned(),
        };
        Index::build(vec![
            document("茶园日记", "今天的茶很香。春茶产量上升。"),
            document("AI 模型发布", "北岸实验室今天发布新的人工智能模型。"),
            document(
                "Solid-state battery",
                "A battery without liquid. It charges fast.",
            ),
            document(
                "Rail timetable",
                "Night trains. The café car uses an AI planner and a battery.",
            ),
        ])
        .unwrap()
    }

    fn titles(query: &str, most: usize) -> Vec<String> {
        let hits = index().search(query, most).unwrap();
        hits.into_iter().map(|hit| hit.title).collect()
    }

    #[test]
    fn queries_in_both_languages_find_what_they_name() {
        let check = |query: &str, expected: &[&str]| {
            assert_eq!(titles(query, 5), expected, "query {query:?}");
        };
        check("今天 AI 新闻", &["AI 模型发布", "Rail timetable"]);
        check("人工智能", &["AI 模型发布"]);
        check("春茶", &["茶园日记"]);
        check("茶", &["茶园日记"]);
        check("batteries", &["Solid-state battery", "Rail timetable"]);
        check(
            "BATTERY charging",
            &["Solid-state battery", "Rail timetable"],
        );
        check("cafe", &["Rail timetable"]);
        check("ＡＩ", &["AI 模型发布", "Rail timetable"]);
        check("今天", &["茶园日记", "AI 模型发布"]);
    }

    #[test]
    fn nothing_found_is_an_empty_list() {
        for query in ["量子", "zeppelin", "", "!!", "\"", "zz AND", "NEAR(", "-"] {
            assert_eq!(titles(query, 5), Vec::<String>::new(), "query {query:?}");
        }
    }

    #[test]
    fn at_most_the_asked_number_is_given() {
        assert_eq!(titles("AI battery", 1).len(), 1);
        assert_eq!(titles("AI battery", 0).len(), 0);
    }
}
