//! Replies that were recorded, read by the code that reads those from the wire.

use super::failure;
use super::profile;
use super::settings::Settings;
use super::stream::{Body, Reply, Told};
use super::wire::Deadline;
use crate::delta::DeltaSink;
use crate::error::ModelError;
use crate::model::ModelCx;
use crate::registry::ModelEntry;
use crate::reply::ModelReply;
use crate::request::ModelRequest;
use async_trait::async_trait;
use std::collections::VecDeque;

/// An answer of an endpoint, as it was recorded.
///
/// ```
/// use std::sync::Arc;
/// use tine_engine::SimWorld;
/// use tine_models::openai::Recorded;
/// use tine_models::{Discard, ModelCx, ModelRequest};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tine_models::ModelError> {
/// let body = br#"{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}"#;
/// let recorded = Recorded { status: 200, chunks: vec![body.to_vec()] };
/// let cx = ModelCx::new(Arc::new(SimWorld::new(0)));
/// let reply = recorded.read(&cx, &ModelRequest::default(), &mut Discard).await?;
/// assert_eq!(reply.content.text(), "Hi");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The HTTP status.
    pub status: u16,
    /// The body, cut anywhere.
    pub chunks: Vec<Vec<u8>>,
}

impl Recorded {
    /// Reads the reply to a request as a model does, whole or as a stream.
    ///
    /// # Errors
    /// If it is none: the error that the model would give.
    pub async fn read(
        &self,
        cx: &ModelCx,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let profile = profile::plain();
        let settings = serde_json::json!({"model": "recorded", "base_url": "http://localhost"});
        let entry = ModelEntry {
            name: "recorded".to_owned(),
            use_path: profile.use_path.to_owned(),
            settings: settings.as_object().cloned().unwrap_or_default(),
        };
        let settings =
            Settings::read(&entry, profile).map_err(|error| ModelError::InvalidRequest {
                model: "recorded".into(),
                message: error.to_string(),
            })?;
        if !(200..300).contains(&self.status) {
            let body = self.chunks.concat();
            return Err(failure::of_status(&settings, self.status, None, None, &body).error);
        }
        let mut body = Chunks(self.chunks.iter().cloned().collect());
        let mut told = Told::default();
        let mut deadline = Deadline::after(&*cx.world, settings.timeout);
        Reply::new(&settings, sink, &mut told)
            .read(cx, request, &mut body, &mut deadline)
            .await
    }
}

struct Chunks(VecDeque<Vec<u8>>);

#[async_trait]
impl Body for Chunks {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.pop_front())
    }
}
