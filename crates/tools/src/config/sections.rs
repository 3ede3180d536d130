//! The top-level keys of a configuration.

/// Keys that assembly reads.
pub(super) const READ: [&str; 9] = [
    "config_version",
    "models",
    "sandbox",
    "skill_evolution",
    "subagents",
    "tool_groups",
    "tool_search",
    "tools",
    "uploads",
];

/// Keys of DeerFlow's format that nothing reads yet: accepted, and said so.
pub(super) const NOT_READ: [&str; 38] = [
    "acp_agents",
    "agent_storage",
    "agents_api",
    "auth",
    "authorization",
    "channel_connections",
    "channels",
    "checkpoint_delta_snapshot_frequency",
    "checkpointer",
    "circuit_breaker",
    "database",
    "dedupe_storage",
    "extensions",
    "guardrails",
    "input_polish",
    "llm_call",
    "log_level",
    "logging",
    "loop_detection",
    "max_recursion_limit",
    "mcp_tasks",
    "memory",
    "plugins",
    "read_before_write",
    "run_events",
    "run_ownership",
    "safety_finish_reason",
    "scheduler",
    "skill_scan",
    "skills",
    "stream_bridge",
    "suggestions",
    "summarization",
    "title",
    "token_budget",
    "token_usage",
    "tool_output",
    "tool_progress",
];

pub(super) fn known() -> impl Iterator<Item = &'static str> {
    READ.into_iter().chain(NOT_READ)
}

/// The keys that are read of a section of settings; `None` if nothing in it
/// is.
pub(super) fn keys(section: &str) -> Option<&'static [&'static str]> {
    match section {
        "sandbox" => Some(&[
            "allow_host_bash",
            "ls_output_max_chars",
            "read_file_output_max_chars",
            "use",
        ]),
        "skill_evolution" | "tool_search" => Some(&["enabled"]),
        "uploads" => Some(&["max_file_size", "max_files", "max_total_size"]),
        _ => None,
    }
}
