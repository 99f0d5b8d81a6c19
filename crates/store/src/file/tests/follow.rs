//! Readers of journals that lose lines, and that are written while they are read.
#![expect(clippy::disallowed_methods, reason = "the files of the store are changed behind its back")]

use std::fs;

use super::*;
use crate::store::Reader;

fn segment(store: &FileStore, epoch: u64) -> PathBuf {
    store.root().join(format!("sessions/s/{epoch:010}.jsonl"))
}

/// Reads until there is nothing more.
async fn rest(reader: &mut dyn Reader) -> Vec<u64> {
    let mut lines = Vec::new();
    while let Some(line) = reader.next().await.unwrap() {
        lines.push(line);
    }
    lines.retain(|line| line.object.starts_with("{\"n\":"));
    numbers(&lines)
}

/// Lines that a reader has returned are lost with the machine; the next writer does not follow them.
#[tokio::test]
async fn a_reader_of_lost_lines_is_reset() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path().join("store")).unwrap();
    let mut writer = store.create(summary()).await.unwrap();
    append(writer.as_mut(), 0, Barrier::Synced).await.unwrap();
    let size = fs::metadata(segment(&store, 1)).unwrap().len();
    append(writer.as_mut(), 1, Barrier::Written).await.unwrap();
    append(writer.as_mut(), 3, Barrier::Written).await.unwrap();
    drop(writer);
    let mut reader = store.read(&id(), 1).await.unwrap();
    assert_eq!(rest(reader.as_mut()).await, [0, 1, 3]);
    fs::OpenOptions::new().write(true).open(segment(&store, 1)).unwrap().set_len(size).unwrap();
    assert_eq!(rest(reader.as_mut()).await, [0; 0], "nobody knows yet what the next writer follows");
    let mut writer = store.open(&id()).await.unwrap().writer;
    append(writer.as_mut(), 4, Barrier::Synced).await.unwrap();
    let reset = reader.next().await.unwrap_err();
    assert_eq!(
        reset.to_string(),
        "the lines of session `s` from 3 on are void: another writer did not follow them"
    );
    assert_eq!(rest(reader.as_mut()).await, [4]);
}

/// A segment whose writer died before its first line was complete holds nobody up.
#[tokio::test]
async fn a_segment_without_a_first_line_is_passed() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path().join("store")).unwrap();
    let mut writer = store.create(summary()).await.unwrap();
    append(writer.as_mut(), 0, Barrier::Synced).await.unwrap();
    drop(writer);
    let mut reader = store.read(&id(), 1).await.unwrap();
    assert_eq!(rest(reader.as_mut()).await, [0]);
    fs::write(segment(&store, 2), "{\"journal\":1,\"sess").unwrap();
    assert_eq!(rest(reader.as_mut()).await, [0; 0]);
    let mut writer = store.open(&id()).await.unwrap().writer;
    append(writer.as_mut(), 1, Barrier::Synced).await.unwrap();
    assert_eq!(rest(reader.as_mut()).await, [1]);
}

/// A line that was exchanged for another one behind a reader is damage, even if the chain fits.
#[tokio::test]
async fn a_reader_notices_another_journal() {
    let directory = tempfile::tempdir().unwrap();
    let stores = ["a", "b"].map(|name| FileStore::open(directory.path().join(name)).unwrap());
    for (number, store) in [0, 1].into_iter().zip(&stores) {
        let mut writer = store.create(summary()).await.unwrap();
        append(writer.as_mut(), number, Barrier::Synced).await.unwrap();
    }
    let mut reader = stores[0].read(&id(), 1).await.unwrap();
    assert_eq!(rest(reader.as_mut()).await, [0]);
    drop(stores[1].open(&id()).await.unwrap());
    for epoch in [1, 2] {
        fs::copy(segment(&stores[1], epoch), segment(&stores[0], epoch)).unwrap();
    }
    let error = reader.next().await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { seq: 2, .. }), "{error:?}");
}

/// A reader beside a busy writer returns every line once, and takes none that is being written for damage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_keeps_up_with_a_busy_writer() {
    const LINES: u64 = 400;
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path().join("store")).unwrap();
    let mut writer = store.create(summary()).await.unwrap();
    let mut reader = store.read(&id(), 1).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    let opener = store.clone();
    tasks.spawn(async move {
        for number in 0..LINES {
            let barrier = if number % 4 == 0 { Barrier::Synced } else { Barrier::Written };
            append(writer.as_mut(), number, barrier).await.unwrap();
            if number % 100 == 99 {
                drop(writer);
                writer = opener.open(&id()).await.unwrap().writer;
            }
        }
    });
    let mut found = Vec::new();
    while found.len() < LINES as usize {
        let lines = rest(reader.as_mut()).await;
        if lines.is_empty() {
            reader.wait().await;
        }
        found.extend(lines);
    }
    assert_eq!(found, (0..LINES).collect::<Vec<_>>());
    while let Some(joined) = tasks.join_next().await {
        joined.unwrap();
    }
}
