//! Tables that somebody else has changed, and lines that the server has lost.

use pintle_store::{Hash, Ledgers as _, Posting};

use super::*;

/// Returns a store with a session of five lines: the first one of the writer, 0, 1, 2, and the last one.
async fn closed(schema: &Schema) -> (PostgresStore, Position, Client) {
    let store = schema.store().await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    for number in 0..3 {
        append(&mut writer, number).await.unwrap();
    }
    let head = writer.close().await.unwrap();
    drop(writer);
    (store, head, schema.client().await)
}

#[tokio::test]
async fn changed_tables_are_found() {
    for (change, expected) in [
        ("UPDATE lines SET line = set_byte(line, 5, get_byte(line, 5) # 1) WHERE seq = 3", 3),
        ("UPDATE lines SET line = set_byte(line, 30, get_byte(line, 30) # 1) WHERE seq = 1", 1),
        ("DELETE FROM lines WHERE seq = 2", 2),
        ("DELETE FROM lines WHERE seq = 5", 5),
        ("DELETE FROM lines", 1),
        ("UPDATE lines SET epoch = 2 WHERE seq >= 4", 4),
        ("UPDATE lines SET epoch = 2", 1),
        ("UPDATE lines SET line = (SELECT line FROM lines WHERE seq = 2) WHERE seq = 3", 3),
    ] {
        let Some(schema) = Schema::create() else { return };
        let (store, _, client) = closed(&schema).await;
        assert!(store.verify(&id(), None).await.unwrap().is_intact());
        client.batch_execute(change).await.unwrap();
        let found = store.verify(&id(), None).await.unwrap();
        assert_eq!(
            found.problems.iter().map(|problem| problem.seq).collect::<Vec<_>>(),
            [expected],
            "{change}"
        );
        let error = store.open_writer(&id()).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { seq, .. } if seq == expected), "{change}: {error:?}");
        let mut reader = store.read(&id(), 1).await.unwrap();
        present(reader.as_mut()).await.unwrap_err();
        assert_eq!(store.holder(&id()).await.unwrap(), None, "{change}: nothing was changed");
    }
}

/// A head that does not belong to the journal is damage; one that was kept elsewhere shows a journal that was cut off.
#[tokio::test]
async fn a_journal_that_was_cut_off_is_found() {
    let Some(schema) = Schema::create() else { return };
    let (store, head, client) = closed(&schema).await;
    client.batch_execute("DELETE FROM lines WHERE seq = 5; UPDATE sessions SET head_seq = 4").await.unwrap();
    let error = store.open_writer(&id()).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { seq: 4, .. }), "{error:?}");
    let found = store.verify(&id(), Some(&head)).await.unwrap();
    assert!(found.problems.is_empty() && !found.is_intact(), "{found:?}");
}

#[tokio::test]
async fn a_newer_form_is_refused() {
    let Some(schema) = Schema::create() else { return };
    let (store, _, client) = closed(&schema).await;
    // As a newer version would write its first line.
    let object = format!(
        "{{\"journal\":2,\"session\":\"s\",\"epoch\":1,\"follows\":{{\"epoch\":0,\"seq\":0,\"hash\":\"{}\"}}}}",
        Hash::START
    );
    let (line, _) = pintle_store::format::HashChain::new(&id()).line(&object, 1, 0, &Hash::START);
    client.execute("UPDATE lines SET line = $1 WHERE seq = 1", &[&line.trim_end().as_bytes()]).await.unwrap();
    let error = store.open_writer(&id()).await.unwrap_err();
    assert!(matches!(error, StoreError::Version { found: 2, expected: 1, .. }), "{error:?}");
    client.batch_execute("UPDATE version SET number = 3").await.unwrap();
    let error = PostgresStore::connect(&schema.connection, schema.options()).await.unwrap_err();
    assert!(matches!(error, StoreError::Service { .. }), "{error:?}");
}

#[tokio::test]
async fn tables_of_an_older_version_are_completed() {
    let Some(schema) = Schema::create() else { return };
    let (store, _, client) = closed(&schema).await;
    client.batch_execute("DROP TABLE ledgers; UPDATE version SET number = 1").await.unwrap();
    drop(store);
    let store = schema.store().await;
    assert!(store.open_writer(&id()).await.is_ok(), "what was there is kept");
    assert!(store.replace_ledger("day", 0, "x").await.unwrap());
    let found: i32 = client.query_one("SELECT number FROM version", &[]).await.unwrap().get(0);
    assert_eq!(found, 2);
}

/// The server has lost lines that were not synced, with their writer; a reader had them.
#[tokio::test]
async fn a_reader_of_lost_lines_is_reset() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store().await;
    let client = schema.client().await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    append(&mut writer, 0).await.unwrap();
    client.batch_execute("CREATE TABLE before AS SELECT head_seq, head_hash FROM sessions").await.unwrap();
    append(&mut writer, 1).await.unwrap();
    append(&mut writer, 2).await.unwrap();
    let mut reader = store.read(&id(), 1).await.unwrap();
    let mut behind = store.read(&id(), 4).await.unwrap();
    let lines = present(reader.as_mut()).await.unwrap();
    assert_eq!(numbers(&lines), [0, 1, 2]);
    let restore = "UPDATE sessions SET head_seq = before.head_seq, head_hash = before.head_hash FROM before; \
                   DELETE FROM lines WHERE seq > 2";
    client.batch_execute(restore).await.unwrap();
    assert!(matches!(append(&mut writer, 3).await, Err(StoreError::Lost(_))), "its head is gone");
    drop(writer);
    assert_eq!(present(reader.as_mut()).await.unwrap(), []);
    let mut writer = store.open_writer(&id()).await.unwrap();
    append(&mut writer, 4).await.unwrap();
    append(&mut writer, 5).await.unwrap();
    let mut late = store.read_after(&id(), lines[2].id()).await.unwrap();
    for reader in [&mut reader, &mut late] {
        let error = present(reader.as_mut()).await.unwrap_err();
        assert!(matches!(error, StoreError::Reset { seq: 3, .. }), "{error:?}");
        assert_eq!(numbers(&present(reader.as_mut()).await.unwrap()), [4, 5]);
    }
    assert_eq!(numbers(&present(behind.as_mut()).await.unwrap()), [4, 5], "it had read none of them");
}

/// Values go with the last session that has them, and their changes are found.
#[tokio::test]
async fn values_are_shared_counted_and_verified() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store().await;
    let client = schema.client().await;
    let count = async || client.query_one("SELECT count(*) FROM blobs", &[]).await.unwrap().get::<_, i64>(0);
    let (one, other) = (SessionId::new("a"), SessionId::new("b"));
    for id in [&one, &other] {
        drop(store.create_writer(&Summary::new(id.clone(), Timestamp::from_millis(0))).await.unwrap());
    }
    let shared = store.blobs(&one).put(b"shared".to_vec()).await.unwrap();
    assert_eq!(store.blobs(&other).get(&shared).await.unwrap(), None, "it has not put it");
    assert_eq!(store.blobs(&other).put(b"shared".to_vec()).await.unwrap(), shared);
    let own = store.blobs(&one).put(b"own".to_vec()).await.unwrap();
    assert_eq!(count().await, 2);
    assert!(store.delete(&one).await.unwrap());
    assert_eq!(count().await, 1);
    assert_eq!(store.blobs(&other).get(&shared).await.unwrap().as_deref(), Some(b"shared".as_slice()));
    assert_eq!(store.blobs(&one).get(&own).await.unwrap(), None);
    client.batch_execute("UPDATE blobs SET bytes = 'changed'").await.unwrap();
    assert!(matches!(store.blobs(&other).get(&shared).await, Err(StoreError::DamagedBlob(_))));
    assert!(store.delete(&other).await.unwrap());
    assert_eq!(count().await, 0);
    let missing = store.blobs(&other).put(b"x".to_vec()).await;
    assert!(matches!(missing, Err(StoreError::NotFound(_))), "{missing:?}");
}

/// Sessions with one value are created and deleted at the same time: no reference dangles, and no value stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_survives_the_deletion_of_others() {
    let Some(schema) = Schema::create() else { return };
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..4 {
        let store = schema.store().await;
        tasks.spawn(async move {
            for round in 0..15 {
                let id = SessionId::new(format!("{task} {round}"));
                let writer =
                    store.create_writer(&Summary::new(id.clone(), Timestamp::from_millis(0))).await.unwrap();
                let hash = store.blobs(&id).put(b"shared".to_vec()).await.unwrap();
                assert!(store.blobs(&id).get(&hash).await.unwrap().is_some(), "{id}");
                drop(writer);
                assert!(store.delete(&id).await.unwrap());
            }
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined.unwrap();
    }
    let left = schema.client().await.query_one("SELECT count(*) FROM blobs", &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 0);
}

/// An input that is posted from many places at once is there once.
#[tokio::test]
async fn an_input_is_accepted_once() {
    let Some(schema) = Schema::create() else { return };
    let stores = [schema.store().await, schema.store().await];
    let mut writer = stores[0].create_writer(&summary()).await.unwrap();
    let id = id();
    for input in ["a", "\0", "b"] {
        let (one, other) = tokio::join!(
            stores[0].post(&id, input, "\0x".to_owned()),
            stores[1].post(&id, input, "y".to_owned())
        );
        let mut outcomes = [one.unwrap(), other.unwrap()];
        outcomes.sort_by_key(|posting| *posting == Posting::Known);
        assert_eq!(outcomes, [Posting::Accepted, Posting::Known]);
    }
    let ids: Vec<String> = writer.inbox().await.unwrap().into_iter().map(|posted| posted.input_id).collect();
    assert_eq!(ids, ["a", "\0", "b"]);
}
