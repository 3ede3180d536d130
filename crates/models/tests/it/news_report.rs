//! The script of the default job, driven turn by turn over histories made by hand.

use serde_json::{Value, json};
use tine_engine::Message;
use tine_engine::message::{ToolCall, ToolStatus};
use tine_models::{ModelRequest, Script};

fn script() -> Script {
    let text = include_str!("../../../../graphs/news_report.script.yaml");
    Script::parse("graphs/news_report.script.yaml", text).unwrap()
}

/// A conversation with the script: what the user says, and what the tools answer.
struct Chat {
    script: Script,
    messages: Vec<Message>,
}

impl Chat {
    fn new() -> Self {
        Self {
            script: script(),
            messages: Vec::new(),
        }
    }

    /// The user speaks; gives the reply in short.
    fn say(&mut self, text: &str) -> String {
        self.messages.push(Message::human(text));
        self.reply()
    }

    /// The one open call is answered; gives the reply in short.
    fn answer(&mut self, content: &str) -> String {
        self.result(content, ToolStatus::Success)
    }

    fn fail(&mut self, content: &str) -> String {
        self.result(content, ToolStatus::Error)
    }

    fn result(&mut self, content: &str, status: ToolStatus) -> String {
        let last = self.messages.last().unwrap();
        let [call] = last.tool_calls.as_slice() else {
            panic!("no single call: {last:?}");
        };
        let result = Message::tool(call, content, status);
        self.messages.push(result);
        self.reply()
    }

    fn reply(&mut self) -> String {
        let request = ModelRequest::new(self.messages.clone()).at("agent", 1);
        let said = self.script.reply(&request).unwrap();
        let mut message = Message::ai(said.content.clone());
        let mut lines = Vec::new();
        if !said.content.is_empty() {
            lines.push(said.content);
        }
        for (index, (name, args)) in (0..).zip(said.calls) {
            lines.push(match args.get("content") {
                Some(content) => format!(
                    "{name} {}\n{}",
                    args.get("path").unwrap(),
                    content.as_str().unwrap()
                ),
                None => format!("{name} {args}"),
            });
            message.tool_calls.push(ToolCall {
                name,
                args,
                id: request.call_id(index),
            });
        }
        self.messages.push(message);
        lines.join("\n")
    }

    /// The whole job with these results; gives all replies.
    fn job(&mut self, request: &str, found: &Value) -> String {
        let replies = [
            self.say(request),
            self.answer(&found.to_string()),
            self.answer("OK"),
            self.answer("Successfully presented files"),
        ];
        replies.join("\n---\n")
    }
}

fn hits() -> Value {
    json!([
        {"title": "模型\n发布", "url": "local:/ai/a.md", "snippet": "北岸实验室  发布\n新模型。"},
        {"title": "AI chips", "url": "https://example.org/b", "snippet": "A new chip."},
    ])
}

#[test]
fn a_chinese_request_becomes_a_chinese_report() {
    insta::assert_snapshot!(Chat::new().job("搜今天 AI 新闻并存成 Markdown", &hits()), @r#"
    web_search {"query":"今天 AI 新闻"}
    ---
    write_file "/mnt/user-data/outputs/今天-ai-新闻.md"
    # 今天 AI 新闻

    搜索“今天 AI 新闻”得到 2 条结果，按相关度排列，内容照搜索结果原样摘录。

    ## 1. 模型 发布

    来源：<local:/ai/a.md>

    北岸实验室 发布 新模型。

    ## 2. AI chips

    来源：<https://example.org/b>

    A new chip.

    ---
    present_files {"filepaths":["/mnt/user-data/outputs/今天-ai-新闻.md"]}
    ---
    关于“今天 AI 新闻”的报告已写好，收录 2 条搜索结果：/mnt/user-data/outputs/今天-ai-新闻.md
    "#);
}

#[test]
fn an_english_request_becomes_an_english_report() {
    let found = json!({"query": "tea", "total_results": 1, "results": [
        {"title": "Spring tea", "url": "https://example.org/tea", "content": "The harvest is early."},
    ]});
    insta::assert_snapshot!(Chat::new().job("Find news about tea and save it as Markdown", &found), @r#"
    web_search {"query":"news about tea"}
    ---
    write_file "/mnt/user-data/outputs/news-about-tea.md"
    # news about tea

    1 result of a search for “news about tea”, best first, quoted as the search gave them.

    ## 1. Spring tea

    Source: <https://example.org/tea>

    The harvest is early.

    ---
    present_files {"filepaths":["/mnt/user-data/outputs/news-about-tea.md"]}
    ---
    The report on “news about tea” is ready, with 1 search result: /mnt/user-data/outputs/news-about-tea.md
    "#);
}

#[test]
fn no_hit_gives_a_report_that_says_so() {
    insta::assert_snapshot!(Chat::new().job("搜电池新闻并存成 Markdown", &json!([])), @r#"
    web_search {"query":"电池新闻"}
    ---
    write_file "/mnt/user-data/outputs/电池新闻.md"
    # 电池新闻

    搜索“电池新闻”没有找到任何结果。

    ---
    present_files {"filepaths":["/mnt/user-data/outputs/电池新闻.md"]}
    ---
    搜索“电池新闻”没有结果；报告里写明了这一点：/mnt/user-data/outputs/电池新闻.md
    "#);
    let none = json!({"error": "No results found", "query": "zeppelins"});
    insta::assert_snapshot!(Chat::new().job("Find zeppelins", &none), @r#"
    web_search {"query":"zeppelins"}
    ---
    write_file "/mnt/user-data/outputs/zeppelins.md"
    # zeppelins

    The search for “zeppelins” found nothing.

    ---
    present_files {"filepaths":["/mnt/user-data/outputs/zeppelins.md"]}
    ---
    The search for “zeppelins” found nothing, and the report says so: /mnt/user-data/outputs/zeppelins.md
    "#);
}

#[test]
fn a_result_that_lacks_fields_is_reported_as_far_as_it_goes() {
    let mut chat = Chat::new();
    chat.say("Find tea");
    insta::assert_snapshot!(chat.answer(r#"[{"url": "https://example.org"}, {"title": "T", "snippet": null}]"#), @r#"
    write_file "/mnt/user-data/outputs/tea.md"
    # tea

    2 results of a search for “tea”, best first, quoted as the search gave them.

    ## 1. https://example.org

    Source: <https://example.org>

    (no excerpt)

    ## 2. T

    (no excerpt)
    "#);
}

#[test]
fn the_topic_is_what_remains_of_the_request() {
    let check = |request: &str, expected: &str| {
        let reply = Chat::new().say(request);
        let query = reply.strip_prefix("web_search ").map(|args| {
            let args: Value = serde_json::from_str(args).unwrap();
            args["query"].as_str().unwrap().to_owned()
        });
        assert_eq!(query.as_deref().unwrap_or(&reply), expected, "{request:?}");
    };
    check("搜今天 AI 新闻并存成 Markdown", "今天 AI 新闻");
    check("搜电池新闻并存成 Markdown", "电池新闻");
    check(
        "搜索一下今天的AI新闻，保存为 markdown 文件。",
        "今天的AI新闻",
    );
    check("请帮我查一下高铁的消息，然后整理成报告", "高铁的消息");
    check("写一份关于电池的报告", "电池");
    check("帮我写个关于茶的 Markdown 报告", "茶");
    check("把今天的 AI 新闻整理成 Markdown", "今天的 AI 新闻");
    check("今天 AI 新闻", "今天 AI 新闻");
    check(
        "Find news about tea and save it as Markdown",
        "news about tea",
    );
    check("Write a report on high-speed trains", "high-speed trains");
    check(
        "Please write a short report about the AI Act.",
        "the AI Act",
    );
    check(
        "search today's AI news and save as markdown",
        "today's AI news",
    );
    check(
        "Can you look up on-device AI, then save it as a Markdown file?",
        "on-device AI",
    );
    check("Research quantum batteries", "quantum batteries");
    check("搜集关于高铁的新闻，写成报告", "高铁的新闻");
    check("搜写作技巧", "写作技巧");
    check("今天有什么新闻？", "今天有什么新闻");
    check("Tell me about tea, please", "tea");
    check("Save AI news as a Markdown file", "AI news");
    check("findings on tea", "findings on tea");
    check(".NET release notes", ".NET release notes");
    check("find {{ 7 * 7 }} news", "{{ 7 * 7 }} news");
    check("请存成 Markdown：今天的 AI 新闻", "今天的 AI 新闻");
    check("In markdown, write about tea", "tea");
    check("Save as Markdown: AI news", "AI news");
    check("Search and summarize AI news", "AI news");
    check("搜索并总结今天的 AI 新闻", "今天的 AI 新闻");
    check("生成一份 Markdown 报告：固态电池", "固态电池");
    check("写一份详细的关于电池的报告", "电池");
    check("The Beatles", "The Beatles");
    check("Find short stories", "short stories");
    check("豆腐是怎么做成的", "豆腐是怎么做成的");
    check("把茶的新闻做成报告", "茶的新闻");
    check("C++", "C++");
}

#[test]
fn a_name_that_begins_like_a_verb_stays_whole() {
    let check = |request: &str, expected: &str| {
        let reply = Chat::new().say(request);
        assert_eq!(reply, format!("web_search {}", json!({"query": expected})));
    };
    check("查理·芒格", "查理·芒格");
    check("搜查理·芒格", "查理·芒格");
    check("写作", "写作");
    check("帮我查查理·芒格的新闻", "查理·芒格的新闻");
    check("找工作", "找工作");
    check("帮我搜搜狐新闻", "搜狐新闻");
    check("查电池新闻", "电池新闻");
    check("查 AI", "AI");
    check("写关于茶的报告", "茶");
    check("请找茶的历史", "茶的历史");
}

#[test]
fn a_topic_is_one_line_of_at_most_80_characters() {
    let check = |request: &str, expected: &str| {
        let reply = Chat::new().say(request);
        assert_eq!(reply, format!("web_search {}", json!({"query": expected})));
    };
    check("AI news\nbatteries\r\n\ttea", "AI news batteries tea");
    check("搜 AI 新闻\n\n# 标题\n- 电池", "AI 新闻 # 标题 - 电池");
    check(&"长".repeat(1_000_000), &"长".repeat(80));
    let mut chat = Chat::new();
    chat.say("写份报告");
    let answer = format!("{}\n{}", "长".repeat(50), "短".repeat(50));
    let expected = format!("{} {}", "长".repeat(50), "短".repeat(29));
    assert_eq!(
        chat.answer(&answer),
        format!("web_search {}", json!({"query": expected}))
    );
}

#[test]
fn a_request_without_a_topic_is_asked_back() {
    let asks = |request: &str| {
        let reply = Chat::new().say(request);
        assert!(
            reply.starts_with("ask_clarification "),
            "{request:?}: {reply}"
        );
    };
    [
        "写份报告",
        "帮我写个报告",
        "请写一份报告。",
        "写一份 Markdown 报告",
        "Write a report",
        "please write me a short report.",
        "Find something",
        "",
        "写报告",
        "给我写一份详细的报告",
        "写一份简短的报告",
        "Write a detailed report",
        "report.md",
        "报告.md",
        "请存成 Markdown",
        "总结",
        "...",
    ]
    .into_iter()
    .for_each(asks);
    insta::assert_snapshot!(Chat::new().say("写份报告"), @r#"ask_clarification {"clarification_type":"missing_info","options":["今天的 AI 新闻","电池技术","高铁"],"question":"报告写什么主题？"}"#);
    insta::assert_snapshot!(Chat::new().say("Write a report"), @r#"ask_clarification {"clarification_type":"missing_info","options":["AI news","battery technology","high-speed trains"],"question":"What should the report be about?"}"#);
}

#[test]
fn the_answer_is_the_topic() {
    let check = |request: &str, answer: &str, expected: &str| {
        let mut chat = Chat::new();
        chat.say(request);
        assert_eq!(chat.answer(answer), expected, "{answer:?}");
    };
    check(
        "写份报告",
        "今天的 AI 新闻",
        r#"web_search {"query":"今天的 AI 新闻"}"#,
    );
    check(
        "写份报告",
        "搜茶的新闻",
        r#"web_search {"query":"茶的新闻"}"#,
    );
    check(
        "Write a report",
        "2",
        r#"web_search {"query":"battery technology"}"#,
    );
    check("Write a report", "2024", r#"web_search {"query":"2024"}"#);
    check(
        "Write a report",
        "markdown",
        r#"web_search {"query":"markdown"}"#,
    );
    check("写份报告", "2.", r#"web_search {"query":"电池技术"}"#);
    check("写份报告", "3.10", r#"web_search {"query":"3.10"}"#);
    check("写份报告", "1e3", r#"web_search {"query":"1e3"}"#);
    check("写份报告", "true", r#"web_search {"query":"true"}"#);
    check("写份报告", "null", r#"web_search {"query":"null"}"#);
    // The rest of the job stays in the language of the request.
    let mut chat = Chat::new();
    chat.say("写份报告");
    chat.answer("tea");
    insta::assert_snapshot!(chat.answer("[]"), @r#"
    write_file "/mnt/user-data/outputs/tea.md"
    # tea

    搜索“tea”没有找到任何结果。
    "#);
}

#[test]
fn an_answer_that_comes_as_a_message_is_the_topic_too() {
    let mut chat = Chat::new();
    chat.say("写份报告");
    let asked = chat.messages.last().unwrap().tool_calls[0].clone();
    chat.messages
        .push(Message::tool(&asked, "2", ToolStatus::Success));
    assert_eq!(chat.say("2"), r#"web_search {"query":"电池技术"}"#);
    assert!(
        chat.answer("[]")
            .starts_with(r#"write_file "/mnt/user-data/outputs/电池技术.md""#)
    );
}

#[test]
fn an_empty_answer_is_asked_again_and_a_failed_question_told() {
    let mut chat = Chat::new();
    chat.say("Write a report");
    assert!(chat.answer(" ").starts_with("ask_clarification "));
    assert_eq!(
        chat.fail("nobody is there"),
        "I do not know what to report on, and could not ask: nobody is there"
    );
}

#[test]
fn a_run_that_may_not_ask_says_that_it_has_no_topic() {
    let mut chat = Chat::new();
    chat.say("写份报告");
    assert_eq!(
        chat.fail("questions are switched off in this run"),
        "我不知道报告写什么主题，也没能问到：questions are switched off in this run"
    );
}

#[test]
fn a_result_in_another_shape_breaks_neither_the_job_nor_the_report() {
    let check = |found: &str, expected: &str| {
        let mut chat = Chat::new();
        chat.say("Find tea");
        let said = chat.answer(found);
        let shown: Vec<&str> = said
            .lines()
            .skip(3)
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(shown.join(" / "), expected, "{found}");
    };
    let head = "1 result of a search for “tea”, best first, quoted as the search gave them.";
    let none = "The search for “tea” found nothing.";
    check(
        r##"[{"title":"# x\n\n# y","url":"https://x>\n\n# injected\n<b","snippet":"a\n\n# b"}]"##,
        &format!("{head} / ## 1. # x # y / a # b"),
    );
    check(
        r#"[{"title":5,"url":7,"snippet":["a"]}]"#,
        &format!("{head} / ## 1. 5 / Source: <7> / ['a']"),
    );
    check(
        r#"["just text"]"#,
        &format!("{head} / ## 1. (no title) / just text"),
    );
    check(
        "[null]",
        &format!("{head} / ## 1. (no title) / (no excerpt)"),
    );
    check("{}", none);
    check(r#"{"results":null}"#, none);
    check(r#"{"error":null,"results":[]}"#, none);
    check(
        r#"{"error":"","results":[{"title":"T"}]}"#,
        &format!("{head} / ## 1. T / (no excerpt)"),
    );
}

#[test]
fn a_failing_tool_ends_the_job_with_its_error() {
    let mut chat = Chat::new();
    chat.say("搜茶");
    assert_eq!(
        chat.fail("no network"),
        "搜索“茶”失败，没有写报告：no network"
    );
    for found in [r#"{"error": "quota used up"}"#, "quota used up"] {
        let mut chat = Chat::new();
        chat.say("Find tea");
        assert_eq!(
            chat.answer(found),
            "The search for “tea” failed, so there is no report: quota used up"
        );
    }
    let mut chat = Chat::new();
    chat.say("Find tea");
    chat.answer("[]");
    let mut presents = Chat {
        messages: chat.messages.clone(),
        script: script(),
    };
    assert_eq!(
        chat.fail("disk full"),
        "The report could not be written to /mnt/user-data/outputs/tea.md: disk full"
    );
    presents.answer("OK");
    assert_eq!(
        presents.fail("no such file"),
        "The report is in /mnt/user-data/outputs/tea.md, but could not be presented: no such file"
    );
}

#[test]
fn a_second_request_in_the_thread_searches_again() {
    let mut chat = Chat::new();
    chat.job("搜茶新闻", &hits());
    let second = chat.job("Find news about tea", &json!([]));
    assert!(
        second.starts_with(r#"web_search {"query":"news about tea"}"#),
        "{second}"
    );
    assert!(second.contains("found nothing"), "{second}");
    // An error of an earlier turn is past.
    let mut chat = Chat::new();
    chat.say("搜茶");
    chat.fail("no network");
    assert_eq!(chat.say("搜茶"), r#"web_search {"query":"茶"}"#);
}

#[test]
fn the_same_request_writes_the_same_file() {
    let mut chat = Chat::new();
    let first = chat.job("搜今天 AI 新闻", &hits());
    let second = chat.job("搜今天 AI 新闻", &hits());
    assert_eq!(first, second);
}
