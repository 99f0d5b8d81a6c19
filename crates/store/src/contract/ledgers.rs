//! Questions about ledgers.

use std::io::ErrorKind;
use std::sync::Arc;

use pintle_agent::{Ledger, Ledgers};

/// A ledger is replaced only by a caller that has read its last text.
pub async fn a_ledger_is_replaced_by_who_read_it_last(store: Arc<dyn Ledgers>) {
    let ledger = async |name| store.ledger(name).await.expect("the ledger is read");
    let replace = async |version, text| store.replace_ledger("day", version, text).await.expect("it answers");
    assert_eq!(ledger("day").await, Ledger::default());
    assert!(!replace(1, "early").await, "it has no version 1 yet");
    assert!(replace(0, "one \" \u{e4}\n").await);
    assert_eq!(ledger("day").await, Ledger::new(1, "one \" \u{e4}\n"));
    assert!(!replace(0, "late").await);
    assert!(replace(1, "two").await);
    assert_eq!((ledger("day").await, ledger("other").await), (Ledger::new(2, "two"), Ledger::default()));
    assert!(!replace(1, "").await);
    assert!(replace(2, "").await);
    assert_eq!(ledger("day").await, Ledger::default(), "an empty text removes it");
    for name in ["", "a/b", "..", "\u{e4}", &"a".repeat(101)] {
        let error = store.ledger(name).await.expect_err("the name is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let error = store.replace_ledger(name, 0, "x").await.expect_err("the name is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}

/// No concurrent change is lost.
pub async fn no_change_of_a_ledger_is_lost(store: Arc<dyn Ledgers>) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut changes = 0;
            while changes < 5 {
                let ledger = store.ledger("count").await.expect("the ledger is read");
                let number = ledger.text.parse::<u64>().unwrap_or(0) + 1;
                let replaced = store.replace_ledger("count", ledger.version, &number.to_string()).await;
                changes += u64::from(replaced.expect("it answers"));
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("every change is made");
    }
    let ledger = store.ledger("count").await.expect("the ledger is read");
    assert_eq!(ledger, Ledger::new(40, "40"));
}
