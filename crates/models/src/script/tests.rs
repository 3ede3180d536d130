use super::*;
use tine_engine::Message;
use tine_engine::message::{ToolCall, ToolStatus};

/// Reads a script whose text is `body` after the schema.
fn parse(body: &str) -> Result<Script, ScriptError> {
    Script::parse("s.yaml", &format!("schema: script/v1\n{body}"))
}

fn show(reply: Result<ScriptReply, ScriptError>) -> String {
    match reply {
        Err(error) => format!("error: {error}"),
        Ok(reply) => {
            let calls = reply
                .calls
                .iter()
                .map(|(name, args)| format!(" {name} {args}"));
            format!(
                "{}: {}{}",
                reply.rule,
                reply.content,
                calls.collect::<String>()
            )
        }
    }
}

/// A turn before the last one, a question, two searches of which one failed, and a file that was read.
fn request() -> ModelRequest {
    let call = |name: &str, id: &str| ToolCall {
        name: name.into(),
        args: tine_engine::Value::map(),
        id: id.into(),
    };
    let [old, first, second, read] = [
        call("search", "c0"),
        call("search", "c1"),
        call("search", "c2"),
        call("read", "c3"),
    ];
    let mut asks = Message::ai("");
    asks.tool_calls = vec![first.clone(), second.clone(), read.clone()];
    let mut nameless = Message::tool(&read, "[not JSON", ToolStatus::Success);
    nameless.name = None;
    ModelRequest::new(vec![
        Message::human("before"),
        Message::tool(&old, "[0]", ToolStatus::Success),
        Message::human("今天 AI"),
        asks,
        Message::tool(
            &first,
            r#"[{"title": "A"}, {"title": "B"}]"#,
            ToolStatus::Success,
        ),
        Message::tool(&second, "no network", ToolStatus::Error),
        nameless,
    ])
    .at("agent", 2)
}

fn check(body: &str, expected: &str) {
    let reply = parse(body).and_then(|script| script.reply(&request()));
    assert_eq!(show(reply), expected, "{body}");
}

#[test]
fn the_first_rule_that_fits_replies() {
    check(
        "rules: [{when: user_text != '', content: a}, {content: b}]",
        "1: a",
    );
    check(
        "rules: [{node: other, content: a}, {node: agent, content: b}]",
        "2: b",
    );
    check(
        "rules: [{visit: 1, content: a}, {visit: 2, content: b}]",
        "2: b",
    );
    check(
        "rules: [{when: 1 > 2, content: a}, {when: true, content: 7}]",
        "2: 7",
    );
    check(
        "rules: [{node: agent, visit: 2, when: user_text == '', content: a}, {content: b}]",
        "2: b",
    );
}

#[test]
fn the_words_of_the_user_are_those_without_the_files() {
    let script =
        parse("rules: [{content: \"{{ user_text }}|{{ results('ask') | length }}\"}]").unwrap();
    let with_files = |words: &str| {
        let mut message = Message::human(format!(
            "<current_uploads>notes.md</current_uploads> {words}"
        ));
        let kept = serde_json::json!({"original_user_content": words});
        message.additional_kwargs = Some(tine_engine::Value::from_json(kept));
        message
    };
    let reply = |messages: Vec<Message>| {
        let request = ModelRequest {
            messages,
            ..request()
        };
        show(script.reply(&request))
    };
    assert_eq!(reply(vec![with_files("sum it up")]), "1: sum it up|0");
    assert_eq!(reply(vec![with_files("")]), "1: |0");
    // An answer that came with a file is an answer all the same.
    let call = ToolCall {
        name: "ask".into(),
        args: tine_engine::Value::map(),
        id: "c1".into(),
    };
    let result = Message::tool(&call, "this one", ToolStatus::Success);
    let answered = vec![Message::human("go"), result, with_files("this one")];
    assert_eq!(reply(answered), "1: go|1");
}

#[test]
fn templates_see_the_request() {
    let say = |template: &str| format!("rules: [{{content: \"{template}\"}}]");
    check(&say("{{ user_text }}!"), "1: 今天 AI!");
    check(
        &say("{{ messages | length }} {{ messages[0].content }}"),
        "1: 7 before",
    );
    check(&say("{{ results('search') | length }}"), "1: 1");
    check(
        &say("{{ results('search')[0] | map(attribute='title') | join(',') }}"),
        "1: A,B",
    );
    check(&say("{{ results('read') | first }}"), "1: [not JSON");
    check(
        &say("{{ errors('search') | first }} {{ errors('read') | length }}"),
        "1: no network 0",
    );
    check(
        &say("{{ tools | length }} {{ results('none') | length }}"),
        "1: 0 0",
    );
    check(&say("<b> & {{ '<b>' }}"), "1: <b> & <b>");
}

#[test]
fn an_answer_that_is_also_a_message_begins_no_new_turn() {
    let script =
        parse("rules: [{content: \"{{ user_text }} {{ results('ask') | join(',') }}\"}]").unwrap();
    let check = |messages: &[Message], expected: &str| {
        let request = ModelRequest::new(messages.to_vec());
        assert_eq!(show(script.reply(&request)), format!("1: {expected}"));
    };
    let call = ToolCall {
        name: "ask".into(),
        args: tine_engine::Value::map(),
        id: "c".into(),
    };
    let mut asks = Message::ai("");
    asks.tool_calls.push(call.clone());
    let answer = |text: &str| Message::tool(&call, text, ToolStatus::Success);
    let first = [
        Message::human("报告"),
        asks.clone(),
        answer("2"),
        Message::human("2"),
    ];
    check(&first, "报告 2");
    let second = [asks.clone(), answer("b"), Message::human("b")];
    check(&[&first[..], &second].concat(), "报告 2,b");
    check(&[&first[..3], &[Message::human("茶")]].concat(), "茶 ");
    check(
        &[&first[..], &[Message::ai("done"), Message::human("2")]].concat(),
        "2 ",
    );
    check(&[answer("2"), Message::human("2")], "2 ");
}

#[test]
fn a_string_that_is_one_expression_keeps_its_type() {
    let call =
        |args: &str| format!("let: {{n: 3}}\nrules: [{{tool_calls: [{{name: t, args: {args}}}]}}]");
    check(
        &call("{a: '{{ n }}', b: '{{ n }}.'}"),
        r#"1:  t {"a":3,"b":"3."}"#,
    );
    check(
        &call("{a: ' {{ n > 2 }} ', b: '{{ n }}{{ n }}'}"),
        r#"1:  t {"a":true,"b":"33"}"#,
    );
    check(
        &call("{a: '{{ results(\"search\")[0] }}'}"),
        r#"1:  t {"a":[{"title":"A"},{"title":"B"}]}"#,
    );
    check(
        &call("{a: '{{- n -}}', b: '{{ \"}} {{\" }}'}"),
        r#"1:  t {"a":"3","b":"}} {{"}"#,
    );
    check(
        &call("{a: '{{ \"%} {% #}\" }}', b: '{{ [n,\n n] }}'}"),
        r##"1:  t {"a":"%} {% #}","b":[3,3]}"##,
    );
    check(
        "let: {value: 1, more: '{{ value + 1 }}'}\nrules: [{tool_calls: [{name: t, args: {a: '{{ value + more }}'}}]}]",
        r#"1:  t {"a":3}"#,
    );
    check(
        &call("{a: [1.5, null, {b: '{{ n }}'}], c: x}"),
        r#"1:  t {"a":[1.5,null,{"b":3}],"c":"x"}"#,
    );
    check(&call("\"{{ {'a': n} }}\""), r#"1:  t {"a":3}"#);
    check(
        "rules: [{tool_calls: [{name: t}, {name: '{{ user_text | slug }}'}]}]",
        "1:  t {} 今天-ai {}",
    );
}

#[test]
fn names_are_made_in_order_for_each_request() {
    check(
        "let: {words: [今天, '{{ user_text }}'], first: '{{ words[1] | strip_prefixes(words) }}'}\nrules: [{content: '<{{ first }}>'}]",
        "1: <>",
    );
    check(
        "let: {a: '{{ b }}', b: 1}\nrules: [{content: x}]",
        "error: script s.yaml, let.a: there is no `b` here",
    );
    check(
        "let: {user_text: 1}\nrules: [{content: x}]",
        "error: script s.yaml, let.user_text: the name is taken",
    );
}

#[test]
fn a_request_without_a_rule_is_an_error_that_says_what_was_seen() {
    let body =
        "rules: [{node: writer, content: a}, {visit: 7, content: b}, {when: 1 > 2, content: c}]";
    let error = parse(body).unwrap().reply(&request()).unwrap_err();
    insta::assert_snapshot!(error, @r#"
    script s.yaml has no rule for this request: node `agent`, visit 2, 7 messages, the last of a tool: "[not JSON"
      rule 1: is for node `writer`
      rule 2: is for visit 7
      rule 3: its `when` is false
    "#);
    let error = parse("rules: []")
        .unwrap()
        .reply(&ModelRequest::default())
        .unwrap_err();
    insta::assert_snapshot!(error, @"script s.yaml has no rule for this request: node ``, visit 0, no message");
}

#[test]
fn a_mistake_names_its_place() {
    let mut shown = Vec::new();
    for body in [
        "rules: [{content: '{{ user_txt }}'}]",
        "rules: [{content: '{{ user_text'}]",
        "rules:\n  - content: |\n      a\n      {% if x %}",
        "rules: [{content: a}, {when: user_text == '', content: b}]",
        "rules: [{node: a, content: a}, {when: '1 > 2', content: b}, {node: a, visit: 3, content: c}]",
        "rules: [{when: 'user_text ==', content: b}]",
        "rules: [{when: user_text, content: b}]",
        "rules: [{node: agent}]",
        "rules: [{visit: 0, content: a}]",
        "rules: [{content: '{{ messages[0].id.x }}'}]",
        "rules: [{content: '{{ messages[0].id }}'}]",
        "rules: [{tool_calls: [{name: t, args: {deep: [{q: '{{ messages[99] }}'}]}}]}]",
        "rules: [{tool_calls: [{name: t, args: [1]}]}]",
        "rules: [{content: '{{ user_text | sluk }}'}]",
        "rules: [{content: '{{ debug() }}'}]",
        "rules: [{content: '{{ user_text | strip_prefixes(1) }}'}]",
        "rules: [{content: '{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}'}]",
    ] {
        let reply = parse(body).and_then(|script| script.reply(&request()));
        shown.push(show(reply));
    }
    insta::assert_snapshot!(shown.join("\n"), @"
    error: script s.yaml, rule 1, content: there is no `user_txt` here; did you mean `user_text`?
    error: script s.yaml, rule 1, content: syntax error: unexpected end of input, expected end of variable block
    error: script s.yaml, rule 1, content: syntax error: unexpected end of input, expected end of block (line 2 of the template)
    error: script s.yaml, rule 2: the rule never replies, because rule 1 fits all its requests; put it first, or give it other conditions
    error: script s.yaml, rule 3: the rule never replies, because rule 1 fits all its requests; put it first, or give it other conditions
    error: script s.yaml, rule 1, when: syntax error: unexpected end of input, expected expression
    error: script s.yaml, rule 1, when: a condition must be true or false, and this is a string; compare it, or test it with `is`
    error: script s.yaml, rule 1: the rule replies nothing; give it `content` or `tool_calls`
    error: script s.yaml, rule 1, visit: visits count from 1
    error: script s.yaml, rule 1, content: undefined value: `messages[0].id` is undefined
    error: script s.yaml, rule 1, content: undefined value: `messages[0].id` is undefined
    error: script s.yaml, rule 1, tool_calls[0].args.deep[0].q: `messages[99]` is undefined
    error: script s.yaml, rule 1, tool_calls[0].args: arguments are a map, not a list
    error: script s.yaml, rule 1, content: unknown filter: filter sluk is unknown
    error: script s.yaml, rule 1, content: there is no `debug` here
    error: script s.yaml, rule 1, content: invalid operation: not iterable
    error: script s.yaml, rule 1, content: engine ran out of fuel
    ");
}

#[test]
fn a_text_that_is_no_script_is_refused_with_line_and_column() {
    let mut shown = Vec::new();
    for text in [
        "",
        "- a",
        "rules: []",
        "schema: script/v2\nrules: []",
        "schema: script/v1",
        "schema: script/v1\nrule: []",
        "schema: script/v1\nrules:\n  - wenn: true\n    content: a",
        "schema: script/v1\nrules:\n  - content: a\n    content: b",
        "schema: script/v1\nrules:\n  - tool_calls: [{name: t, argz: {}}]",
        "schema: script/v1\nrules:\n  - tool_calls: [{name: t, args: {a: 1, a: 2}}]",
        "schema: script/v1\nrules:\n  - tool_calls: [{name: t, args: {1: 2}}]",
        "schema: script/v1\nlet:\n  a: 1\n  a: 2\nrules: []",
        "schema: script/v1\nrules:\n\t- content: a",
        "schema: script/v1\nrules:\n  - tool_calls: [{name: t, args: !x {}}]",
    ] {
        let error = Script::parse("s.yaml", text).unwrap_err().to_string();
        shown.push(error);
    }
    insta::assert_snapshot!(shown.join("\n"), @r#"
    script s.yaml: missing field `schema`
    script s.yaml: invalid type: sequence, expected a script: `schema` and `rules`
    script s.yaml: missing field `schema`
    script s.yaml: the schema `script/v2` is not known; write `schema: script/v1`
    script s.yaml: missing field `rules`
    script s.yaml: unknown field `rule`, expected one of `schema`, `description`, `let`, `rules` at line 2 column 1; did you mean `rules`?
    script s.yaml: rules[0]: unknown field `wenn`, expected one of `node`, `visit`, `when`, `content`, `tool_calls` at line 3 column 5
    script s.yaml: rules[0]: duplicate field `content` at line 3 column 5
    script s.yaml: rules[0].tool_calls[0]: unknown field `argz`, expected `name` or `args` at line 3 column 28; did you mean `args`?
    script s.yaml: rules[0].tool_calls[0].args: duplicate entry with key "a" at line 3 column 34
    script s.yaml: rules[0].tool_calls[0]: a key must be a text: put `1` in quotes at line 3 column 18
    script s.yaml: let: `a` is named twice at line 3 column 3
    script s.yaml: found character that cannot start any token at line 3 column 1, while scanning for the next token
    script s.yaml: rules[0].tool_calls[0]: the tag !x has no meaning here at line 3 column 18
    "#);
}

#[test]
fn a_script_may_be_json() {
    let text = r#"{"schema": "script/v1", "rules": [{"content": "{{ user_text }}"}]}"#;
    let script = Script::parse("s.json", text).unwrap();
    assert_eq!(show(script.reply(&request())), "1: 今天 AI");
}
