//! Keys, which no error shows.

use crate::openai::*;
use crate::world::TestWorld;
use serde_json::json;
use std::sync::Arc;
use tine_models::{ModelCx, ModelRequest};
use tine_testkit::provider::{Exchange, Provider};

#[tokio::test]
async fn a_key_is_never_shown() {
    let provider = Provider::start([failing(
        400,
        json!({"error": {"message": format!("{KEY} {KEY} header-secret")}}),
    )])
    .unwrap();
    let model = model(
        &provider.base_url(),
        json!({"default_headers": {"X-Key": "header-secret"}}),
    );
    assert!(!format!("{model:?}").contains("secret"), "{model:?}");
    let cx = ModelCx::new(Arc::new(TestWorld::new()));
    let error = model
        .stream(&cx, &ModelRequest::default(), &mut tine_models::Discard)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "model `default` can not take the request: HTTP 400: *** *** ***"
    );
    assert!(!format!("{error:?}").contains("secret"));
}

#[tokio::test]
async fn a_key_is_not_shown_where_a_text_is_cut() {
    // Where the cut falls into it, and around.
    for before in [280, 290, 299, 980, 990, 999] {
        let text = format!("{}{KEY} more", "x".repeat(before));
        for exchange in [
            failing(400, json!({"error": {"message": text}})),
            Exchange::new("text/plain", text.clone()).status(400),
            Exchange::new("text/plain", text.clone()),
            Exchange::events(&[json!({"error": {"message": text}})]),
            Exchange::events(&[json!({"error": {"unknown": text}})]),
        ] {
            let error = ask_in(
                TestWorld::new(),
                vec![exchange],
                json!({"max_retries": 0}),
                |_, _| {},
            )
            .await;
            let error = error.error().to_string();
            assert!(!error.contains("xsk-"), "{before}: {error}");
            assert!(error.contains("xxx"), "{error}");
        }
    }
}
