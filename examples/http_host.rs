//! A tiny HTTP host: post a task, get the session's events as server-sent events.
//!
//! Each request has a session of its own, and the body of its answer owns that session. So a client that goes takes it
//! along: the server drops the body, and a session that is dropped ends everything that it started.

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
use pintle_agent::{ProviderProfile, Session};
use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_llm::Client;
use pintle_providers::{Anthropic, OpenAi};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The most bytes of a task.
const MAX_TASK: usize = 64 << 10;

/// What all sessions share.
pub(crate) struct Host {
    pub(crate) client: Client,
    pub(crate) env: Arc<dyn ExecutionEnvironment>,
}

/// Serves until `stop` fires, and then until every client has its answer or has gone.
pub(crate) async fn serve(
    listener: TcpListener,
    host: Arc<Host>,
    mut stop: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = tokio::select! {
            _ = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted?,
        };
        let host = Arc::clone(&host);
        let service = service_fn(move |request| answer(Arc::clone(&host), request));
        let connection =
            http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
        // A client that goes in the middle is an error to hyper and daily life to us.
        connections.spawn(async { drop(connection.await) });
    }
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// `POST /anthropic` or `/openai` with the task as the body.
async fn answer(host: Arc<Host>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let profile = match request.uri().path() {
        "/anthropic" => ProviderProfile::anthropic("claude-opus-4-6"),
        "/openai" => ProviderProfile::openai("gpt-5.2-codex"),
        _ => return Ok(refusal(StatusCode::NOT_FOUND, "expected /anthropic or /openai")),
    };
    if request.method() != Method::POST {
        return Ok(refusal(StatusCode::METHOD_NOT_ALLOWED, "expected POST"));
    }
    let Ok(body) = Limited::new(request.into_body(), MAX_TASK).collect().await else {
        return Ok(refusal(StatusCode::PAYLOAD_TOO_LARGE, "expected a task of at most 64 KiB"));
    };
    let Ok(task) = String::from_utf8(body.to_bytes().into()) else {
        return Ok(refusal(StatusCode::BAD_REQUEST, "expected a task in UTF-8"));
    };
    // The environment belongs to the host, which cleans it up when all sessions are over.
    let built =
        Session::builder(host.client.clone(), profile, Arc::clone(&host.env)).shared_environment().build();
    let Ok(session) = built else {
        return Ok(refusal(StatusCode::BAD_GATEWAY, "this provider is not set up"));
    };
    let mut answer = Response::new(StreamBody::new(events(session, task)).boxed_unsync());
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    Ok(answer)
}

fn refusal(status: StatusCode, expected: &'static str) -> Response<Body> {
    let mut answer = Response::new(Full::from(expected).boxed_unsync());
    *answer.status_mut() = status;
    answer
}

/// The events of one session, and at the end its outcome. Whoever drops this stream ends the session.
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
        let outcome = serde_json::to_string(&run.await.ok()?).ok()?;
        session.close().await;
        Some((Ok(Frame::data(format!("event: OUTCOME\ndata: {outcome}\n\n").into())), None))
    })
}

/// A client: posts a task, prints the names of the events and goes when it has seen the one that it waits for.
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
        // How many deltas there are depends on how quickly they are read.
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
    // The models are a script, so that this runs offline. Yours come from `Client::from_env()`.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let anthropic =
        Anthropic::builder("any-key").base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let openai = OpenAi::builder("any-key").base_url(server.base_url(Dialect::OpenAiResponses)).build()?;
    let client = Client::builder().provider(anthropic).provider(openai).build()?;
    let folder = tempfile::tempdir()?;
    let env: Arc<dyn ExecutionEnvironment> =
        Arc::new(LocalEnvironment::with_host_env(folder.path(), std::env::vars_os())?);
    env.initialize().await?;

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let clients = async {
        post(address, "/anthropic", "Say hello.", "OUTCOME").await?;
        post(address, "/openai", "Work until I go.", "TOOL_CALL_OUTPUT_DELTA").await?;
        println!("The client is gone.");
        drop(stop);
        Ok(())
    };
    tokio::try_join!(serve(listener, Arc::new(Host { client, env: Arc::clone(&env) }), stopped), clients)?;
    env.cleanup().await?;
    println!("Its command was told to stop: {}", folder.path().join("stopped").exists());
    server.shutdown().await;
    Ok(())
}

/// What the two models say. The command of the second one ends when it is told to, and not before.
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
