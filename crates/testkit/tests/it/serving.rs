//! Keys, models, paths, connections and shutdown.

use pintle_testkit::{Dialect, Script, ScriptedServer, ServerError, ServerOptions, Turn};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{key_header, post, receive, send};
use crate::conversation::Conversation;

fn script() -> Script {
    Script::new("serving").with_turn(Turn::text("first")).with_turn(Turn::text("second"))
}

async fn start(options: ServerOptions) -> ScriptedServer {
    ScriptedServer::start(script(), options).await.unwrap()
}

#[tokio::test]
async fn base_urls_match_the_official_sdks() {
    let server = start(ServerOptions::new()).await;
    let root = format!("http://{}", server.address());
    assert!(server.address().ip().is_loopback());
    let urls = Dialect::ALL.map(|dialect| server.base_url(dialect));
    assert_eq!(urls, [format!("{root}/v1"), root.clone(), root.clone(), format!("{root}/v1")]);
}

#[tokio::test]
async fn wrong_keys_are_refused_like_the_provider() {
    let server = start(ServerOptions::new().with_api_key("right")).await;
    for (dialect, wrong, missing) in [
        (Dialect::OpenAiResponses, 401, 401),
        (Dialect::AnthropicMessages, 401, 401),
        (Dialect::Gemini, 400, 403),
        (Dialect::ChatCompletions, 401, 401),
    ] {
        let conversation = Conversation::new(dialect, "go");
        let headers =
            [("wrong", wrong), ("right", 200)].map(|(key, status)| (key_header(dialect, key), status));
        let none = ("anthropic-version: 2023-06-01".to_owned(), missing);
        for (header, status) in headers.into_iter().chain([none]) {
            let mut connection = TcpStream::connect(server.address()).await.unwrap();
            send(&mut connection, &conversation.path(), &header, &conversation.body()).await;
            let response = receive(&mut connection).await;
            assert_eq!(response.status, status, "{dialect} {header}");
            if dialect == Dialect::Gemini && status == 400 {
                assert_eq!(
                    response.json().pointer("/error/details/0/reason"),
                    Some(&json!("API_KEY_INVALID"))
                );
            }
        }
    }
}

#[tokio::test]
async fn unknown_models_and_paths_are_not_found() {
    let server =
        ScriptedServer::start(script().with_model("scripted-1"), ServerOptions::new()).await.unwrap();
    for dialect in Dialect::ALL {
        let mut conversation = Conversation::new(dialect, "go");
        let response = post(&server, dialect, &conversation.path(), &conversation.body()).await;
        assert_eq!(response.status, 404, "{dialect}");
        assert!(response.message().contains("the script knows \"scripted-1\""), "{}", response.message());
        conversation.model = "scripted-1".to_owned();
        assert_eq!(post(&server, dialect, &conversation.path(), &conversation.body()).await.status, 200);
    }
    let response = post(&server, Dialect::ChatCompletions, "/chat/completions", &json!({})).await;
    assert_eq!(response.status, 404);
    assert!(
        response.message().starts_with("unknown path POST /chat/completions; expected POST to /v1/responses")
    );
}

#[tokio::test]
async fn connections_serve_consecutive_requests() {
    let server = start(ServerOptions::new()).await;
    let mut connection = TcpStream::connect(server.address()).await.unwrap();
    for dialect in Dialect::ALL {
        let mut conversation = Conversation::new(dialect, "go");
        for text in ["first", "second"] {
            send(&mut connection, &conversation.path(), &key_header(dialect, "key"), &conversation.body())
                .await;
            let output = conversation.read(&receive(&mut connection).await);
            assert_eq!(output.text, text, "{dialect}");
            conversation.continue_with(&output, &[]);
            conversation.user("more");
        }
    }
}

#[tokio::test]
async fn chunked_requests_with_expect_continue_are_read() {
    let server = start(ServerOptions::new()).await;
    let conversation = Conversation::new(Dialect::OpenAiResponses, "go");
    let body = conversation.body().to_string();
    let mut connection = TcpStream::connect(server.address()).await.unwrap();
    let head = "POST /v1/responses HTTP/1.1\r\nAuthorization: Bearer key\r\nContent-Type: application/json\r\n\
                Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    connection.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    for chunk in body.as_bytes().chunks(10) {
        let chunk = [format!("{:X}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
        connection.write_all(&chunk).await.unwrap();
    }
    connection.write_all(b"0\r\n\r\n").await.unwrap();
    assert_eq!(conversation.read(&receive(&mut connection).await).text, "first");
    assert_eq!(server.requests()[0].raw_body, body.into_bytes());
}

#[tokio::test]
async fn malformed_http_gets_400_and_close() {
    let server = start(ServerOptions::new()).await;
    let mut connection = TcpStream::connect(server.address()).await.unwrap();
    connection.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n").await.unwrap();
    let response = receive(&mut connection).await;
    assert_eq!((response.status, response.header("connection")), (400, Some("close")));
    assert_eq!(connection.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn oversized_requests_receive_their_refusal() {
    let mut options = ServerOptions::new();
    options.body_bytes = 1 << 10;
    let server = start(options).await;
    let conversation = Conversation::new(Dialect::ChatCompletions, &"long ".repeat(1 << 20));
    let response = post(&server, conversation.dialect, &conversation.path(), &conversation.body()).await;
    assert_eq!(
        (response.status, response.message()),
        (413, "request body is larger than 1024 bytes".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_conversations_are_independent() {
    let server = std::sync::Arc::new(start(ServerOptions::new()).await);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..40 {
        let server = std::sync::Arc::clone(&server);
        tasks.spawn(async move {
            let dialect = Dialect::ALL[number % 4];
            let mut conversation = Conversation::new(dialect, &format!("prompt {number}"));
            let mut texts = Vec::new();
            for _ in 0..2 {
                let response = post(&server, dialect, &conversation.path(), &conversation.body()).await;
                let output = conversation.read(&response);
                conversation.continue_with(&output, &[]);
                conversation.user("more");
                texts.push(output.text);
            }
            texts
        });
    }
    for texts in tasks.join_all().await {
        assert_eq!(texts, ["first", "second"]);
    }
}

#[tokio::test]
async fn dropping_the_server_closes_its_connections() {
    for waits in [true, false] {
        let server = start(ServerOptions::new()).await;
        let address = server.address();
        let mut idle = TcpStream::connect(address).await.unwrap();
        // A response shows that the connection is being served.
        let conversation = Conversation::new(Dialect::ChatCompletions, "go");
        send(&mut idle, &conversation.path(), "", &conversation.body()).await;
        assert_eq!(receive(&mut idle).await.status, 400, "an empty header line ends the head prematurely");
        let mut open = TcpStream::connect(address).await.unwrap();
        send(&mut open, &conversation.path(), "x-none: 1", &conversation.body()).await;
        assert_eq!(receive(&mut open).await.status, 200);
        if waits {
            server.shutdown().await;
        } else {
            drop(server);
        }
        assert_eq!(open.read(&mut [0; 1]).await.unwrap_or(0), 0);
    }
}

#[tokio::test]
async fn no_task_outlives_a_shutdown() {
    // More than the scheduler runs in one tick.
    const CLIENTS: usize = 200;
    let server = start(ServerOptions::new()).await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(TcpStream::connect(server.address()).await.unwrap());
    }
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    while tasks() <= CLIENTS {
        tokio::task::yield_now().await;
    }
    server.shutdown().await;
    assert_eq!(tasks(), 0);
}

#[tokio::test]
async fn start_failures_are_explained() {
    let taken = start(ServerOptions::new()).await;
    let again =
        ScriptedServer::start(script(), ServerOptions::new().with_bind(taken.address())).await.unwrap_err();
    assert_eq!(again.to_string(), format!("cannot listen on {}", taken.address()));
    assert!(std::error::Error::source(&again).is_some());
    let empty = ScriptedServer::start(Script::new("empty"), ServerOptions::new()).await.unwrap_err();
    assert!(matches!(empty, ServerError::Script(_)));
}
