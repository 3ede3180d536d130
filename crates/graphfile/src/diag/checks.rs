//! The checks, each declared once: code, level, summary, and the page that explains it.

use super::Level;

/// A rule a graph file must keep.
#[derive(Debug)]
pub struct Check {
    /// The stable code, such as `G302`.
    pub code: &'static str,
    /// The level its findings have unless they say otherwise.
    pub level: Level,
    /// One line on what it finds.
    pub summary: &'static str,
    /// The page of Markdown that explains it: cause, example, fix.
    pub page: &'static str,
}

macro_rules! declare_checks {
    ($($code:ident = $level:ident, $summary:literal;)*) => {
        $(pub(crate) static $code: Check = Check {
            code: stringify!($code),
            level: Level::$level,
            summary: $summary,
            page: include_str!(concat!("../../docs/", stringify!($code), ".md")),
        };)*

        /// Every check, by code.
        pub static CHECKS: &[&Check] = &[$(&$code),*];
    };
}

declare_checks! {
    G001 = Error, "the text is not one plain YAML document";
    G002 = Error, "a key the format does not know";
    G003 = Error, "a key given twice";
    G004 = Error, "a value of the wrong kind";
    G005 = Error, "an anchor, alias, merge key or tag";
    G006 = Error, "an unknown or newer `schema`";
    G007 = Error, "a part of the format that this version does not run";
    G008 = Error, "a required key is missing";
    G101 = Error, "a target that is no node";
    G102 = Error, "an unknown type, or a type that contains itself";
    G103 = Error, "a schema keyword outside the supported subset";
    G104 = Error, "an unknown tool, toolset, model alias or function";
    G106 = Error, "a reserved or malformed name";
    G107 = Error, "a file the graph names cannot be read";
    G108 = Error, "a node that the host cannot make";
    G201 = Error, "an undeclared name in an expression, a template or a write";
    G202 = Error, "an unknown field of a known type";
    G203 = Error, "an expression whose types do not fit together";
    G204 = Error, "a value outside an enum";
    G205 = Error, "a value that does not fit its channel, answer or argument";
    G206 = Warning, "an optional value used without `has`";
    G207 = Error, "a reducer that does not fit the channel's type";
    G208 = Error, "a name that is not available here";
    G209 = Error, "an expression or template that does not parse";
    G210 = Error, "an unknown function in an expression or template";
    G301 = Error, "a node that no edge reaches";
    G302 = Error, "two nodes of one step may write a channel that keeps one value a step";
    G303 = Error, "a cycle without a way out, or without a bound";
    G304 = Error, "a list of branches without `else`, or a branch that never decides";
    G305 = Error, "a route a tool can return and the node does not map";
    G306 = Error, "a join that can never be complete";
    G307 = Error, "a stop for a person in a graph that runs without a checkpointer";
    G309 = Warning, "a channel that is never written or never read";
    G310 = Error, "a tool offered to a model but not allowed where its calls run";
    G501 = Error, "something that looks like a secret";
    G502 = Warning, "state pasted into the arguments of a shell tool";
}

/// Returns the page that explains a check, if there is one of that code.
///
/// The code is matched without regard to case: `g302` works.
pub fn explain(code: &str) -> Option<&'static str> {
    CHECKS
        .iter()
        .find(|check| check.code.eq_ignore_ascii_case(code))
        .map(|check| check.page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_opens_with_its_code_and_has_an_example_and_a_fix() {
        for check in CHECKS {
            let first = check.page.lines().next().unwrap_or_default();
            assert!(
                first.starts_with(&format!("# {}: ", check.code)),
                "{}: {first}",
                check.code
            );
            assert!(
                check.page.contains("```yaml"),
                "{} shows no example",
                check.code
            );
            assert!(check.page.contains("## Fix"), "{} names no fix", check.code);
        }
    }

    #[test]
    fn codes_stand_in_order_and_once() {
        let codes: Vec<_> = CHECKS.iter().map(|check| check.code).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }

    #[test]
    fn a_code_is_explained_in_either_case() {
        assert!(explain("g302").is_some());
        assert!(explain("G999").is_none());
    }
}
