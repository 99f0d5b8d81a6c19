//! Connections that the server cuts, and readers that follow over them.

use super::*;

/// Cuts all connections of stores in this schema: the last statement of each, or its settings, name it.
async fn cut(schema: &Schema) {
    let client = schema.client().await;
    let statement =
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = $1";
    client.query_one(statement, &[&schema.name]).await.unwrap();
}

/// Returns a store whose connections have the name of the schema.
async fn store(schema: &Schema) -> PostgresStore {
    let connection = format!("{} application_name={}", schema.connection, schema.name);
    PostgresStore::connect(&connection, schema.options()).await.unwrap()
}

#[tokio::test]
async fn a_reader_follows_from_another_connection() {
    let Some(schema) = Schema::create() else { return };
    let mut writer = schema.store().await.create_writer(&summary()).await.unwrap();
    let mut reader = schema.store().await.read(&id(), 1).await.unwrap();
    for number in 0..10 {
        let (found, written) = tokio::join!(awaited(reader.as_mut()), append(&mut writer, number));
        written.unwrap();
        assert_eq!(found, number);
    }
}

/// The lines that are written while the reader has no connection are not missed, and later ones come as before.
#[tokio::test]
async fn a_reader_follows_over_a_lost_connection() {
    let Some(schema) = Schema::create() else { return };
    let mut writer = schema.store().await.create_writer(&summary()).await.unwrap();
    let mut reader = store(&schema).await.read(&id(), 1).await.unwrap();
    for number in 0..6 {
        append(&mut writer, 2 * number).await.unwrap();
        assert_eq!(awaited(reader.as_mut()).await, 2 * number);
        let cut = async {
            cut(&schema).await;
            append(&mut writer, 2 * number + 1).await.unwrap();
        };
        let (found, ()) = tokio::join!(awaited(reader.as_mut()), cut);
        assert_eq!(found, 2 * number + 1);
    }
}

#[tokio::test]
async fn a_writer_continues_over_lost_connections() {
    let Some(schema) = Schema::create() else { return };
    let store = store(&schema).await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    for number in 0..10 {
        cut(&schema).await;
        append(&mut writer, number).await.unwrap();
        assert_eq!(writer.inbox().await.unwrap(), []);
    }
    cut(&schema).await;
    assert_eq!(all(&store).await, (0..10).collect::<Vec<_>>());
    cut(&schema).await;
    assert!(matches!(store.open_writer(&id()).await, Err(StoreError::InUse { .. })));
    drop(writer);
    cut(&schema).await;
    assert!(store.delete(&id()).await.unwrap());
}

/// Connections are cut at any moment of appends: no line is lost, doubled or out of order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_written_once_over_cuts_at_any_moment() {
    const LINES: u64 = 300;
    let Some(schema) = Schema::create() else { return };
    let store = store(&schema).await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    let mut acknowledged = Vec::new();
    let appends = async {
        for number in 0..LINES {
            match append(&mut writer, number).await {
                Ok(_) => acknowledged.push(number),
                // Cut twice within one append: its outcome is unknown, and the writer is at its end.
                Err(error) => {
                    assert!(matches!(error, StoreError::Service { .. }), "{error:?}");
                    break;
                }
            }
        }
    };
    let cuts = async {
        loop {
            cut(&schema).await;
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    };
    tokio::select! {
        () = appends => {}
        () = cuts => {}
    }
    let found = all(&store).await;
    assert!(found.starts_with(&acknowledged), "{found:?} lacks some of {acknowledged:?}");
    assert!(found.len() <= acknowledged.len() + 1, "{found:?}");
    assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>());
    assert!(store.verify(&id(), None).await.unwrap().is_intact());
}

/// A lease survives the loss of the connection that renews it.
#[tokio::test]
async fn a_lease_is_renewed_over_lost_connections() {
    let Some(schema) = Schema::create() else { return };
    let connection = format!("{} application_name={}", schema.connection, schema.name);
    let options = schema.options().with_lease(Duration::from_secs(8));
    let store = PostgresStore::connect(&connection, options).await.unwrap();
    let mut writer = store.create_writer(&summary()).await.unwrap();
    for number in 0..4 {
        cut(&schema).await;
        // Long enough for a renewal on a busy machine; all of them together are longer than the lease.
        tokio::time::sleep(Duration::from_secs(3)).await;
        append(&mut writer, number).await.unwrap();
    }
}

/// A writer that is dropped with its store gives its session back.
#[tokio::test]
async fn the_last_clone_gives_the_session_back() {
    let Some(schema) = Schema::create() else { return };
    let other = schema.store().await;
    {
        let store = schema.store().await;
        let writer = store.create_writer(&summary()).await.unwrap();
        drop(store);
        drop(writer);
    }
    let freed = async {
        while other.holder(&id()).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // A lease would last 30 s.
    tokio::time::timeout(Duration::from_secs(15), freed).await.unwrap();
}
