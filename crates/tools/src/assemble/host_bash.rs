//! Step 3: shells on the host.

use std::sync::Arc;

use super::registry::Implementation;
use super::{AssemblyError, AssemblyReport, Resolved, Step, Verdict, known};
use crate::config::{Config, Place, Sandbox};
use tine_engine::text::nearest;

/// Drops tools that would run shell commands on the host without protection.
///
/// Judged before anything is built, and by group or implementation, never by
/// the tool's name.
pub(super) fn judge<'a>(
    config: &Config,
    found: Vec<Resolved<'a>>,
    report: &mut AssemblyReport,
) -> Result<Vec<Resolved<'a>>, AssemblyError> {
    let unprotected = unprotected(config)?;
    if let Some(reason) = config.sandbox().and_then(unavailable_provider) {
        report.note(Step::HostBash, reason);
    }
    let mut kept = Vec::new();
    for (entry, implementation) in found {
        let shell = entry.group == "bash" || entry.use_path == "deerflow.sandbox.tools:bash_tool";
        match (shell, &unprotected) {
            (true, Some(reason)) => {
                report.add(
                    Step::HostBash,
                    Verdict::Dropped,
                    &entry.name,
                    reason.clone(),
                );
            }
            (true, None) if matches!(implementation, Implementation::Ready { .. }) => {
                let reason = "allowed by sandbox.allow_host_bash".to_owned();
                report.add(Step::HostBash, Verdict::Kept, &entry.name, reason);
                kept.push((entry, implementation));
            }
            _ => kept.push((entry, implementation)),
        }
    }
    Ok(kept)
}

/// Says why a shell would be unprotected; `None` when the host allows that.
fn unprotected(config: &Config) -> Result<Option<String>, AssemblyError> {
    let Some(sandbox) = config.sandbox() else {
        return Ok(Some(
            "a shell would run on the host: the configuration has no sandbox".to_owned(),
        ));
    };
    let path = &sandbox.use_path;
    if is_local(path) {
        let reason =
            "a shell would run on the host, unprotected: set sandbox.allow_host_bash to allow that";
        return Ok((!sandbox.allow_host_bash).then(|| reason.to_owned()));
    }
    if known::PROVIDERS.contains(&path.as_str()) {
        // It would isolate, but it is not there: the shell would be ours.
        return Ok(Some(format!(
            "a shell would run on the host: tine does not have {path} yet"
        )));
    }
    let providers = known::LOCAL_PROVIDERS.into_iter().chain(known::PROVIDERS);
    let unknown_place = || Place::Override {
        path: Arc::from("sandbox.use"),
        directory: Arc::from(std::path::Path::new("")),
    };
    Err(AssemblyError::UnknownSandbox {
        place: config
            .sandbox_place()
            .cloned()
            .unwrap_or_else(unknown_place),
        path: path.clone(),
        nearest: nearest(path, providers).map(str::to_owned),
    })
}

fn is_local(path: &str) -> bool {
    let derived =
        path.contains("deerflow.sandbox.local") && path.ends_with(":LocalSandboxProvider");
    known::LOCAL_PROVIDERS.contains(&path) || derived
}

fn unavailable_provider(sandbox: &Sandbox) -> Option<String> {
    let path = &sandbox.use_path;
    known::PROVIDERS.contains(&path.as_str()).then(|| {
        format!("{path} is known, but not available yet: file tools work in the thread's folders")
    })
}
