//! File stores: the contract, and what only files can suffer.

mod checkpoints;
mod damage;
mod double;
mod faults;
mod follow;
mod forks;
mod power;
mod serialised;

use std::path::PathBuf;
use std::sync::Arc;

use pintle_agent::{Barrier, SessionId, Timestamp};

use self::double::Double;
use super::FileStore;
use crate::blob::MAX_INLINE_STRING;
use crate::store::{SessionStore, SessionWriter, Summary};
use crate::{Line, StoreError};

mod contract {
    crate::store_contract!(async || {
        let directory = tempfile::tempdir().unwrap();
        (crate::FileStore::open(directory.path().join("store")).unwrap(), directory)
    });
    crate::store_contract!(ledgers, async || {
        let directory = tempfile::tempdir().unwrap();
        (crate::FileStore::open(directory.path().join("store")).unwrap(), directory)
    });
}

fn id() -> SessionId {
    SessionId::new("s")
}

fn summary() -> Summary {
    Summary::new(id(), Timestamp::from_millis(0))
}

fn store(disk: &Double) -> Result<FileStore, StoreError> {
    FileStore::on(Arc::new(disk.clone()), PathBuf::from("/disk/store"))
}

/// Returns the lines of the session that a test wrote.
async fn lines(store: &FileStore) -> Result<Vec<Line>, StoreError> {
    let mut reader = store.read(&id(), 1).await?;
    let mut lines = Vec::new();
    while let Some(line) = reader.next().await? {
        if line.object.starts_with("{\"n\":") {
            lines.push(line);
        }
    }
    Ok(lines)
}

/// Returns the numbers of these lines.
fn numbers(lines: &[Line]) -> Vec<u64> {
    let number = |line: &Line| {
        let value: serde_json::Value = serde_json::from_str(&line.object).unwrap();
        value["n"].as_u64().unwrap()
    };
    lines.iter().map(number).collect()
}

/// Returns the line with this number; every third one has a large value.
fn object(number: u64) -> String {
    let size = if number % 3 == 2 { MAX_INLINE_STRING + 1 } else { 300 };
    format!("{{\"n\":{number},\"text\":\"{}\"}}", "x".repeat(size) + &number.to_string())
}

async fn append(writer: &mut dyn SessionWriter, number: u64, barrier: Barrier) -> Result<(), StoreError> {
    writer.append(vec![object(number)], barrier).await.map(drop)
}
