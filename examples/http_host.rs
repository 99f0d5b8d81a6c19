//! Small HTTP server: post a task, receive the session's events as server-sent events.
//!
//! Each request has its own session, owned by the response body. When a client disconnects, the server drops the body, and
//! dropping a session terminates everything it started.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::stream::{self, Stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use pintle_agent::{ProviderProfile, RunError, Session};
use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_llm::Client;
use pintle_providers::{Anthropic, OpenAi};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Maximum size of a task in bytes.
const MAX_TASK: usize = 64 << 10;

/// State shared by all sessions.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) env: Arc<dyn ExecutionEnvironment>,
}

/// Serves until `stop` fires, then finishes the open connections.
pub(crate) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stop: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = tokio::select! {
            _ = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted?,
        };
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| handle(Arc::clone(&shared), request));
        let connection =
            http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
        // A client that disconnects early is an error for hyper, but not for this server.
        connections.spawn(async { drop(connection.await) });
    }
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// Handles `POST /anthropic` and `/openai` with a task as the body.
async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let profile = match request.uri().path() {
        "/anthropic" => ProviderProfile::anthropic("claude-opus-4-6"),
        "/openai" => ProviderProfile::openai("gpt-5.2-codex"),
        _ => return Ok(error_response(StatusCode::NOT_FOUND, "expected /anthropic or /openai")),
    };
    if request.method() != Method::POST {
        return Ok(error_response(StatusCode::METHOD_NOT_ALLOWED, "expected POST"));
    }
    let Ok(body) = Limited::new(request.into_body(), MAX_TASK).collect().await else {
        return Ok(error_response(StatusCode::PAYLOAD_TOO_LARGE, "expected a task of at most 64 KiB"));
    };
    let Ok(task) = String::from_utf8(body.to_bytes().into()) else {
        return Ok(error_response(StatusCode::BAD_REQUEST, "expected a task in UTF-8"));
    };
    // The sessions share the environment; the server cleans it up at the end.
    let built = Session::builder(shared.client.clone(), profile, Arc::clone(&shared.env))
        .shared_environment()
        .build();
    let Ok(session) = built else {
        return Ok(error_response(StatusCode::BAD_GATEWAY, "provider not configured"));
    };
    let mut response = Response::new(StreamBody::new(events(session, task)).boxed_unsync());
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    Ok(response)
}

fn error_response(status: StatusCode, expected: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::from(expected).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// Streams the events of a session, then its outcome. Dropping the stream drops the session.
fn events(session: Session, task: String) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    let run = session.submit(task);
    stream::unfold(Some((run, session)), |state| async {
        let (mut run, session) = state?;
        if let Some(event) = run.next().await {
            let json = serde_json::to_value(&event).ok()?;
            let name = json.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default();
            let frame = format!("id: {}\nevent: {name}\ndata: {json}\n\n", event.seq);
            return Some((Ok(Frame::data(frame.into())), Some((run, session))));
        }
        let outcome = serde_json::to_string(&run.await.or_else(RunError::into_outcome).ok()?).ok()?;
        session.close().await;
        Some((Ok(Frame::data(format!("event: OUTCOME\ndata: {outcome}\n\n").into())), None))
    })
}

/// Client: posts a task, prints event names, and disconnects after the event `until`.
async fn post(host: SocketAddr, path: &str, task: &str, until: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(host).await?;
    let length = task.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{task}").as_bytes()).await?;
    println!("POST {path}: {task}");
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        let Some(name) = line.strip_prefix("event: ") else { continue };
        // The number of deltas depends on how fast they are read.
        if name == until || !name.ends_with("_DELTA") {
            println!("  {name}");
        }
        if name == until {
            break;
        }
    }
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Scripted models, so that the example runs offline. Use `Client::from_env()` for real ones.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let anthropic =
        Anthropic::builder("any-key").with_base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let openai =
        OpenAi::builder("any-key").with_base_url(server.base_url(Dialect::OpenAiResponses)).build()?;
    let client = Client::builder().provider(anthropic).provider(openai).build()?;
    let directory = tempfile::tempdir()?;
    let env: Arc<dyn ExecutionEnvironment> =
        Arc::new(LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?);
    env.initialize().await?;

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let clients = async {
        post(address, "/anthropic", "Say hello.", "OUTCOME").await?;
        post(address, "/openai", "Work until I go.", "TOOL_CALL_OUTPUT_DELTA").await?;
        println!("The client has disconnected.");
        drop(stop);
        Ok(())
    };
    tokio::try_join!(serve(listener, Arc::new(Shared { client, env: Arc::clone(&env) }), stopped), clients)?;
    env.cleanup().await?;
    println!("Its command was terminated: {}", directory.path().join("stopped").exists());
    server.shutdown().await;
    Ok(())
}

/// Responses of the two models. The second model's command runs until it is terminated.
const SCRIPT: &str = r#"
name = "http host"

[[turn]]
only = ["anthropic"]
text = "Hello."

[[turn]]
only = ["openai"]
text = "I work."
[[turn.call]]
tool = "shell"
arguments.command = "trap 'touch stopped; exit 1' TERM; echo at work; while :; do sleep 0.02; done"
"#;
