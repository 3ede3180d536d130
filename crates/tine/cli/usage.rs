//! What a thread has used.

use super::terminal::line::clean_name;
use indicatif::HumanCount;
use serde::Serialize;
use std::collections::BTreeMap;
use tine::engine::message::Role;
use tine::engine::{Checkpoint, Message, Value};

/// What the runs of a thread have spent, and what its messages say of that.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Usage {
    /// Of all runs, those replies included that are not in the conversation any more.
    tokens: u64,
    /// Millionths of the currency.
    cost_micros: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    /// By model, what the replies in the conversation have used.
    models: BTreeMap<String, OfModel>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct OfModel {
    replies: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// Whether some of it was guessed from the length of texts.
    estimated: bool,
}

impl Usage {
    /// Reads it off a checkpoint. At an `old` one, what its tasks have spent since is no part of it.
    pub(crate) fn of(checkpoint: &Checkpoint, old: bool) -> Self {
        let spent = match old {
            true => checkpoint.spent_before(),
            false => checkpoint.spent(),
        };
        let spent = spent.thread;
        let mut usage = Self {
            tokens: spent.tokens,
            cost_micros: spent.cost_micros,
            ..Self::default()
        };
        let messages = checkpoint.values.get("messages").and_then(Value::as_list);
        for item in messages.into_iter().flat_map(|list| list.iter()) {
            if let Ok(message) = Message::from_value(item)
                && message.role == Role::Ai
            {
                usage.add(&message);
            }
        }
        usage
    }

    fn add(&mut self, message: &Message) {
        let Some(used) = &message.usage_metadata else {
            return;
        };
        let metadata = |key: &str| message.response_metadata.as_ref()?.get(key);
        let tokens = |key: &str| match used.get(key) {
            Some(Value::Number(count)) => count.as_u64().unwrap_or(0),
            _ => 0,
        };
        let name = metadata("model_name").and_then(Value::as_str);
        let model = self.models.entry(name.unwrap_or("?").to_owned());
        let model = model.or_default();
        model.replies += 1;
        model.input_tokens += tokens("input_tokens");
        model.output_tokens += tokens("output_tokens");
        model.estimated |= metadata("usage_estimated") == Some(&true.into());
        let currency = metadata("cost").and_then(|cost| cost.get("currency")?.as_str());
        if let Some(currency) = currency {
            self.currency = Some(currency.to_owned());
        }
    }

    /// The lines of it: all together, then each model if there are several. None if nothing was used.
    pub(crate) fn lines(&self) -> Vec<String> {
        if self.tokens == 0 && self.models.is_empty() {
            return Vec::new();
        }
        let guessed = self.models.values().any(|model| model.estimated);
        let mut total = format!("{}{} tokens", about(guessed), HumanCount(self.tokens));
        if self.cost_micros > 0 {
            let currency = self.currency.as_deref().unwrap_or_default();
            let cost = format!(
                ", cost {} {}",
                money(self.cost_micros),
                clean_name(currency)
            );
            total.push_str(cost.trim_end());
        }
        let of_model = |(name, model): (&String, &OfModel)| {
            let replies = match model.replies {
                1 => "1 reply".to_owned(),
                replies => format!("{} replies", HumanCount(replies)),
            };
            format!(
                "{}: {replies}, {about}{} in, {about}{} out",
                clean_name(name),
                HumanCount(model.input_tokens),
                HumanCount(model.output_tokens),
                about = about(model.estimated),
            )
        };
        let models = self.models.iter().map(of_model);
        std::iter::once(total).chain(models).collect()
    }
}

fn about(guessed: bool) -> &'static str {
    if guessed { "about " } else { "" }
}

/// Millionths as a number with as many places as it has, two at least.
fn money(micros: u64) -> String {
    let places = format!("{:06}", micros % 1_000_000);
    let short = places.trim_end_matches('0');
    let places = &places[..short.len().max(2)];
    format!("{}.{places}", HumanCount(micros / 1_000_000))
}
