//! Streams of recorded events: axum and tokio.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use futures_util::{StreamExt as _, stream};
use tokio::net::TcpListener;
use tokio::sync::{RwLock, broadcast};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::server::{DELTA, Pace, answer_lines, stamped_again};

/// Events that wait for a slow client.
const WAITING: usize = 1_024;

/// Time until the streams of a round begin.
const LEAD: Duration = Duration::from_millis(50);

/// One channel for each stream.
type Channels = Arc<RwLock<Vec<broadcast::Sender<Bytes>>>>;

/// Serves streams of recorded events, as the lines of the input say.
pub(crate) fn serve_streams() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let channels = Channels::default();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    // As a server of small writes does. It fails for a connection that is gone.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let router = Router::new().route("/streams/{index}", get(follow)).with_state(Arc::clone(&channels));
    let mut tasks = JoinSet::new();
    tasks.spawn_on(async move { axum::serve(listener, router).await.unwrap_or_default() }, runtime.handle());
    let mut frames: Arc<[String]> = Arc::default();
    answer_lines(|verb, rest| {
        let answer = match verb {
            "address" => address.to_string(),
            "load" => {
                let (number, file) = rest.split_once(' ').expect("there is a file");
                let number: usize = number.parse().expect("it is a number");
                let text = std::fs::read_to_string(file).expect("the file can be read");
                frames = text.split_inclusive("\n\n").map(ToOwned::to_owned).collect();
                *channels.blocking_write() = (0..number).map(|_| broadcast::Sender::new(WAITING)).collect();
                (0..number).map(|index| format!("/streams/{index} ")).collect()
            }
            "go" => {
                let (start, pace) = (Instant::now() + LEAD, Pace::parse(rest));
                let senders = channels.blocking_read();
                let all = senders.len();
                for (index, sender) in senders.iter().enumerate() {
                    let due = move |delta| start + pace.due(delta, index, all);
                    tasks.spawn_on(publish(sender.clone(), Arc::clone(&frames), due), runtime.handle());
                }
                String::new()
            }
            _ => return None,
        };
        Some(answer)
    })?;
    std::process::exit(0)
}

/// Sends each delta when it is due, and everything else right after what is before it.
async fn publish(sender: broadcast::Sender<Bytes>, frames: Arc<[String]>, due: impl Fn(u32) -> Instant) {
    let mut delta = 0;
    for frame in frames.iter() {
        let frame = if frame.contains(DELTA) {
            tokio::time::sleep_until(due(delta)).await;
            delta += 1;
            stamped_again(frame)
        } else {
            frame.clone()
        };
        // Fails without a client.
        let _ = sender.send(frame.into());
    }
}

async fn follow(State(channels): State<Channels>, Path(index): Path<usize>) -> Response {
    let receiver = channels.read().await.get(index).map(broadcast::Sender::subscribe);
    let Some(receiver) = receiver else { return axum::http::StatusCode::NOT_FOUND.into_response() };
    let first = stream::iter([Bytes::from_static(b"event: ready\ndata: {}\n\n")]);
    let next = |mut receiver: broadcast::Receiver<Bytes>| async {
        let frame = receiver.recv().await.ok()?;
        Some((frame, receiver))
    };
    let frames = first.chain(stream::unfold(receiver, next)).map(Ok::<_, Infallible>);
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(frames)).into_response()
}
