//! Section 8.1: clients from the environment, and the default client that is created from it on first use.

use std::process::Stdio;

use pintle_llm::{Client, ErrorKind, GenerateOptions, Message, Request, default_client};
use pintle_providers::{FromEnv as _, generate, stream};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions, Turn};

use super::model;
use crate::harness::KEY;

/// Variable of the child process that plays the application.
const HOST: &str = "PINTLE_TEST_HOST";

fn options() -> GenerateOptions {
    GenerateOptions::new("gpt-5.2").with_prompt("hello")
}

/// Runs the test `name` of this module in a child process with exactly these variables, since a process gets its
/// environment at the start.
async fn run_host(name: &str, variables: &[(&str, &str)]) {
    let output = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("generate::default_client::{name}")])
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{variables:?}: {text}");
}

async fn server() -> ScriptedServer {
    let script = Script::new("hello").with_turn(Turn::text("Hello."));
    ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap()
}

#[tokio::test]
async fn it_is_created_from_the_environment_on_first_use() {
    match std::env::var(HOST).as_deref() {
        Ok("with a key") => return host_with_a_key().await,
        Ok(_) => return host_without_keys().await,
        Err(_) => {}
    }
    let server = server().await;
    let url = server.base_url(Dialect::OpenAiResponses);
    let name = "it_is_created_from_the_environment_on_first_use";
    let key = [(HOST, "with a key"), ("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", url.as_str())];
    run_host(name, &key).await;
    run_host(name, &[(HOST, "without keys")]).await;
    assert_eq!(server.requests().len(), 3, "all of the host with a key");
}

/// Dialects whose provider has variables.
const CONFIGURED: [Dialect; 3] = [Dialect::OpenAiResponses, Dialect::AnthropicMessages, Dialect::Gemini];

#[tokio::test]
async fn a_client_from_the_environment_reaches_every_provider() {
    if std::env::var(HOST).is_ok() {
        return host_with_every_key().await;
    }
    let server = server().await;
    let [openai, anthropic, gemini] = CONFIGURED.map(|dialect| server.base_url(dialect));
    for gemini_key in ["GEMINI_API_KEY", "GOOGLE_API_KEY"] {
        let variables = [
            (HOST, "with every key"),
            ("OPENAI_API_KEY", KEY),
            ("OPENAI_BASE_URL", openai.as_str()),
            ("OPENAI_ORG_ID", "org-of-the-tests"),
            ("OPENAI_PROJECT_ID", "proj-of-the-tests"),
            ("ANTHROPIC_API_KEY", KEY),
            ("ANTHROPIC_BASE_URL", anthropic.as_str()),
            (gemini_key, KEY),
            ("GEMINI_BASE_URL", gemini.as_str()),
        ];
        run_host("a_client_from_the_environment_reaches_every_provider", &variables).await;
    }
    // The server answers requests with its key only.
    let requests = server.requests();
    let dialects: Vec<_> = requests.iter().map(|request| (request.dialect, request.status)).collect();
    let each = CONFIGURED.map(|dialect| (Some(dialect), Some(200)));
    assert_eq!(dialects, [each, each].concat());
    for request in requests {
        let organization = (request.dialect == Some(Dialect::OpenAiResponses)).then_some("org-of-the-tests");
        let project = organization.map(|_| "proj-of-the-tests");
        assert_eq!(request.header("openai-organization"), organization);
        assert_eq!(request.header("openai-project"), project);
    }
}

async fn host_with_every_key() {
    let client = Client::from_env().unwrap();
    assert_eq!(client.providers().collect::<Vec<_>>(), CONFIGURED.map(Dialect::name));
    assert_eq!(client.default_provider(), Some("openai"), "the first");
    for dialect in CONFIGURED {
        let request = Request::new(model(dialect), [Message::user("hello")]).with_provider(dialect.name());
        let response = client.complete(request).await.unwrap();
        assert_eq!((response.provider.as_str(), response.text().as_str()), (dialect.name(), "Hello."));
    }
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
