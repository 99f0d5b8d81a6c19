//! Background commands, and questions that end a turn.

use pintle_tools::builtin::{AskUser, ShellList, ShellStart};

use super::*;

#[tokio::test]
async fn background_command_ends_with_its_session() {
    let adapter = anthropic()
        .message(calling(&[("shell_start", json!({"command": "sleep 1000"}))]))
        .message(calling(&[("ask_user", json!({"question": "Go on?"}))]))
        .message(calling(&[("shell_list", json!({}))]))
        .answer("done");
    let env = Arc::new(env_with_sleep());
    let client =
        Client::builder().shared_provider(Arc::new(adapter) as Arc<dyn ProviderAdapter>).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let profile = profile.with_tool(ShellStart::new()).unwrap().with_tool(ShellList::new()).unwrap();
    let profile = profile.with_tool(AskUser::new()).unwrap();
    let shared = Arc::clone(&env) as Arc<dyn ExecutionEnvironment>;
    let session = Session::builder(client, profile, shared).build().unwrap();

    let outcome = session.submit("go").await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::AwaitingInput, "Go on?"));
    assert_eq!((session.state(), env.running()), (SessionState::AwaitingInput, 1));

    let outcome = session.submit("yes").await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "done"));
    let results: Vec<String> = session
        .history()
        .iter()
        .flat_map(|turn| turn.item.results().map(|result| result.text()).collect::<Vec<_>>())
        .collect();
    assert!(results.last().unwrap().starts_with("1: is running, "), "{results:?}");

    session.close().await;
    assert_eq!(env.running(), 0);
}
