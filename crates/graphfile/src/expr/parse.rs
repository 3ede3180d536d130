//! CEL text to a tree with places.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, SourceInfo, operators};

use super::functions::env;

/// Longer expressions than this belong into a `call` node.
const MAX_LENGTH: usize = 4096;
/// How deep brackets may nest.
const MAX_BRACKETS: usize = 24;
/// How many operators and dots an expression may have: each can make its tree one level deeper.
const MAX_OPERATORS: usize = 100;
/// How deep the tree of an expression may be, macros written out: evaluation walks it.
const MAX_DEPTH: usize = 32;
/// The parser takes a lot of stack for each open bracket; beyond this many it gets its own.
const BRACKETS_IN_PLACE: usize = 5;
const PARSER_STACK: usize = 32 << 20;

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) expr: IdedExpr,
    source: SourceInfo,
}

/// Where and why an expression does not parse.
#[derive(Debug)]
pub(crate) struct ParseProblem {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) problem: String,
    pub(crate) help: Option<&'static str>,
}

/// Parses an expression.
pub(crate) fn parse(text: &str) -> Result<Parsed, ParseProblem> {
    let whole = |problem: &str| ParseProblem {
        start: 0,
        end: text.len(),
        problem: problem.to_owned(),
        help: None,
    };
    if text.trim().is_empty() {
        return Err(whole("the expression is empty"));
    }
    if text.len() > MAX_LENGTH {
        return Err(whole("the expression is too long"));
    }
    if let Some(found) = borrowed_operator(text) {
        return Err(found);
    }
    let brackets = measure(text)?;
    match run_parser(text, brackets).ok_or_else(|| whole("there is no room to parse it"))? {
        Ok((expr, _)) if depth(&expr) > MAX_DEPTH => Err(ParseProblem {
            help: Some("compute parts of it in a `set` node, or all of it in a `call` node"),
            ..whole("the expression is too deep")
        }),
        Ok((expr, source)) => Ok(Parsed { expr, source }),
        Err(errors) => {
            let Some(error) = errors.errors.into_iter().next() else {
                return Err(whole("the expression does not parse"));
            };
            let start = offset(text, error.pos).min(text.len());
            let width = text[start..].chars().next().map_or(0, char::len_utf8);
            // What could have come instead is a list of token names: no help to an author.
            let problem = error.msg.trim_start_matches("Syntax error: ");
            let problem = problem.split(" expecting ").next().unwrap_or(problem);
            let problem = problem.replace("mismatched input '<EOF>'", "it ends too early");
            Err(ParseProblem {
                start,
                end: start + width,
                problem,
                help: None,
            })
        }
    }
}

type Outcome = Result<(IdedExpr, SourceInfo), cel::ParseErrors>;

/// `None` if the parser could not be given the stack it needs.
fn run_parser(text: &str, brackets: usize) -> Option<Outcome> {
    let run = || env().parser().parse_with_source_info(text);
    if brackets <= BRACKETS_IN_PLACE {
        return Some(run());
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(PARSER_STACK);
        builder.spawn_scoped(scope, run).ok()?.join().ok()
    })
}

/// Refuses what would make a tree too deep to walk; returns how deep the brackets nest.
fn measure(text: &str) -> Result<usize, ParseProblem> {
    let (mut depth, mut deepest, mut operators) = (0_usize, 0, 0_usize);
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, '.' | '+' | '-' | '*' | '/' | '%' | '?' | '!') => operators += 1,
            _ => {}
        }
        if deepest > MAX_BRACKETS || operators > MAX_OPERATORS {
            let problem = match deepest > MAX_BRACKETS {
                true => format!("brackets nest deeper than {MAX_BRACKETS}"),
                false => format!("more than {MAX_OPERATORS} operators"),
            };
            let help = Some("do the work in a `call` node");
            return Err(ParseProblem {
                start: at,
                end: at + c.len_utf8(),
                problem,
                help,
            });
        }
    }
    Ok(deepest)
}

fn depth(node: &IdedExpr) -> usize {
    let deepest = |nodes: &mut dyn Iterator<Item = &IdedExpr>| nodes.map(depth).max().unwrap_or(0);
    1 + match &node.expr {
        Expr::Call(call) => deepest(&mut call.args.iter().chain(call.target.as_deref())),
        Expr::Select(select) => depth(&select.operand),
        Expr::Comprehension(inner) => depth(&inner.iter_range).max(depth(&inner.loop_step)),
        Expr::List(list) => deepest(&mut list.elements.iter()),
        Expr::Map(map) => deepest(
            &mut map.entries.iter().filter_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => Some(&entry.value),
                EntryExpr::StructField(_) => None,
            }),
        ),
        _ => 0,
    }
}

/// Finds operators that other languages have and CEL does not.
fn borrowed_operator(text: &str) -> Option<ParseProblem> {
    let mut quote = None;
    let bytes = text.as_bytes();
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, 'a' | 'o' | 'n') => {
                let free = at == 0 || bytes[at - 1] == b' ' || bytes[at - 1] == b'(';
                let word = text[at..].split(' ').next().unwrap_or_default();
                let help = match word {
                    "and" => "write `&&`",
                    "or" => "write `||`",
                    "not" => "write `!`",
                    _ => continue,
                };
                if free && text[at + word.len()..].starts_with(' ') {
                    let end = at + word.len();
                    let problem = format!("`{word}` is no operator here");
                    return Some(ParseProblem {
                        start: at,
                        end,
                        problem,
                        help: Some(help),
                    });
                }
            }
            _ => {}
        }
    }
    None
}

/// Byte offset of a line and column, both counted from 1; the column counts bytes.
fn offset(text: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line - 1).unwrap_or(0);
    let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut at = (before + usize::try_from(column - 1).unwrap_or(0)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl Parsed {
    /// Returns the bytes of the expression a node was written at.
    ///
    /// The parser marks an operator or a dot only; the operands widen that to what was meant.
    pub(crate) fn span(&self, node: &IdedExpr) -> (usize, usize) {
        let text = &self.source.source;
        let own = self
            .source
            .offset_for(node.id)
            .map_or((0, text.len()), |(start, stop)| {
                (start as usize, (stop as usize + 1).min(text.len()))
            });
        let cover = |(start, end): (usize, usize), node: &IdedExpr| {
            let (other_start, other_end) = self.span(node);
            (start.min(other_start), end.max(other_end))
        };
        let (start, end) = match &node.expr {
            Expr::Select(select) => {
                let (start, _) = self.span(&select.operand);
                (start, self.field_span(node).1)
            }
            Expr::Call(call) => {
                let mut span = own;
                if let Some(target) = &call.target {
                    span = cover(span, target);
                }
                for argument in &call.args {
                    span = cover(span, argument);
                }
                let word = call
                    .func_name
                    .starts_with(|c: char| c.is_ascii_alphabetic());
                if word && call.target.is_none() {
                    let before = text.get(..own.0).unwrap_or_default().trim_end();
                    span.0 = span
                        .0
                        .min(before.len().saturating_sub(call.func_name.len()));
                }
                match word || call.func_name == operators::INDEX {
                    true => (span.0, self.closing(span.1)),
                    false => span,
                }
            }
            Expr::Comprehension(comprehension) => {
                let span = cover(own, &comprehension.iter_range);
                (span.0, self.closing(own.1))
            }
            Expr::List(_) | Expr::Map(_) => (own.0, self.closing(own.0 + 1)),
            _ => own,
        };
        (start.min(text.len()), end.min(text.len()))
    }

    /// Returns the bytes of the field name of a selection.
    pub(crate) fn field_span(&self, node: &IdedExpr) -> (usize, usize) {
        let Expr::Select(select) = &node.expr else {
            return self.span(node);
        };
        let text = &self.source.source;
        let (_, after) = self.span(&select.operand);
        match text
            .get(after..)
            .and_then(|rest| rest.find(select.field.as_str()))
        {
            Some(at) => (after + at, after + at + select.field.len()),
            None => (after, after),
        }
    }

    /// Returns the bytes of the name of a called function.
    pub(crate) fn name_span(&self, node: &IdedExpr) -> (usize, usize) {
        let (Expr::Call(call), Some((bracket, _))) = (&node.expr, self.source.offset_for(node.id))
        else {
            return self.span(node);
        };
        let before = self
            .source
            .source
            .get(..bracket as usize)
            .unwrap_or_default();
        let end = before.trim_end().len();
        match before.trim_end().ends_with(call.func_name.as_str()) {
            true => (end - call.func_name.len(), end),
            false => self.span(node),
        }
    }

    /// Returns the end of the bracket that is open at `from`.
    fn closing(&self, from: usize) -> usize {
        let text = &self.source.source;
        let mut depth = 1_usize;
        let mut quote = None;
        // A call is marked at its opening bracket, its operands may end behind it.
        for (at, c) in text.get(from..).unwrap_or_default().char_indices() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '(' | '[' | '{') => depth += 1,
                (None, ')' | ']' | '}') => {
                    depth -= 1;
                    if depth == 0 {
                        return from + at + 1;
                    }
                }
                _ => {}
            }
        }
        text.trim_end().len()
    }
}

/// Turns comparisons round so that a side that may hold a shared value stands left.
///
/// The interpreter asks the left side whether it equals the right one, and its own lists and maps
/// do not know shared ones.
pub(super) fn shared_side_left(mut node: IdedExpr) -> IdedExpr {
    fn shares(node: &IdedExpr) -> u8 {
        match &node.expr {
            Expr::Ident(_) | Expr::Select(_) => 3,
            Expr::Call(call) if call.func_name == operators::INDEX => 3,
            Expr::Call(call) if call.func_name == operators::CONDITIONAL => 1,
            Expr::Call(_) => 2,
            _ => 0,
        }
    }
    let turn = |child: &mut IdedExpr| *child = shared_side_left(std::mem::take(child));
    match &mut node.expr {
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                turn(target);
            }
            call.args.iter_mut().for_each(turn);
            let compares =
                [operators::EQUALS, operators::NOT_EQUALS].contains(&call.func_name.as_str());
            if let (true, [left, right]) = (compares, call.args.as_mut_slice())
                && shares(right) > shares(left)
            {
                std::mem::swap(left, right);
            }
        }
        Expr::Comprehension(inner) => {
            turn(&mut inner.iter_range);
            turn(&mut inner.loop_cond);
            turn(&mut inner.loop_step);
            turn(&mut inner.result);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(turn),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    turn(&mut entry.value);
                }
            }
        }
        Expr::Select(select) => turn(&mut select.operand),
        _ => {}
    }
    node
}
