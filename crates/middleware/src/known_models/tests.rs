use std::sync::Mutex;

use pintle_llm::Message;
use pintle_llm::testing::{FakeAdapter, Harness, MODES};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;

const CATALOG: &str = r#"[
    {"id": "large-3", "provider": "p", "context_window": 9, "aliases": ["large"]},
    {"id": "small-3", "provider": "p", "context_window": 9},
    {"id": "other", "provider": "q", "context_window": 9}
]"#;

fn layer() -> KnownModels {
    KnownModels::new().with_catalog(Catalog::from_json(CATALOG).unwrap())
}

fn request(model: &str) -> Request {
    Request::new(model, [Message::user("hello")])
}

#[tokio::test]
async fn unknown_models_are_refused_before_sending() {
    for mode in MODES {
        let harness = Harness::new(FakeAdapter::new("p").answer("hi").answer("hi"), layer());
        for (model, message) in [
            ("large-33", "unknown model `large-33`; did you mean `large-3`?"),
            ("Small3", "unknown model `Small3`; did you mean `small-3`?"),
            ("xyz", "unknown model `xyz`; known models: large-3, small-3"),
            // A model of another provider is as unknown here.
            ("other", "unknown model `other`; known models: large-3, small-3"),
        ] {
            let error = harness.call(request(model), mode).await.unwrap_err();
            assert_eq!((error.kind(), error.error_code()), (ErrorKind::NotFound, Some(KnownModels::UNKNOWN)));
            assert_eq!((error.provider(), error.message()), (Some("p"), message));
            assert!(!error.is_retryable());
        }
        assert_eq!(harness.calls(), 0);
        for model in ["large-3", "large"] {
            harness.call(request(model), mode).await.unwrap();
        }
    }
}

#[tokio::test]
async fn providers_without_catalog_entries_are_not_checked() {
    let harness = Harness::new(FakeAdapter::new("local").answer("hi"), layer());
    harness.call(request("any"), Mode::Complete).await.unwrap();
}

#[tokio::test]
async fn the_built_in_catalog_is_the_default() {
    let known = pintle_llm::list_models(Some("openai")).next().unwrap().id.as_str();
    let harness = Harness::new(FakeAdapter::new("openai").answer("hi"), KnownModels::new());
    harness.call(request("no such model"), Mode::Complete).await.unwrap_err();
    harness.call(request(known), Mode::Complete).await.unwrap();
}

#[test]
fn long_lists_are_cut() {
    let models: Vec<ModelInfo> = (0..20).map(|n| ModelInfo::new("p", format!("m{n}"), 9)).collect();
    let known: Vec<&ModelInfo> = models.iter().collect();
    assert!(model_list(&known).ends_with("m11, …"), "{}", model_list(&known));
    assert!(model_list(&known[..12]).ends_with("m11"));
}

/// Subscriber that collects the messages of warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Visit for Warnings {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.target().starts_with("pintle_middleware")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn unknown_models_can_be_warned_about_only() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let layer = layer().with_unknown(UnknownModel::Warned);
    let harness = Harness::new(FakeAdapter::new("p").answer("hi").answer("hi"), layer);
    harness.call(request("xyz"), Mode::Complete).await.unwrap();
    harness.call(request("large"), Mode::Complete).await.unwrap();
    assert_eq!(*warnings.0.lock().unwrap(), ["unknown model `xyz`; known models: large-3, small-3"]);
}
