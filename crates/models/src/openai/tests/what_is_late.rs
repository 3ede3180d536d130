//! What comes late, and how long it is waited for.

use super::*;
use crate::model::ModelCx;
use crate::openai::stream::{Body, Reply, Told};
use crate::openai::wire::Deadline;
use crate::{Discard, ModelError};
use async_trait::async_trait;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tine_engine::world::Id;
use tine_engine::{SimWorld, Timestamp, World};

/// Notes what is waited for; nothing of it ever comes.
struct Waiting(SimWorld, Mutex<Vec<u64>>);

#[async_trait]
impl World for Waiting {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn new_id(&self) -> Id {
        self.0.new_id()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    async fn sleep(&self, limit: Duration) {
        self.1.lock().unwrap().push(limit.as_secs());
        std::future::pending::<()>().await;
    }
}

/// Gives none of its bytes at once, and breaks at the end.
struct Slow(VecDeque<String>);

#[async_trait]
impl Body for Slow {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        tokio::task::yield_now().await;
        match self.0.pop_front() {
            Some(bytes) => Ok(Some(bytes.into_bytes())),
            None => Err("gone".to_owned()),
        }
    }
}

#[tokio::test]
async fn only_what_says_something_is_a_sign_of_life() {
    let check = async |chunks: &[&str], whole: bool, expected: &[u64]| {
        let settings = settings(PLAIN, json!({"timeout": 100, "stream_chunk_timeout": 40}));
        let world = Arc::new(Waiting(SimWorld::new(0), Mutex::default()));
        let cx = ModelCx::new(world.clone());
        let mut body = Slow(chunks.iter().map(|chunk| (*chunk).to_owned()).collect());
        let (mut sink, mut told) = (Discard, Told::default());
        let mut deadline = Deadline::after(&*cx.world, settings.timeout);
        let reply = Reply::new(&settings, &mut sink, &mut told)
            .read(&cx, &ModelRequest::default(), &mut body, &mut deadline)
            .await;
        match (reply, whole) {
            (Ok(_), true) | (Err(ModelError::BrokeOff { .. }), false) => {}
            (other, _) => panic!("{other:?}"),
        }
        assert_eq!(*world.1.lock().unwrap(), expected, "{chunks:?}");
    };
    let text = "data: {\"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n\n";
    let end = "data: {\"choices\": [{\"finish_reason\": \"stop\"}]}\n\n";
    let nothing = ["id: 7\n\n", "event: ping\n\n", ": here\n\n", "data:\n\n"];
    // The last one waits for what comes after the piece before.
    check(&[text], false, &[100, 40]).await;
    check(&[text, text], false, &[100, 40, 40]).await;
    check(
        &[&[text], &nothing[..], &nothing[..]].concat(),
        false,
        &[100, 40],
    )
    .await;
    check(&[&nothing[..], &[text]].concat(), false, &[100, 40, 40]).await;
    // What has ended is not waited for as long.
    check(&[text, end], true, &[100, 40, 5]).await;
    check(&[&[text, end], &nothing[..]].concat(), true, &[100, 40, 5]).await;
    check(&["{\"choices\": [", "{\"finish", "_rea"], false, &[100]).await;
}
