//! Expressions, evaluated and compared with what they are worth.

use indexmap::IndexMap;
use serde_json::json;
use tine_engine::Value;

use super::{Expression, Facts, Scene, parse};
use crate::graph::Channels;
use crate::types::{Type, Types};

/// A state given as JSON.
#[derive(Debug)]
struct Given(Value);

impl Facts for Given {
    fn channel(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }

    fn run(&self) -> Value {
        Value::from_json(
            json!({"step": 4, "visits": 2, "thread": "t", "id": "r", "now": "", "depth": 0}),
        )
    }
}

fn channels() -> Channels {
    let optional = |name: &str| (name.to_owned(), Type::optional(Type::text()));
    let state: IndexMap<String, Type> = ["plan", "empty"].map(optional).into_iter().collect();
    Channels::new(&state, &Types::default())
}

fn given() -> Given {
    Given(Value::from_json(json!({
        "n": 3, "half": 0.5, "big": 9_007_199_254_740_993_i64, "text": "a中b", "yes": true,
        "list": [1, 2, 3], "names": ["x", "y"], "record": {"a": 1, "b": {"c": "d"}, "nil": null},
        "messages": [
            {"type": "human", "content": "hello"},
            {"type": "ai", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
             "tool_calls": [{"name": "t", "args": {}, "id": "1"}]},
        ],
        "plan": {"title": "P", "steps": []}, "empty": null, "zero": null,
    })))
}

/// Evaluates with and without the native form; both have to agree.
fn eval(text: &str) -> String {
    let (given, channels) = (given(), channels());
    let scene = Scene::new(&given, &channels);
    let parsed = parse(text).unwrap_or_else(|problem| panic!("{text}: {}", problem.problem));
    let compiled = Expression::new(text, &parsed);
    let show = |expression: &Expression| match expression.eval(&scene) {
        Ok(value) => value.to_canonical(),
        Err(error) => error.to_string(),
    };
    let (fast, slow) = (show(&compiled), show(&compiled.without_native()));
    assert_eq!(fast, slow, "{text}");
    fast
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(eval(text), *expected, "{text}");
    }
}

#[test]
fn integers_of_the_state_are_integers() {
    check(&[
        ("state.n + 1", "4"),
        ("state.n * 2 - 1 == 5", "true"),
        ("state.list[0] + state.n", "4"),
        ("state.n > 2.5", "true"),
        ("state.n == 3.0", "true"),
        ("state.half + 1.0", "1.5"),
        ("state.half < state.n", "true"),
        ("state.big == 9007199254740993", "true"),
        ("state.big == 9007199254740992", "false"),
        ("state.big > 9007199254740992.0", "false"),
        ("-state.n", "-3"),
        (
            "9223372036854775807 + state.n",
            "`9223372036854775807 + state.n`: the result is too large for an integer",
        ),
        ("state.n / 0", "`state.n / 0`: division by zero"),
    ]);
}

#[test]
fn lists_and_maps_of_the_state_behave_like_literals() {
    check(&[
        ("state.list == [1, 2, 3]", "true"),
        ("[1, 2, 3] == state.list", "true"),
        ("[1, 2] != state.list", "true"),
        ("state.list.map(i, i * 2)", "[2,4,6]"),
        ("state.list.map(i, i) == state.list", "true"),
        ("state.list.filter(i, i > 1)", "[2,3]"),
        (
            "state.list.exists(i, i == 2) && state.list.all(i, i < 4)",
            "true",
        ),
        ("state.list + [4]", "[1,2,3,4]"),
        ("[0] + state.list", "[0,1,2,3]"),
        ("state.list + state.list", "[1,2,3,1,2,3]"),
        ("2 in state.list", "true"),
        ("'z' in state.names", "false"),
        ("'a' in state.record", "true"),
        ("size(state.list)", "3"),
        ("size(state.record)", "3"),
        ("size(state.text)", "3"),
        ("state.list.size() == 3", "true"),
        (
            "state.record == {'a': 1, 'b': {'c': 'd'}, 'nil': null}",
            "true",
        ),
        (
            "{'a': state.n, 'b': state.record.b}",
            r#"{"a":3,"b":{"c":"d"}}"#,
        ),
        ("state.record.map(k, k)", r#"["a","b","nil"]"#),
        ("state.record['a']", "1"),
        ("state.record.b.c.startsWith('d')", "true"),
        ("state.list[7]", "`state.list[7]`: no item at 7"),
        ("[1][5]", "`[1][5]`: no item at 5"),
        ("state.list", "[1,2,3]"),
    ]);
}

#[test]
fn what_has_no_value_is_absent() {
    check(&[
        ("has(state.plan)", "true"),
        ("has(state.empty)", "false"),
        ("has(state.never)", "false"),
        ("has(state.zero)", "true"),
        ("state.zero == null", "true"),
        ("has(state.plan.title)", "true"),
        ("has(state.plan.none)", "false"),
        ("has(state.empty) && state.empty.x == 1", "false"),
        ("!has(state.empty) || state.empty.x == 1", "true"),
        ("has(state.empty) ? state.empty.x : 'none'", "\"none\""),
        (
            "state.empty == 'x'",
            "`state.empty == 'x'`: `empty` has no value",
        ),
        (
            "state.record.none",
            "`state.record.none`: `none` has no value",
        ),
        ("has(state.record.nil)", "true"),
        ("state.never && false", "false"),
        ("nothing", "`nothing`: nothing is named `nothing`"),
    ]);
}

#[test]
fn conditions_hold_as_plain_look_ups_and_as_expressions() {
    check(&[
        ("state.yes", "true"),
        ("!state.yes", "false"),
        ("state.yes && state.n == 3", "true"),
        ("state.n != 3 || state.text == 'a中b'", "true"),
        ("state.n >= 3", "true"),
        ("state.n <= 2", "false"),
        ("state.half > 0.5", "false"),
        ("state.record.b.c == 'd'", "true"),
        ("state.list == 'x'", "false"),
        ("run.visits < 3", "true"),
        ("run.step", "4"),
        ("has_tool_calls(last(state.messages))", "true"),
        ("has_tool_calls(first(state.messages))", "false"),
        (
            "text(first(state.messages)) + '/' + text(last(state.messages))",
            "\"hello/onetwo\"",
        ),
        ("size(tool_calls(last(state.messages)))", "1"),
        ("tool_calls(first(state.messages))", "[]"),
        ("last([])", "`last([])`: `last`: the list is empty"),
        ("string(state.n) + '!'", "\"3!\""),
        (
            "int('4') + double('1.5') > 1.0",
            "`int('4') + double('1.5') > 1.0`: `add` does not take operands of these types",
        ),
    ]);
}

#[test]
fn a_condition_is_true_or_false() {
    let (given, channels) = (given(), channels());
    let scene = Scene::new(&given, &channels);
    let holds = |text: &str| {
        let expression = Expression::new(text, &parse(text).unwrap());
        expression.holds(&scene).map_err(|error| error.to_string())
    };
    assert_eq!(holds("state.n > 1"), Ok(true));
    assert_eq!(
        holds("state.n"),
        Err("`state.n`: a condition is true or false, this is 3".to_owned())
    );
}

#[test]
fn a_place_in_an_expression_covers_what_was_meant() {
    let span = |text: &str, pick: &str| {
        fn find<'e>(node: &'e cel::IdedExpr, pick: &str) -> Option<&'e cel::IdedExpr> {
            use cel::common::ast::Expr;
            let hit = match &node.expr {
                Expr::Call(call) => call.func_name == pick,
                Expr::Select(select) => select.field == pick,
                Expr::Comprehension(_) => pick == "macro",
                Expr::List(_) => pick == "list",
                _ => false,
            };
            if hit {
                return Some(node);
            }
            match &node.expr {
                Expr::Call(call) => call
                    .target
                    .as_deref()
                    .into_iter()
                    .chain(&call.args)
                    .find_map(|n| find(n, pick)),
                Expr::Select(select) => find(&select.operand, pick),
                Expr::Comprehension(inner) => {
                    find(&inner.iter_range, pick).or_else(|| find(&inner.loop_step, pick))
                }
                _ => None,
            }
        }
        let parsed = parse(text).unwrap();
        let (start, end) = parsed.span(find(&parsed.expr, pick).unwrap());
        text[start..end].to_owned()
    };
    assert_eq!(span("1 + size(state.abc) > 2", "size"), "size(state.abc)");
    assert_eq!(span("!has(state.abc.de)", "de"), "state.abc.de");
    assert_eq!(
        span("state.a.exists(m, m.b > (1)) && true", "macro"),
        "state.a.exists(m, m.b > (1))"
    );
    assert_eq!(span("'中' in ['中', ')'] || x", "list"), "['中', ')']");
    assert_eq!(
        span("state.a .startsWith( 'b' )", "startsWith"),
        "state.a .startsWith( 'b' )"
    );
    assert_eq!(span("1 +  state.n", "_+_"), "1 +  state.n");
}

#[test]
fn what_does_not_parse_says_where() {
    let problem = |text: &str| {
        let problem = parse(text).unwrap_err();
        format!("{}..{} {}", problem.start, problem.end, problem.problem)
    };
    assert_eq!(problem("state.a =="), "10..10 it ends too early");
    assert_eq!(problem("中 == 1"), "0..3 token recognition error at: '中'");
    assert_eq!(problem("a or b"), "2..4 `or` is no operator here");
    assert_eq!(problem("  "), "0..2 the expression is empty");
    assert!(parse("'a or b' == state.x && state.note == 'not x'").is_ok());
    assert_eq!(
        problem(&"(".repeat(2000)),
        "24..25 brackets nest deeper than 24"
    );
    assert_eq!(
        problem(&"1+".repeat(2000)),
        "201..202 more than 100 operators"
    );
}

#[test]
fn the_deepest_expressions_are_refused_or_evaluated() {
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{'a':", "1", "}"),
        ("string(", "1", ")"),
        ("[1].exists(i, ", "true", ")"),
        ("[[1]].map(i, ", "i", ")"),
        ("1+", "1", ""),
        ("true ? 1 : ", "2", ""),
        ("!", "true", ""),
        ("true && ", "true", ""),
        ("", "state", ".plan"),
    ] {
        for times in 1..120 {
            let text = format!("{}{inner}{}", open.repeat(times), close.repeat(times));
            if parse(&text).is_ok() {
                eval(&text);
            }
        }
    }
}
