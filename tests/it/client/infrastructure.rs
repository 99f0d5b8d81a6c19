//! Section 8.1: a client with several providers.

use async_trait::async_trait;
use futures_util::StreamExt as _;
use pintle_llm::{
    Client, ContentPart, Error, ErrorKind, Message, Middleware, Mode, Next, Reply, Request, StreamEvent,
    default_client, set_default_client,
};
use pintle_testkit::{Dialect, Failure, Script, ScriptedServer, ServerOptions, Turn};

use super::harness::{KEY, adapter, model, response_of};

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
        let named = || request(dialect).with_provider(dialect.name());
        let streamed: Vec<_> = client.stream(named()).await.unwrap().map(Result::unwrap).collect().await;
        for response in [client.complete(named()).await.unwrap(), response_of(&streamed)] {
            assert_eq!((response.provider.as_str(), response.text().as_str()), (dialect.name(), "Hello."));
            expected.push(dialect);
        }
    }
    let unnamed = || request(Dialect::Gemini);
    let streamed: Vec<_> = client.stream(unnamed()).await.unwrap().map(Result::unwrap).collect().await;
    for response in [client.complete(unnamed()).await.unwrap(), response_of(&streamed)] {
        assert_eq!(response.provider, "gemini");
        expected.push(Dialect::Gemini);
    }
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

/// A layer that signs whatever passes it: the system prompt, and each text and error on the way back.
#[derive(Debug)]
struct SigningLayer(&'static str);

impl SigningLayer {
    fn sign(&self, text: &str) -> String {
        format!("{text}<{}>", self.0)
    }

    fn sign_event(&self, event: StreamEvent) -> StreamEvent {
        match event {
            StreamEvent::TextDelta { text_id, delta } => {
                StreamEvent::TextDelta { text_id, delta: self.sign(&delta) }
            }
            StreamEvent::Finish { finish_reason, usage, mut response } => {
                response.id = self.sign(&response.id);
                StreamEvent::Finish { finish_reason, usage, response }
            }
            other => other,
        }
    }
}

#[async_trait]
impl Middleware for SigningLayer {
    async fn handle(&self, mut request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let system = self.sign(&request.messages[0].text());
        request.messages[0] = Message::system(system).into();
        let reply = next.run(request, mode).await;
        match reply.map_err(|error| Error::new(error.kind(), self.sign(error.message())))? {
            Reply::Response(mut response) => {
                let text = self.sign(&response.text());
                response.message.content = vec![ContentPart::text(text)];
                response.id = self.sign(&response.id);
                Ok(Reply::Response(response))
            }
            Reply::Stream(events) => {
                let layer = Self(self.0);
                Ok(Reply::Stream(Box::pin(
                    events.map(move |event| event.map(|event| layer.sign_event(event))),
                )))
            }
        }
    }
}

/// The order is read off what reaches the provider and what reaches the caller.
#[tokio::test]
async fn middleware_order_is_that_of_registration_and_back() {
    for dialect in Dialect::ALL {
        let busy = || Failure::status(429);
        let turn = Turn::text("Hello.").with_failure(busy()).with_failure(busy());
        let options = ServerOptions::new().with_api_key(KEY);
        let server = ScriptedServer::start(Script::new("layers").with_turn(turn), options).await.unwrap();
        let client = Client::builder()
            .shared_provider(adapter(dialect, &server, KEY, &[]))
            .default_provider(dialect.name())
            .middleware(SigningLayer("a"))
            .middleware(SigningLayer("b"))
            .middleware(SigningLayer("c"))
            .build()
            .unwrap();
        let request =
            || Request::new(model(dialect), [Message::system("Be brief."), Message::user("Hello?")]);

        let error = client.complete(request()).await.unwrap_err();
        assert_eq!(error.message(), "scripted failure with status 429<c><b><a>", "{dialect}");
        let error = client.stream(request()).await.map(drop).unwrap_err();
        assert_eq!(error.message(), "scripted failure with status 429<c><b><a>", "{dialect}");

        let response = client.complete(request()).await.unwrap();
        assert_eq!(response.text(), "Hello.<c><b><a>", "{dialect}");
        assert!(response.id.ends_with("<c><b><a>"), "{dialect}: {}", response.id);

        let events: Vec<_> = client.stream(request()).await.unwrap().map(Result::unwrap).collect().await;
        let mut text = String::new();
        for event in &events {
            if let StreamEvent::TextDelta { delta, .. } = event {
                text.push_str(delta.strip_suffix("<c><b><a>").expect("each delta passes every layer"));
            }
        }
        assert_eq!(text, "Hello.", "{dialect}");
        let Some(StreamEvent::Finish { response, .. }) = events.last() else { panic!("{events:?}") };
        assert!(response.id.ends_with("<c><b><a>"), "{dialect}: {}", response.id);

        let requests = server.requests();
        assert_eq!(requests.len(), 4, "{dialect}");
        for sent in requests {
            let body = String::from_utf8(sent.raw_body).unwrap();
            assert_eq!(body.matches("Be brief.<a><b><c>\"").count(), 1, "{dialect}: {body}");
        }
    }
}
