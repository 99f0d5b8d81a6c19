//! What is changed, and what runs out, while a session works.

use std::time::Duration;

use pintle_env::{LocalEnvironment, ReadOnly};

use super::*;
use crate::protocol::{Budget, BudgetKind};

fn write(name: &str) -> Message {
    calling(&[("write_file", json!({"file_path": format!("/project/{name}"), "content": "x"}))])
}

fn limited(budget: Budget) -> SessionConfig {
    SessionConfig::default().with_budget(budget)
}

/// The fake's answers take fifteen tokens each.
#[tokio::test]
async fn a_budget_pauses_a_run_and_a_larger_one_lets_it_go_on() {
    let adapter = anthropic().message(write("a")).message(write("b")).answer("Done.");
    let bench =
        bench_with(adapter, env(), |builder| builder.config(limited(Budget::default().with_tokens(30))));
    let mut run = bench.session.submit("go");
    let event = until(&mut run, "BUDGET_REACHED").await;
    let EventKind::BudgetReached { budget, limit, spent } = event.kind else { panic!("{event:?}") };
    assert_eq!((budget, limit, spent), (BudgetKind::Tokens, 30, 30));
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Budget);
    assert_eq!(bench.session.state(), SessionState::Idle);
    assert_eq!(bench.env.files().len(), 1, "the call that would have followed has not run");
    let raised = SessionConfig::default().with_budget(Budget::default().with_tokens(100)).limits;
    bench.session.handle().set_limits(raised).unwrap();
    let outcome = bench.session.submit("go on").await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Done."));
    let sent = bench.adapter.requests().pop().unwrap();
    let results: Vec<_> = sent.messages.iter().flat_map(|message| message.results()).collect();
    assert!(results[1].is_error && results[1].text().starts_with("Not run: the session has reached a limit"));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_time_stops_a_command() {
    let adapter = anthropic().message(hanging()).answer("Then not.");
    let time = Budget::default().with_wall_time(Duration::from_secs(60));
    let bench = bench_with(adapter, env_with_sleep(), |builder| builder.config(limited(time)));
    let outcome = bench.session.submit("go").await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Budget);
    assert_eq!(bench.env.running(), 0);
    let outcome = bench.session.submit("and now").await.unwrap();
    assert_eq!(outcome.text, "Then not.", "each run has its time");
}

/// A timer of a run that has ended must not stop the next one.
#[tokio::test(start_paused = true)]
async fn the_time_of_one_run_is_not_that_of_the_next() {
    let quiet = calling(&[("shell", json!({"command": "sleep 1000", "timeout_ms": 40_000}))]);
    let adapter = anthropic().answer("One.").message(quiet).answer("Two.");
    let time = Budget::default().with_wall_time(Duration::from_secs(60));
    let bench = bench_with(adapter, env_with_sleep(), |builder| builder.config(limited(time)));
    bench.session.submit("one").await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let outcome = bench.session.submit("two").await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Two."));
}

#[tokio::test]
async fn a_model_without_a_price_is_refused_under_a_limit_on_cost_and_another_is_not() {
    let bench = bench_with(anthropic().answer("Hello."), env(), |builder| {
        builder.config(limited(Budget::default().with_cost_micros(1_000_000)))
    });
    bench.session.handle().set_model("claude-of-tomorrow").unwrap();
    let outcome = bench.session.submit("go").await.unwrap();
    assert_eq!(
        (outcome.status, outcome.error.unwrap().kind),
        (OutcomeStatus::Failed, ErrorKind::InvalidRequest)
    );
    assert_eq!(bench.adapter.requests().len(), 0);
    bench.session.handle().set_model("claude-opus-4-6").unwrap();
    assert_eq!(bench.session.submit("again").await.unwrap().status, OutcomeStatus::Completed);
}

#[tokio::test]
async fn an_image_that_the_provider_refuses_is_taken_out_and_the_session_goes_on() {
    let png = b"\x89PNG\r\n\x1a\n\0\0 but no picture".to_vec();
    let look = calling(&[("read_file", json!({"file_path": "/project/a.png"}))]);
    let refusal = Error::new(ErrorKind::InvalidRequest, "could not process image");
    let adapter = anthropic().message(look).failure(refusal).answer("I cannot see it.");
    let bench = bench(adapter, env().with_file("/project/a.png", png));
    let events = all(bench.session.submit("look")).await;
    assert!(events.iter().any(|event| kind(event) == "HISTORY_REPAIRED"));
    let images = |request: &pintle_llm::Request| {
        request
            .messages
            .iter()
            .flat_map(|message| message.results())
            .map(|result| result.images.len())
            .sum::<usize>()
    };
    let sent: Vec<usize> = bench.adapter.requests().iter().map(images).collect();
    assert_eq!(sent, [0, 1, 0]);
    let shown = bench.session.history();
    assert!(shown.iter().all(|turn| turn.item.results().all(|result| result.images.is_empty())));
    assert_eq!(shown.len(), 4, "the host sees the history that is sent");
}

#[tokio::test]
async fn tools_change_from_the_next_request_on() {
    let adapter = anthropic().answer("1").answer("2");
    let bench = bench(adapter, env());
    bench.session.submit("one").await.unwrap();
    let mut tools = ProviderProfile::anthropic("claude-opus-4-6").tool_registry;
    assert!(tools.unregister("shell"));
    bench.session.handle().set_tools(tools).unwrap();
    bench.session.submit("two").await.unwrap();
    let offered: Vec<bool> = bench
        .adapter
        .requests()
        .iter()
        .map(|request| request.tools.iter().any(|tool| tool.name == "shell"))
        .collect();
    assert_eq!(offered, [true, false]);
}

#[derive(Debug)]
struct AskForA;

#[async_trait::async_trait]
impl Gate for AskForA {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.arguments().to_string().contains("/project/a") {
            true => Verdict::Ask { reason: "it writes".into() },
            false => Verdict::Allow,
        }
    }
}

#[tokio::test]
async fn wrappers_change_from_the_next_request_on_and_the_prompt_stays() {
    let adapter = anthropic().message(write("a")).message(write("b")).answer("Not b.");
    let bench = bench_with(adapter, env(), |builder| builder.gate(AskForA));
    let mut run = bench.session.submit("go");
    until(&mut run, "APPROVAL_REQUESTED").await;
    let place = Arc::clone(&bench.env) as Arc<dyn ExecutionEnvironment>;
    bench.session.handle().set_environment(Arc::new(ReadOnly::new(place))).unwrap();
    bench.session.handle().decide("call_0_write_file", crate::Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().text, "Not b.");
    let names: Vec<_> = bench.env.files().into_keys().collect();
    assert_eq!(names, [std::path::PathBuf::from("/project/a")], "a was asked for before");
    let requests = bench.adapter.requests();
    let results: Vec<bool> = requests[2]
        .messages
        .iter()
        .flat_map(|message| message.results())
        .map(|result| result.is_error)
        .collect();
    assert_eq!(results, [false, true]);
    assert_eq!(requests[0].messages[0].text(), requests[2].messages[0].text());
    bench.session.close().await;
}

#[tokio::test]
async fn another_working_directory_is_told_to_the_model() {
    let bench = bench(anthropic().answer("1").answer("2"), env());
    bench.session.submit("one").await.unwrap();
    bench.session.handle().set_environment(Arc::new(MemoryEnvironment::new("/elsewhere"))).unwrap();
    bench.session.submit("two").await.unwrap();
    let prompts: Vec<bool> = bench
        .adapter
        .requests()
        .iter()
        .map(|request| request.messages[0].text().contains("/elsewhere"))
        .collect();
    assert_eq!(prompts, [false, true]);
    bench.session.close().await;
}

/// The environment of the other tests has no links.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a fixture stands there before the environment is used")]
async fn writes_to_one_file_under_two_names_keep_the_models_order() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
    let names = ["real/file", "link/file", "link/../real/file"];
    let calls = names.map(|name| ("write_file", json!({"file_path": name, "content": name})));
    let adapter = anthropic().message(calling(&calls)).answer("Done.");
    let client = Client::builder().provider(adapter).build().unwrap();
    let place = LocalEnvironment::with_host_env(folder.path(), []).unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let session = Session::builder(client, profile, Arc::new(place)).build().unwrap();
    let events = all(session.submit("go")).await;
    let told =
        events.iter().map(kind).filter(|kind| matches!(kind.as_str(), "TOOL_CALL_START" | "TOOL_CALL_END"));
    assert_eq!(told.collect::<Vec<_>>(), ["TOOL_CALL_START", "TOOL_CALL_END"].repeat(3));
    assert_eq!(std::fs::read_to_string(folder.path().join("real/file")).unwrap(), names[2]);
}
