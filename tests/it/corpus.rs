//! The corpus that ships, and what the script that ships offers to look up in it.

use crate::command::shipped;
use tine_models::{ModelRequest, Script};
use tine_tools::search::FolderSearch;

fn options(request: &str) -> Vec<String> {
    let path = shipped("graphs/news_report.script.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let script = Script::parse(&path, &text).unwrap();
    let request = ModelRequest::new(vec![tine_engine::Message::human(request)]);
    let (tool, args) = script.reply(&request).unwrap().calls.remove(0);
    assert_eq!(&*tool, "ask_clarification");
    let args = serde_json::to_value(args).unwrap();
    serde_json::from_value(args["options"].clone()).unwrap()
}

#[test]
fn every_topic_that_is_offered_has_an_article() {
    let corpus = FolderSearch::new(shipped("graphs/corpus"));
    let first = |topic: &str| {
        let found = corpus.search(topic, 1).unwrap();
        assert_eq!(found.notes, [""; 0], "{topic}");
        let hit = found.hits.into_iter().next();
        format!(
            "{topic}: {}",
            hit.map_or("nothing".to_owned(), |hit| hit.title)
        )
    };
    let topics = [options("写份报告"), options("Write a report")].concat();
    let found: Vec<String> = topics.iter().map(|topic| first(topic)).collect();
    insta::assert_snapshot!(found.join("\n"), @"
    今天的 AI 新闻: 编辑部里的 AI：一家小报的三个月
    电池技术: 固态电池在青崖量产，首批用于公交车
    高铁: 南浦高铁通车，两小时到云岭
    AI news: Larkfield Labs shows an AI chip that computes in memory
    battery technology: Old batteries keep a village dairy cold
    high-speed trains: Night trains return to the Orrin valley
    ");
}
