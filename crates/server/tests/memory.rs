//! Memory of a server that receives large messages.
//!
//! A separate test binary, since its allocator counts the memory of the whole process. The client runs in the same process, and
//! sends the image in pieces of one small buffer.
#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test is a host, and fails by panicking"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{Clock as _, Principal, ProviderProfile, Session, SessionId, SystemClock};
use pintle_env::MemoryEnvironment;
use pintle_llm::Client as Models;
use pintle_llm::testing::FakeAdapter;
use pintle_server::{
    HostError, NewSession, OpenSession, Server, ServerLimits, SessionControls, SessionHost, SettingsChange,
};
use pintle_store::{FileStore, SessionStore, StoredJournal, Summary};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Size of the image in base64: a message of 30 MB.
const MESSAGE: usize = 30_000_000;

/// Memory besides the message: buffers of connections, the session, the store.
const REST: usize = 8 << 20;

/// Time limit of each answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Allocator of the system that counts the bytes that are allocated, and the most that there were at once.
struct CountingAllocator;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(size: usize) {
    let allocated = ALLOCATED.fetch_add(size, Ordering::Relaxed) + size;
    PEAK.fetch_max(allocated, Ordering::Relaxed);
}

fn subtract(size: usize) {
    ALLOCATED.fetch_sub(size, Ordering::Relaxed);
}

#[expect(unsafe_code, reason = "an allocator cannot be written without it")]
// SAFETY: all calls go to the allocator of the system.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        subtract(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Large blocks are moved by their pages, and are not there twice.
        if let Some(more) = size.checked_sub(layout.size()) {
            add(more);
        } else {
            subtract(layout.size() - size);
        }
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Debug)]
struct Host(FileStore);

#[derive(Debug)]
struct Controls;

#[async_trait]
impl SessionControls for Controls {
    async fn set(&self, _change: &SettingsChange, _by: Option<&Principal>) -> Result<(), HostError> {
        Err(HostError::Invalid("nothing can be set here".to_owned()))
    }
}

#[async_trait]
impl SessionHost for Host {
    async fn create(&self, id: SessionId, request: NewSession) -> Result<OpenSession, HostError> {
        let mut summary = Summary::new(id.clone(), SystemClock.now());
        summary.properties.extend(request.properties);
        let writer = self.0.create(summary.clone()).await.unwrap();
        let models =
            Models::builder().provider(FakeAdapter::new("anthropic").answer("Done.")).build().unwrap();
        let profile = ProviderProfile::anthropic("claude-opus-4-6");
        let builder = Session::builder(models, profile, Arc::new(MemoryEnvironment::new("/project")));
        let session = builder.with_id(id).journal(StoredJournal::new(writer, summary)).build().unwrap();
        Ok(OpenSession::new(session, Arc::new(Controls)))
    }

    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError> {
        panic!("session {id} stays open");
    }

    async fn fork(
        &self,
        origin: &SessionId,
        _turns: usize,
        _fork: SessionId,
    ) -> Result<OpenSession, HostError> {
        Err(HostError::NotFound(origin.clone()))
    }

    async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        Err(HostError::NotFound(id.clone()))
    }
}

/// Client of the server, which opens a connection for each request.
struct Client(SocketAddr);

impl Client {
    /// Sends a request with one more header, whose body is `start`, `image` bytes of an image in base64, and `end`.
    async fn send(&self, line: &str, header: &str, start: &str, image: usize, end: &str) -> (u16, Value) {
        let answered = tokio::time::timeout(PATIENCE, async {
            let mut stream = TcpStream::connect(self.0).await.unwrap();
            let size = start.len() + image + end.len();
            let head = format!(
                "{line} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 content-length: {size}\r\n{header}\r\n",
                self.0
            );
            stream.write_all(format!("{head}{start}").as_bytes()).await.unwrap();
            let piece = [b'A'; 16 << 10];
            let mut left = image;
            while left > 0 {
                let next = left.min(piece.len());
                stream.write_all(&piece[..next]).await.unwrap();
                left -= next;
            }
            stream.write_all(end.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        });
        let answer = answered.await.unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// Waits until the model has answered in a session.
    async fn wait_for_answer(&self, id: &str) {
        let answered = tokio::time::timeout(PATIENCE, async {
            loop {
                let (_, session) = self.send(&format!("GET /v1/sessions/{id}"), "", "", 0, "").await;
                if session["state"] == "IDLE" && session["tokens"].as_u64().is_some_and(|tokens| tokens > 0) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        answered.await.unwrap();
    }
}

#[tokio::test]
async fn a_large_message_is_in_memory_at_most_three_times() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    let server = Server::new(Arc::new(Host(store.clone())), Arc::new(store), ServerLimits::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client(listener.local_addr().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let test = async {
        let all = [(true, ""), (false, "b"), (true, "a"), (false, "")];
        for (is_first_message, key) in all.into_iter().take(pintle_test_conditions::cases(2, 4)) {
            let what = format!("first message: {is_first_message}, key: {key:?}");
            let key = if key.is_empty() { String::new() } else { format!("idempotency-key: {key}\r\n") };
            let image = r#"{"text":"Look","images":[{"media_type":"image/png","data":""#;
            let (path, start, end) = if is_first_message {
                ("/v1/sessions".to_owned(), format!(r#"{{"message":{image}"#), r#""}]}}"#)
            } else {
                let (status, session) = client.send("POST /v1/sessions", "", "{}", 0, "").await;
                assert_eq!(status, 201, "{session}");
                let id = session["id"].as_str().unwrap().to_owned();
                (format!("/v1/sessions/{id}/submit"), image.to_owned(), r#""}]}"#)
            };
            let before = ALLOCATED.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            let (status, answer) = client.send(&format!("POST {path}"), &key, &start, MESSAGE, end).await;
            assert!(matches!(status, 201 | 202), "{what}: {status} {answer}");
            let id = answer["id"].as_str().or_else(|| path.split('/').nth(3)).unwrap().to_owned();
            client.wait_for_answer(&id).await;
            let peak = PEAK.load(Ordering::Relaxed) - before;
            assert!(peak >= MESSAGE, "{what}: {peak} bytes: the body was measured");
            assert!(peak <= 3 * MESSAGE + REST, "{what}: {peak} bytes");
        }
        let _ = stop.send(());
    };
    let serving = server.serve_tcp(listener, async {
        let _ = stopped.await;
    });
    let (served, ()) = tokio::join!(serving, test);
    served.unwrap();
}
