//! How the endpoints that speak chat completions differ.

/// What one implementation of `use:` sends otherwise than the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    /// The name in `use:`.
    pub(crate) use_path: &'static str,
    /// Where requests go without `base_url`.
    pub(crate) base: &'static str,
    /// The variable that a key for it is usually in.
    pub(crate) variable: &'static str,
    /// The field in which the reasoning of earlier replies is sent back; some endpoints want it, others refuse it.
    pub(crate) reasoning: Option<&'static str>,
    /// Whether what the provider attached to calls and replies is sent back: signatures of its reasoning.
    pub(crate) attachments: bool,
    /// Whether a reply without text is sent back as `""`; otherwise it is `null`.
    pub(crate) empty_text: bool,
    /// Whether the shape of a reply can be given as a schema; otherwise the instructions say it.
    pub(crate) json_schema: bool,
    /// Whether users are named.
    pub(crate) names: bool,
    /// Whether the reasoning of a stream is repeated from its beginning in each piece.
    pub(crate) reasoning_repeats: bool,
    /// What is sent beside the settings, as a JSON object.
    pub(crate) body: &'static str,
}

const OPENAI: Profile = Profile {
    use_path: "langchain_openai:ChatOpenAI",
    base: "https://api.openai.com/v1",
    variable: "OPENAI_API_KEY",
    reasoning: None,
    attachments: false,
    empty_text: false,
    json_schema: true,
    names: true,
    reasoning_repeats: false,
    body: "{}",
};

const DEEPSEEK: Profile = Profile {
    use_path: "langchain_deepseek:ChatDeepSeek",
    base: "https://api.deepseek.com/v1",
    variable: "DEEPSEEK_API_KEY",
    empty_text: true,
    json_schema: false,
    ..OPENAI
};

const PROFILES: [Profile; 8] = [
    OPENAI,
    DEEPSEEK,
    Profile {
        use_path: "deerflow.models.patched_openai:PatchedChatOpenAI",
        reasoning: Some("reasoning_content"),
        attachments: true,
        ..OPENAI
    },
    Profile {
        use_path: "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
        reasoning: Some("reasoning_content"),
        ..DEEPSEEK
    },
    Profile {
        use_path: "deerflow.models.patched_mimo:PatchedChatMiMo",
        base: "https://api.xiaomimimo.com/v1",
        variable: "MIMO_API_KEY",
        reasoning: Some("reasoning_content"),
        empty_text: true,
        ..OPENAI
    },
    Profile {
        use_path: "deerflow.models.patched_minimax:PatchedChatMiniMax",
        base: "https://api.minimax.io/v1",
        variable: "MINIMAX_API_KEY",
        attachments: true,
        empty_text: true,
        names: false,
        reasoning_repeats: true,
        body: r#"{"reasoning_split": true}"#,
        ..OPENAI
    },
    Profile {
        use_path: "deerflow.models.patched_stepfun:PatchedChatStepFun",
        base: "https://api.stepfun.com/v1",
        variable: "STEPFUN_API_KEY",
        reasoning: Some("reasoning_content"),
        empty_text: true,
        ..OPENAI
    },
    Profile {
        use_path: "deerflow.models.vllm_provider:VllmChatModel",
        reasoning: Some("reasoning"),
        empty_text: true,
        ..OPENAI
    },
];

/// The names in `use:` that are spoken to like this.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|profile| profile.use_path)
}

/// The profile of a name in `use:`.
pub(crate) fn profile(use_path: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.use_path == use_path)
}

/// The profile of OpenAI itself.
pub(crate) fn plain() -> &'static Profile {
    &OPENAI
}
