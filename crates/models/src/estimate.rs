//! Tokens that nobody counted, from the length of texts.

use crate::reply::{ModelReply, ReplyCall, Usage};
use crate::request::ModelRequest;

impl Usage {
    /// Guesses what a request took, and a reply of so many characters: a quarter of the characters.
    #[must_use]
    pub fn estimate(request: &ModelRequest, output_chars: usize) -> Self {
        Self {
            input_tokens: tokens(input_chars(request)),
            output_tokens: tokens(output_chars),
            estimated: true,
            ..Self::default()
        }
    }

    /// What a reply took: as the provider says, or else as its length lets guess.
    #[must_use]
    pub fn of(request: &ModelRequest, reply: &ModelReply) -> Self {
        reply
            .usage
            .unwrap_or_else(|| Self::estimate(request, reply_chars(reply)))
    }
}

fn reply_chars(reply: &ModelReply) -> usize {
    let call = |call: &ReplyCall| match call {
        ReplyCall::Valid(call) => {
            call.name.chars().count() + call.args.to_canonical().chars().count()
        }
        ReplyCall::Invalid(call) => {
            let parts = [&call.name, &call.args].into_iter().flatten();
            parts.map(|part| part.chars().count()).sum()
        }
    };
    let thought = reply.reasoning.as_deref().unwrap_or_default();
    let calls: usize = reply.calls.iter().map(call).sum();
    reply.content.text().chars().count() + thought.chars().count() + calls
}

fn tokens(chars: usize) -> u64 {
    chars.div_ceil(4) as u64
}

fn input_chars(request: &ModelRequest) -> usize {
    let system = request.system.as_deref().unwrap_or_default();
    let messages = request.messages.iter().map(|message| {
        let calls = message.tool_calls.iter();
        let calls =
            calls.map(|call| call.name.chars().count() + call.args.to_canonical().chars().count());
        message.content.text().chars().count() + calls.sum::<usize>()
    });
    let tools = request.tools.iter().map(|tool| {
        let schema = tool.parameters.to_string();
        [&*tool.name, &*tool.description, &*schema]
            .map(|text| text.chars().count())
            .iter()
            .sum::<usize>()
    });
    system.chars().count() + messages.sum::<usize>() + tools.sum::<usize>()
}
