//! The library `pintle`, as an application uses it.

use std::any::type_name;

use pintle::agent::SessionError;
use pintle::llm::testing::FakeAdapter;
use pintle::prelude::*;

/// The table of crates, of which the library is to have each layer.
const README: &str = include_str!("../../README.md");

#[test]
fn the_library_has_every_layer_of_the_readme() {
    let items = [
        type_name::<pintle::acp::Client>(),
        type_name::<pintle::agent::Session>(),
        type_name::<pintle::client::Client>(),
        type_name::<pintle::compat::Line>(),
        type_name::<pintle::egress::Proxy>(),
        type_name::<pintle::env::ReadOnlyEnvironment>(),
        type_name::<pintle::evidence::proof::Proof>(),
        type_name::<pintle::governance::Grant>(),
        type_name::<pintle::host::SessionSpec>(),
        type_name::<pintle::llm::Client>(),
        type_name::<pintle::mcp::ServerSpec>(),
        type_name::<pintle::middleware::CircuitBreaker>(),
        type_name::<pintle::patch::Patch>(),
        type_name::<pintle::postgres::PostgresStore>(),
        type_name::<pintle::providers::Anthropic>(),
        type_name::<pintle::restate::RestateEngine>(),
        type_name::<pintle::server::Server>(),
        type_name::<pintle::store::MemoryStore>(),
        type_name::<pintle::testkit::ScriptedServer>(),
        type_name::<pintle::tools::ToolRegistry>(),
        type_name::<pintle::web::HttpWebClient>(),
        type_name::<pintle::workflow::LocalTaskHost>(),
    ];
    let reached = items.iter().map(|item| item.split("::").next().unwrap().replace('_', "-"));
    let rows = README.lines().filter_map(|line| line.strip_prefix("| [`pintle-")?.split('`').next());
    let mut layers: Vec<String> = rows
        .filter(|name| !["cli", "eval", "tui"].contains(name))
        .map(|name| format!("pintle-{name}"))
        .collect();
    layers.sort();
    assert_eq!(reached.collect::<Vec<_>>(), layers);
}

#[test]
fn a_session_outside_a_runtime_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let env = LocalEnvironment::with_host_env(directory.path(), []).unwrap();
    let client = Client::builder().provider(FakeAdapter::new("anthropic")).build().unwrap();
    let built = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env).build();
    assert!(matches!(built, Err(SessionError::NoRuntime)), "{built:?}");
}

#[tokio::test]
async fn a_run_in_a_missing_directory_fails() {
    for is_shared in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let env = LocalEnvironment::with_host_env(directory.path().join("gone"), []).unwrap();
        let client =
            Client::builder().provider(FakeAdapter::new("anthropic").answer("Done.")).build().unwrap();
        let builder = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env);
        let builder = if is_shared { builder.shared_environment() } else { builder };
        let session = builder.build().unwrap();
        let outcome =
            session.submit("Write a file.").await.or_else(pintle_agent::RunError::into_outcome).unwrap();
        assert_eq!((outcome.status, outcome.model_calls), (OutcomeStatus::Failed, 0));
        let error = outcome.error.unwrap();
        assert!(error.causes.iter().any(|cause| cause.contains("does not exist")), "{error:?}");
    }
}
