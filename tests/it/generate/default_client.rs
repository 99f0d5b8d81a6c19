//! Section 8.1: the default client, created from the environment on first use.

use std::process::Stdio;

use pintle_llm::{ErrorKind, GenerateOptions, default_client};
use pintle_providers::{generate, stream};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions, Turn};

use crate::harness::KEY;

/// Variable of the child process that plays the application.
const HOST: &str = "PINTLE_TEST_HOST";

fn options() -> GenerateOptions {
    GenerateOptions::new("gpt-5.2").with_prompt("hello")
}

/// A process gets its environment at the start, so each case runs this test in a child process.
#[tokio::test]
async fn it_is_created_from_the_environment_on_first_use() {
    match std::env::var(HOST).as_deref() {
        Ok("with a key") => return host_with_a_key().await,
        Ok(_) => return host_without_keys().await,
        Err(_) => {}
    }
    let script = Script::new("hello").with_turn(Turn::text("Hello."));
    let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
    let url = server.base_url(Dialect::OpenAiResponses);
    let rows = [
        vec![(HOST, "with a key"), ("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", url.as_str())],
        vec![(HOST, "without keys")],
    ];
    for row in rows {
        let output = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "generate::default_client::it_is_created_from_the_environment_on_first_use"])
            .env_clear()
            .envs(row.clone())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("1 passed"), "{row:?}: {text}");
    }
    assert_eq!(server.requests().len(), 3, "all of the host with a key");
}

async fn host_with_a_key() {
    assert!(default_client().is_none(), "nothing is made before it is used");
    assert_eq!(generate(options()).await.unwrap().text(), "Hello.");
    assert_eq!(default_client().unwrap().providers().collect::<Vec<_>>(), ["openai"]);
    assert_eq!(stream(options()).unwrap().result().await.unwrap().text(), "Hello.");
    // The default client of the lower layer is the same.
    assert_eq!(pintle_llm::generate(options()).await.unwrap().text(), "Hello.");
}

async fn host_without_keys() {
    let error = generate(options()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("ANTHROPIC_API_KEY"), "{error}");
    assert!(default_client().is_none());
}
