//! The built-in tools and their conditions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{AssemblyReport, BoundTool, Candidate, Scene, Step, Verdict};
use crate::builtin::{AskClarification, PresentFiles};
use crate::config::{Config, Deferral};
use crate::tool::Tool;

/// Adds the built-in tools whose conditions hold, and reports on the others.
pub(super) fn join(
    config: &Config,
    scene: &Scene,
    candidates: &mut Vec<Candidate>,
    report: &mut AssemblyReport,
) {
    add(Arc::new(PresentFiles::new()), "always", candidates, report);
    let ask: Arc<dyn Tool> = Arc::new(AskClarification::new());
    if scene.non_interactive {
        let reason = "nobody is there to be asked".to_owned();
        report.add(Step::Builtin, Verdict::Dropped, &ask.spec().name, reason);
    } else {
        add(
            ask,
            "always, where somebody can be asked",
            candidates,
            report,
        );
    }
    for (name, condition) in conditions(config, scene) {
        let reason = match condition {
            Condition::Met(why) => format!("{why}, but tine has no such tool yet"),
            Condition::NotMet(why) => why,
        };
        report.add(Step::Builtin, Verdict::Dropped, name, reason);
    }
}

fn add(
    tool: Arc<dyn Tool>,
    why: &str,
    candidates: &mut Vec<Candidate>,
    report: &mut AssemblyReport,
) {
    let tool = BoundTool::new(tool);
    report.add(Step::Builtin, Verdict::Kept, tool.name(), why.to_owned());
    let origin = "the built-in tools".to_owned();
    candidates.push(Candidate { tool, origin });
}

enum Condition {
    Met(String),
    NotMet(String),
}

fn conditions(config: &Config, scene: &Scene) -> [(&'static str, Condition); 4] {
    let vision = match &scene.model {
        Some(name) => (config.model(name), format!("there is no model `{name}`")),
        None => (config.models().first(), "there are no models".to_owned()),
    };
    let vision = match vision {
        (None, why) => Condition::NotMet(why),
        (Some(model), _) => {
            // A switch that names a variable is none: nothing is looked up.
            let sees = model
                .settings
                .with(&BTreeMap::new())
                .flag("supports_vision");
            match sees {
                Ok(Some(true)) => Condition::Met(format!("the model `{}` sees images", model.name)),
                _ => Condition::NotMet(format!(
                    "the model `{}` does not see images (supports_vision)",
                    model.name
                )),
            }
        }
    };
    let skills = match config.skill_evolution() {
        true => Condition::Met("skill_evolution is on".to_owned()),
        false => Condition::NotMet("skill_evolution is off".to_owned()),
    };
    let task = match scene.subagents {
        true => Condition::Met("subagents are on".to_owned()),
        false => Condition::NotMet("subagents are off".to_owned()),
    };
    let deferral = match config.deferral() {
        Deferral::Off => Condition::NotMet("no tools are deferred: tool_search is off".to_owned()),
        Deferral::On => Condition::Met("tool_search is on".to_owned()),
        Deferral::Auto => Condition::Met("tool_search is auto".to_owned()),
    };
    [
        ("view_image", vision),
        ("skill_manage", skills),
        ("task", task),
        ("tool_search", deferral),
    ]
}
