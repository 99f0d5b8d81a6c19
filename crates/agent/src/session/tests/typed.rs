//! Runs whose final answer has a type.

use pintle_llm::ResponseFormat;

use super::*;
use crate::error::RunError;

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Verdict {
    /// Whether all tests pass.
    passed: bool,
    tests: u8,
}

const VALID: &str = r#"{"passed": true, "tests": 12}"#;

fn formats(harness: &Harness) -> Vec<Option<ResponseFormat>> {
    harness.adapter.requests().iter().map(|request| request.response_format.clone()).collect()
}

#[tokio::test]
async fn a_typed_run_returns_the_value_and_adds_up_its_repairs() {
    let adapter = anthropic()
        .message(calling(&[("shell", json!({"command": "true"}))]))
        .answer("All is well.")
        .answer(VALID)
        .answer("later");
    let harness = harness(adapter, env());
    let answered = harness.session.run_typed::<Verdict>("Test it.").await.unwrap();
    assert_eq!(answered.value, Verdict { passed: true, tests: 12 });
    assert_eq!((answered.outcome.model_calls, answered.outcome.tool_calls), (3, 1));
    let texts: Vec<String> = harness
        .session
        .history()
        .iter()
        .filter(|turn| turn.kind == TurnKind::User)
        .map(Turn::content)
        .collect();
    assert!(
        texts[0].starts_with("Test it.\n\n") && texts[0].contains("Whether all tests pass."),
        "{texts:?}"
    );
    assert!(texts[1].contains("it is not JSON"), "{texts:?}");

    assert_eq!(harness.session.submit("And now?").await.unwrap().text, "later");
    let formats = formats(&harness);
    let has_schema = |format: &Option<ResponseFormat>| {
        matches!(format, Some(ResponseFormat::JsonSchema { strict: true, .. }))
    };
    assert!(formats[..3].iter().all(has_schema), "{formats:?}");
    assert_eq!(formats[3], None, "the next run has no schema");
}

#[tokio::test]
async fn a_typed_run_without_a_matching_answer_is_an_error() {
    let adapter = (0..4).fold(anthropic(), |adapter, _| adapter.answer(r#"{"passed": true, "tests": 300}"#));
    let harness = harness(adapter, env());
    let failed = harness.session.run_typed::<Verdict>("Test it.").await;
    let Err(RunError::Unmatched { source, outcome }) = failed else { panic!("{failed:?}") };
    assert_eq!((source.repairs, outcome.model_calls), (3, 4));
}

#[tokio::test]
async fn a_typed_run_that_ends_early_is_an_error() {
    let adapter = anthropic().message(calling(&[("shell", json!({"command": "true"}))]));
    let limits = SessionConfig::default().with_max_tool_rounds(1);
    let limited = harness_with(adapter, env(), |builder| builder.with_config(limits));
    let ended = limited.session.run_typed::<Verdict>("Test it.").await;
    let Err(RunError::NoAnswer { outcome }) = ended else { panic!("{ended:?}") };
    assert_eq!(outcome.status, OutcomeStatus::RoundLimit);

    let refusing = anthropic().failure(Error::new(ErrorKind::InvalidRequest, "no"));
    let failed = harness(refusing, env()).session.run_typed::<Verdict>("Test it.").await;
    assert!(matches!(failed, Err(RunError::Failed { .. })), "{failed:?}");
}

#[tokio::test]
async fn a_provider_that_enforces_no_schema_gets_it_in_the_message_only() {
    let adapter = Arc::new(FakeAdapter::new("openai-compatible").answer(VALID));
    let client =
        Client::builder().shared_provider(Arc::clone(&adapter) as Arc<dyn ProviderAdapter>).build().unwrap();
    let mut profile = ProviderProfile::anthropic("local-model");
    profile.provider = "openai-compatible".into();
    let session = Session::builder(client, profile, Arc::new(env())).build().unwrap();
    assert_eq!(session.run_typed::<Verdict>("Test it.").await.unwrap().value.tests, 12);
    assert_eq!(adapter.requests()[0].response_format, None);
}
