//! Several steps as one checkpoint, for runs that do not store each.

use super::{Advance, Source, by_edges};
use crate::channel::Effect;

impl Advance {
    /// The checkpoint that stands for this one and the one that follows it, with nothing stored between them.
    #[must_use]
    pub(crate) fn then(self, next: Self) -> Self {
        let ran = match next.source {
            Source::Loop => by_edges(&self.next),
            _ => Vec::new(),
        };
        let mut effects = self.effects;
        for change in next.effects {
            match effects
                .iter_mut()
                .find(|known| known.channel == change.channel)
            {
                Some(known) => append(&mut known.effects, change.effects),
                None => effects.push(change),
            }
        }
        Self {
            parent: self.parent,
            effects,
            ran: if ran.is_empty() { self.ran } else { ran },
            ..next
        }
    }
}

/// Adds changes; what they overwrite is left out.
fn append(known: &mut Vec<Effect>, mut more: Vec<Effect>) {
    let whole = |effect: &Effect| matches!(effect, Effect::Set(_) | Effect::Unset);
    if let Some(last) = more.iter().rposition(whole) {
        known.clear();
        // What comes before it in the same step fits only what was just dropped.
        more.drain(..last);
    }
    known.extend(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{ChannelEffects, PlannedTask};
    use crate::value::Value;
    use crate::world::{Id, Timestamp};

    fn advance(id: u128, source: Source, effects: &[(&str, Effect)], next: &[&str]) -> Advance {
        Advance {
            id: Id(id),
            parent: id.checked_sub(2).map(|_| Id(id - 1)),
            step: i64::try_from(id).unwrap(),
            source,
            created: Timestamp(id as u64),
            run: Id(9),
            invocation: None,
            effects: effects
                .iter()
                .map(|(channel, effect)| ChannelEffects {
                    channel: (*channel).into(),
                    effects: vec![effect.clone()],
                })
                .collect(),
            next: next
                .iter()
                .map(|node| PlannedTask::Node((*node).into()))
                .collect(),
            joins: [].into(),
            deferred: Vec::new(),
            ran: Vec::new(),
            records: Vec::new(),
        }
    }

    #[test]
    fn two_steps_are_one() {
        let one = Effect::Append(Value::from(1));
        let set = Effect::Set(Value::from(2));
        let first = advance(
            1,
            Source::Loop,
            &[("a", one.clone()), ("b", one.clone())],
            &["n", "m"],
        );
        let second = advance(
            2,
            Source::Loop,
            &[("b", set.clone()), ("a", one.clone()), ("c", Effect::Unset)],
            &["o"],
        );
        let merged = first.then(second);
        assert_eq!(
            merged.effects,
            [
                ChannelEffects {
                    channel: "a".into(),
                    effects: vec![one.clone(), one]
                },
                ChannelEffects {
                    channel: "b".into(),
                    effects: vec![set]
                },
                ChannelEffects {
                    channel: "c".into(),
                    effects: vec![Effect::Unset]
                },
            ]
        );
        assert_eq!((merged.id, merged.parent, merged.step), (Id(2), None, 2));
        assert_eq!(merged.ran, ["n".into(), "m".into()]);
        assert_eq!(merged.next, [PlannedTask::Node("o".into())]);
    }

    #[test]
    fn what_a_later_change_of_the_same_step_overwrites_is_left_out() {
        let put = |key: &str| Effect::Put(key.into(), Value::from(1));
        let mut known = vec![Effect::Set(Value::map()), put("a")];
        append(
            &mut known,
            vec![put("b"), Effect::Set(Value::map()), put("c")],
        );
        assert_eq!(known, [Effect::Set(Value::map()), put("c")]);
    }

    #[test]
    fn an_update_and_a_step_without_nodes_leave_who_ran_last() {
        let first = advance(1, Source::Loop, &[], &["n"]);
        let second = advance(2, Source::Loop, &[], &[]);
        let update = advance(3, Source::Update, &[], &["o"]);
        let merged = first.then(second).then(update);
        assert_eq!(merged.ran, ["n".into()]);
    }
}
