//! One writer per session, by leases.

use tokio::time::{sleep, timeout};

use super::*;
use crate::writer::PostgresWriter;

/// Short for a test that waits for its end, and long enough for a busy machine to renew it.
const SHORT: Duration = Duration::from_secs(4);

/// Opens the session as soon as its lease has run out.
async fn take_over(store: &PostgresStore) -> PostgresWriter {
    let opened = async {
        loop {
            match store.open_writer(&id()).await {
                Ok(writer) => return writer,
                Err(StoreError::InUse { .. }) => sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    timeout(PATIENCE, opened).await.unwrap()
}

#[tokio::test]
async fn a_renewed_lease_outlives_its_length() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store_with(schema.options().with_lease(SHORT)).await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    let fence = writer.fence();
    for number in 0..4 {
        sleep(SHORT / 2).await;
        fence.check().unwrap();
        assert!(matches!(store.open_writer(&id()).await, Err(StoreError::InUse { .. })));
        append(&mut writer, number).await.unwrap();
    }
    assert_eq!(all(&store).await, [0, 1, 2, 3]);
}

/// As if its process was stopped: nothing renews the lease, and the writer is used again after the takeover.
#[tokio::test]
async fn a_stale_writer_can_do_nothing() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store_with(schema.options().with_lease(SHORT)).await;
    let mut stale = store.create_writer(&summary()).await.unwrap();
    append(&mut stale, 0).await.unwrap();
    stale.hold_renewal();
    let fence = stale.fence();
    fence.check().unwrap();
    let other = schema.store_with(schema.options().with_lease(SHORT)).await;
    let mut writer = take_over(&other).await;
    assert_eq!(writer.epoch(), stale.epoch() + 1);
    assert!(fence.check().unwrap_err().to_string().contains("does not own"));
    append(&mut writer, 1).await.unwrap();
    assert!(matches!(append(&mut stale, 2).await, Err(StoreError::Lost(_))));
    assert!(matches!(stale.take("i").await, Err(StoreError::Lost(_))));
    assert!(matches!(stale.set_summary(summary()).await, Err(StoreError::Lost(_))));
    // Dropping it does not give the session of the other one back: asked on its own connection, after its statement.
    drop(stale);
    assert!(store.holder(&id()).await.unwrap().is_some());
    append(&mut writer, 3).await.unwrap();
    assert_eq!(all(&store).await, [0, 1, 3]);
    assert!(store.verify(&id(), None).await.unwrap().is_intact());
}

/// Even if a stale writer believes that its lease lives, the database does not take its lines.
#[tokio::test]
async fn the_database_refuses_a_stale_writer() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store().await;
    let mut stale = store.create_writer(&summary()).await.unwrap();
    let client = schema.client().await;
    client.batch_execute("UPDATE sessions SET lease_until = clock_timestamp()").await.unwrap();
    let mut writer = store.open_writer(&id()).await.unwrap();
    stale.fence().check().unwrap();
    assert!(matches!(append(&mut stale, 0).await, Err(StoreError::Lost(_))));
    stale.fence().check().unwrap_err();
    append(&mut writer, 1).await.unwrap();
    assert_eq!(all(&store).await, [1]);
}

/// Each condition holds by itself: the lease by the database's clock, and the number of the writer.
#[tokio::test]
async fn lines_need_lease_and_epoch() {
    for change in ["lease_until = clock_timestamp()", "lease_until = NULL", "epoch = epoch + 1"] {
        let Some(schema) = Schema::create() else { return };
        let store = schema.store().await;
        let mut writer = store.create_writer(&summary()).await.unwrap();
        append(&mut writer, 0).await.unwrap();
        schema.client().await.batch_execute(&format!("UPDATE sessions SET {change}")).await.unwrap();
        writer.fence().check().unwrap();
        assert!(matches!(append(&mut writer, 1).await, Err(StoreError::Lost(_))), "{change}");
        assert_eq!(all(&store).await, [0], "{change}");
    }
}

/// An opener that found the session free takes nothing if somebody else was quicker.
#[tokio::test]
async fn a_session_in_use_is_not_taken() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store().await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    let head = append(&mut writer, 0).await.unwrap();
    let key = schema.client().await.query_one("SELECT key FROM sessions", &[]).await.unwrap().get(0);
    let taken = PostgresWriter::take_over(&store.database, &id(), key, head).await.unwrap();
    assert!(taken.is_none());
    append(&mut writer, 1).await.unwrap();
}

/// A lease that has run out does not come back, although nobody has taken the session.
#[tokio::test]
async fn a_lease_that_ran_out_stays_so() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store_with(schema.options().with_lease(SHORT)).await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    writer.hold_renewal();
    let fence = writer.fence();
    let expired = async {
        while fence.check().is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, expired).await.unwrap();
    assert!(matches!(append(&mut writer, 0).await, Err(StoreError::Lost(_))));
    drop(writer);
    assert_eq!(store.open_writer(&id()).await.unwrap().epoch(), 2);
}

#[tokio::test]
async fn of_many_openers_one_wins() {
    let Some(schema) = Schema::create() else { return };
    let first = schema.store().await;
    drop(first.create_writer(&summary()).await.unwrap());
    assert_eq!(first.holder(&id()).await.unwrap(), None);
    for round in 0..10 {
        let stores = [schema.store().await, schema.store().await, schema.store().await];
        let [a, b, c] = &stores;
        let id = id();
        let opened = tokio::join!(a.open_writer(&id), b.open_writer(&id), c.open_writer(&id));
        let opened = [opened.0, opened.1, opened.2];
        let refused = opened.iter().filter(|opened| matches!(opened, Err(StoreError::InUse { .. }))).count();
        assert_eq!(refused, 2, "{opened:?}");
        let mut winner = opened.into_iter().find_map(Result::ok).unwrap();
        assert_eq!(winner.epoch(), round + 2);
        append(&mut winner, round).await.unwrap();
        winner.close().await.unwrap();
        drop(winner);
        // The release of another connection may still be on its way.
        let freed = async {
            while first.holder(&id).await.unwrap().is_some() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, freed).await.unwrap();
    }
    assert_eq!(all(&first).await, (0..10).collect::<Vec<_>>());
}

/// A writer that was closed holds nothing, although it was not dropped: its process may exit at once.
#[tokio::test]
async fn closing_gives_the_session_back() {
    let Some(schema) = Schema::create() else { return };
    let (store, other) = (schema.store().await, schema.store().await);
    let mut writer = store.create_writer(&summary()).await.unwrap();
    writer.close().await.unwrap();
    assert_eq!(other.holder(&id()).await.unwrap(), None);
    let mut next = other.open_writer(&id()).await.unwrap();
    assert!(matches!(append(&mut writer, 0).await, Err(StoreError::Lost(_))));
    append(&mut next, 1).await.unwrap();
}

/// A call that was cancelled may have written or not, so the writer is at its end.
#[tokio::test]
async fn a_cancelled_append_ends_the_writer() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store().await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let polled = std::pin::pin!(append(&mut writer, 0)).poll(&mut cx);
        assert!(polled.is_pending());
    }
    writer.fence().check().unwrap_err();
    assert!(matches!(append(&mut writer, 1).await, Err(StoreError::Lost(_))));
    drop(writer);
    store.open_writer(&id()).await.unwrap();
    assert!(matches!(all(&store).await.as_slice(), [] | [0]));
}
