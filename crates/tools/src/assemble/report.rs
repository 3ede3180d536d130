use std::fmt;

use serde::Serialize;

/// A step of assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The configuration's list, filtered by groups.
    Config,
    /// Names of implementations looked up.
    Resolve,
    /// Shells on the host.
    HostBash,
    /// Built-in tools and their conditions.
    Builtin,
    /// Tools of MCP servers and ACP agents.
    External,
    /// Names that stand twice.
    Names,
    /// Allow-lists and deny-lists of the scene.
    Lists,
}

impl Step {
    const ALL: [Self; 7] = [
        Self::Config,
        Self::Resolve,
        Self::HostBash,
        Self::Builtin,
        Self::External,
        Self::Names,
        Self::Lists,
    ];

    /// Names the step as the report does.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Config => "1. configured tools, by group",
            Self::Resolve => "2. implementations",
            Self::HostBash => "3. shells on the host",
            Self::Builtin => "4. built-in tools",
            Self::External => "5. MCP and ACP",
            Self::Names => "6. names that stand twice",
            Self::Lists => "then: allow-lists",
        }
    }
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The tool goes on to the next step.
    Kept,
    /// The tool is left out.
    Dropped,
    /// Nothing was decided; worth knowing.
    Noted,
}

/// One decision of assembly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// When it was made.
    pub step: Step,
    /// The tool it is about, by the model's name.
    pub tool: Option<String>,
    /// What was decided.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
}

/// Why the toolbox is what it is: every decision, in order.
///
/// Printed, it is a text for people; serialised, one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AssemblyReport {
    /// The configuration's file.
    pub config: String,
    /// All decisions.
    pub decisions: Vec<Decision>,
    /// The names of the toolbox.
    pub tools: Vec<String>,
    /// What the configuration holds without effect.
    pub notes: Vec<String>,
}

impl AssemblyReport {
    pub(super) fn add(&mut self, step: Step, verdict: Verdict, tool: &str, reason: String) {
        self.decisions.push(Decision {
            step,
            tool: Some(tool.to_owned()),
            verdict,
            reason,
        });
    }

    pub(super) fn note(&mut self, step: Step, reason: impl Into<String>) {
        self.decisions.push(Decision {
            step,
            tool: None,
            verdict: Verdict::Noted,
            reason: reason.into(),
        });
    }

    /// Lists what was decided about one tool.
    pub fn about(&self, tool: &str) -> impl Iterator<Item = &Decision> {
        self.decisions
            .iter()
            .filter(move |decision| decision.tool.as_deref() == Some(tool))
    }
}

impl fmt::Display for AssemblyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tools of {}", self.config)?;
        let names = self.decisions.iter().filter_map(|d| d.tool.as_deref());
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0);
        for step in Step::ALL {
            writeln!(f, "\n{}", step.title())?;
            let mut any = false;
            for decision in self.decisions.iter().filter(|d| d.step == step) {
                any = true;
                let mark = match decision.verdict {
                    Verdict::Kept => '+',
                    Verdict::Dropped => '-',
                    Verdict::Noted => '·',
                };
                match &decision.tool {
                    Some(tool) => writeln!(f, "  {mark} {tool:width$}  {}", decision.reason)?,
                    None => writeln!(f, "  {mark} {}", decision.reason)?,
                }
            }
            if !any {
                writeln!(f, "  · nothing to decide")?;
            }
        }
        match self.tools.as_slice() {
            [] => writeln!(f, "\nno tools")?,
            tools => writeln!(f, "\n{} tools: {}", tools.len(), tools.join(", "))?,
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}
