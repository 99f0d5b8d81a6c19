//! Connections that are lost with a statement, or with its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::task::JoinSet;

use super::*;

const NOTHING: u8 = 0;
/// The next bytes of the client are lost, with their connection.
const STATEMENT: u8 = 1;
/// The next bytes of the server are lost, with their connection.
const ANSWER: u8 = 2;

/// A proxy in front of the server.
struct Proxy {
    port: u16,
    /// Next message to lose, once.
    loses: Arc<AtomicU8>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn start(schema: &Schema) -> Self {
        let host = schema.connection.split(' ').find_map(|word| word.strip_prefix("host=")).unwrap();
        let socket = format!("{host}/.s.PGSQL.5432");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let loses = Arc::new(AtomicU8::new(NOTHING));
        let mut tasks = JoinSet::new();
        let next = Arc::clone(&loses);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(&socket).await.unwrap();
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                let (statements, answers) = (Arc::clone(&next), Arc::clone(&next));
                connections.spawn(async move {
                    tokio::select! {
                        () = pass(from_client, to_server, &statements, STATEMENT) => {}
                        () = pass(from_server, to_client, &answers, ANSWER) => {}
                    }
                });
            }
        });
        Self { port, loses, _tasks: tasks }
    }

    /// Returns a store behind the proxy.
    async fn store(&self, schema: &Schema) -> PostgresStore {
        let words = schema.connection.split(' ').filter(|word| !word.starts_with("host="));
        let rest = words.collect::<Vec<_>>().join(" ");
        let connection = format!("host=127.0.0.1 port={} {rest}", self.port);
        PostgresStore::connect(&connection, schema.options()).await.unwrap()
    }

    fn lose(&self, what: u8) {
        self.loses.store(what, Ordering::SeqCst);
    }
}

/// Passes bytes on until they are lost.
async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    loses: &AtomicU8,
    lost: u8,
) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if loses.compare_exchange(lost, NOTHING, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// Whether the lines were written or not when the connection was lost, they are written once.
#[tokio::test]
async fn an_append_survives_the_loss_of_its_connection() {
    let Some(schema) = Schema::create() else { return };
    let proxy = Proxy::start(&schema).await;
    let store = proxy.store(&schema).await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    let mut number = 0;
    for what in [STATEMENT, ANSWER, ANSWER, STATEMENT] {
        for barrier in [Barrier::Synced, Barrier::Written] {
            proxy.lose(what);
            let objects = vec![format!("{{\"n\":{number}}}"), format!("{{\"n\":{}}}", number + 1)];
            let head = writer.append(objects, barrier).await.unwrap();
            assert_eq!(head.seq, number + 3);
            assert_eq!(proxy.loses.load(Ordering::SeqCst), NOTHING, "it was lost");
            number += 2;
        }
    }
    assert_eq!(all(&store).await, (0..number).collect::<Vec<_>>());
    assert!(store.verify(&id(), Some(&writer.head())).await.unwrap().is_intact());
}

/// Everything else that may be repeated is repeated as well.
#[tokio::test]
async fn other_statements_survive_the_loss_of_their_connection() {
    let Some(schema) = Schema::create() else { return };
    let proxy = Proxy::start(&schema).await;
    let store = proxy.store(&schema).await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    append(&mut writer, 0).await.unwrap();
    for (what, input) in [(STATEMENT, "a"), (ANSWER, "b")] {
        proxy.lose(what);
        store.post(&id(), input, "{}".to_owned()).await.unwrap();
        proxy.lose(what);
        let hash = store.blobs(&id()).put(input.as_bytes().to_vec()).await.unwrap();
        proxy.lose(what);
        assert!(store.blobs(&id()).get(&hash).await.unwrap().is_some());
        proxy.lose(what);
        assert_eq!(writer.inbox().await.unwrap().len(), 1);
        proxy.lose(what);
        writer.take(input).await.unwrap();
        proxy.lose(what);
        writer.set_summary(summary().with_property("p", input)).await.unwrap();
        proxy.lose(what);
        assert!(store.summary(&id()).await.unwrap().is_some());
        proxy.lose(what);
        assert_eq!(
            store.list(&pintle_store::Filter::default(), &pintle_store::Page::default()).await.unwrap().len(),
            1
        );
        proxy.lose(what);
        assert_eq!(all(&store).await, [0]);
    }
}

/// A connection that was lost unnoticed does not fail what cannot be repeated: a question comes first.
#[tokio::test]
async fn sessions_are_created_opened_and_deleted_after_a_loss() {
    let Some(schema) = Schema::create() else { return };
    let proxy = Proxy::start(&schema).await;
    let store = proxy.store(&schema).await;
    for what in [STATEMENT, ANSWER] {
        proxy.lose(what);
        let mut writer = store.create_writer(&summary()).await.unwrap();
        writer.close().await.unwrap();
        proxy.lose(what);
        let mut writer = store.open_writer(&id()).await.unwrap();
        append(&mut writer, 0).await.unwrap();
        drop(writer);
        // What gives the session back is not to be lost: the lease would run out by itself.
        assert_eq!(store.holder(&id()).await.unwrap(), None);
        proxy.lose(what);
        assert!(store.delete(&id()).await.unwrap());
    }
}
