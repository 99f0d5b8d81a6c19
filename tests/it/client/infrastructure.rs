//! Section 8.1: a client with several providers.

use pintle_llm::{Client, ErrorKind, Message, Request, default_client, set_default_client};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions, Turn};

use super::harness::{KEY, adapter, model};

async fn server() -> ScriptedServer {
    let script = Script::new("hello").with_turn(Turn::text("Hello."));
    ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap()
}

/// Returns a client of all four providers, built in code, with Gemini as the default.
fn client(server: &ScriptedServer) -> Client {
    let register = |builder: pintle_llm::ClientBuilder, dialect| {
        builder.shared_provider(adapter(dialect, server, KEY, &[]))
    };
    let builder = Dialect::ALL.into_iter().fold(Client::builder(), register);
    builder.default_provider("gemini").build().unwrap()
}

fn request(dialect: Dialect) -> Request {
    Request::new(model(dialect), [Message::user("hello")])
}

#[tokio::test]
async fn requests_go_to_the_named_or_default_provider() {
    let server = server().await;
    let client = client(&server);
    let mut expected = Vec::new();
    for dialect in Dialect::ALL.into_iter().rev() {
        let response = client.complete(request(dialect).with_provider(dialect.name())).await.unwrap();
        assert_eq!((response.provider.as_str(), response.text().as_str()), (dialect.name(), "Hello."));
        expected.push(dialect);
    }
    assert_eq!(client.complete(request(Dialect::Gemini)).await.unwrap().provider, "gemini");
    expected.push(Dialect::Gemini);
    let seen: Vec<Dialect> = server.requests().iter().filter_map(|request| request.dialect).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_request_without_a_known_provider_is_not_sent() {
    let server = server().await;
    let lost = client(&server).complete(request(Dialect::Gemini).with_provider("mistral")).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Configuration);
    assert_eq!(
        lost.message(),
        "unknown provider `mistral`; registered: openai, anthropic, gemini, openai-compatible"
    );
    for dialects in [&[][..], &[Dialect::Gemini], &Dialect::ALL] {
        let register = |builder: pintle_llm::ClientBuilder, dialect: &Dialect| {
            builder.shared_provider(adapter(*dialect, &server, KEY, &[]))
        };
        let no_default = dialects.iter().fold(Client::builder(), register).build().unwrap();
        let error = no_default.complete(request(Dialect::Gemini)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        for dialect in dialects {
            assert!(error.message().contains(dialect.name()), "{error}");
        }
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn the_default_client_can_be_set() {
    let server = server().await;
    set_default_client(client(&server));
    let client = default_client().expect("the one that was set");
    assert_eq!(client.complete(request(Dialect::Gemini)).await.unwrap().text(), "Hello.");
    assert_eq!(server.requests().len(), 1);
}
