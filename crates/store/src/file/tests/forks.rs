//! Forks share files, and nothing that died leaves a half one.
#![expect(clippy::disallowed_methods, reason = "the files of the store are looked at behind its back")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::double::{Fault, Random};
use super::*;

const SEEDS: u64 = 6;

fn fork_id() -> SessionId {
    SessionId::new("f")
}

fn fork_summary() -> Summary {
    Summary::new(fork_id(), Timestamp::from_millis(0))
}

/// Creates a session with two writers, the second of which still writes, and returns it with the line to fork at.
async fn origin(store: &FileStore) -> (Box<dyn SessionWriter>, u64) {
    let mut writer = store.create(summary()).await.unwrap();
    for number in 0..4 {
        append(writer.as_mut(), number, Barrier::Written).await.unwrap();
    }
    drop(writer);
    let mut writer = store.open(&id()).await.unwrap().writer;
    append(writer.as_mut(), 4, Barrier::Written).await.unwrap();
    let at = writer.head().seq;
    append(writer.as_mut(), 5, Barrier::Written).await.unwrap();
    (writer, at)
}

async fn lines_of_fork(store: &FileStore) -> Result<Vec<u64>, StoreError> {
    let mut reader = store.read(&fork_id(), 1).await?;
    let mut lines = Vec::new();
    while let Some(line) = reader.next().await? {
        lines.push(line);
    }
    lines.retain(|line| line.object.starts_with("{\"n\":"));
    Ok(numbers(&lines))
}

#[tokio::test]
async fn a_fork_shares_the_files_of_its_origin() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path().join("store")).unwrap();
    let (writer, at) = origin(&store).await;
    drop(store.fork(&id(), at, fork_summary()).await.unwrap());
    let inode = |path: &str| fs::metadata(store.root().join("sessions").join(path)).unwrap().ino();
    for name in ["0000000001.jsonl", "0000000002.jsonl"] {
        assert_eq!(inode(&format!("s/{name}")), inode(&format!("f/inherited/{name}")));
    }
    let values =
        |session: &str| fs::read_dir(store.root().join(format!("sessions/{session}/blobs"))).unwrap().count();
    assert_eq!((values("s"), values("f")), (2, 1), "only values that the fork refers to");
    drop(writer);
    // What is damaged in the origin is damaged in the fork, and found.
    let path = store.root().join("sessions/f/inherited/0000000001.jsonl");
    fs::remove_file(&path).unwrap();
    let verified = store.verify(&fork_id(), None).await.unwrap();
    assert_eq!(
        (verified.problems[0].seq, verified.problems[0].message.as_str()),
        (5, "its segment is missing")
    );
    assert!(store.verify(&id(), None).await.unwrap().is_intact());
}

/// The process, or the machine, dies at any moment of a fork: there is none, or the whole one.
#[tokio::test]
async fn a_fork_is_whole_or_is_not() {
    let mut at_operation = 1;
    loop {
        let disk = Double::new();
        let files = store(&disk).unwrap();
        let (writer, at) = origin(&files).await;
        let before = disk.operations();
        disk.set_fault(Some(Fault::Death { at: before + at_operation }));
        let forked = files.fork(&id(), at, fork_summary()).await;
        let is_done = forked.is_ok();
        drop((forked, writer));
        for seed in 0..=SEEDS {
            let after = match seed {
                0 => disk.after_kill(),
                seed => disk.after_power_loss(&mut Random(at_operation * 100 + seed)),
            };
            let what = format!("operation {at_operation}, seed {seed}");
            let files = store(&after).unwrap();
            match lines_of_fork(&files).await {
                Ok(lines) => assert_eq!(lines, [0, 1, 2, 3, 4], "{what}"),
                Err(StoreError::NotFound(_)) => assert!(!is_done, "{what}: the fork is gone"),
                Err(error) => panic!("{what}: {error:?}"),
            }
            if files.summary(&fork_id()).await.unwrap().is_none() {
                let at = files.open(&id()).await.unwrap().writer.head().seq;
                drop(files.fork(&id(), at.min(6), fork_summary()).await.unwrap());
            }
            for id in [id(), fork_id()] {
                let verified = files.verify(&id, None).await.unwrap();
                assert!(verified.is_intact(), "{what}: {verified:?}");
            }
        }
        if is_done {
            break;
        }
        at_operation += 1;
    }
    assert!(at_operation > 10, "{at_operation}");
}

/// Leftovers of dead processes are swept, and foreign files stay.
#[tokio::test]
async fn what_nobody_has_is_swept() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path().join("store")).unwrap();
    let (writer, at) = origin(&store).await;
    drop(store.fork(&id(), at, fork_summary()).await.unwrap());
    let root = store.root().to_owned();
    let write = |path: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    };
    let orphan = crate::Hash::of(b"x").to_string();
    let left = [
        format!("blobs/{}/{orphan}", &orphan[..2]),
        "sessions/.deleted-1/0000000001.jsonl".to_owned(),
        "sessions/died/lock".to_owned(),
        "sessions/s/new-1".to_owned(),
        "sessions/s/blobs/new-1".to_owned(),
        "sessions/s/inbox/new-1".to_owned(),
    ];
    let foreign = ["sessions/mine/notes.txt", "sessions/file", "blobs/mine"];
    left.iter().map(String::as_str).chain(foreign).for_each(write);
    assert_eq!(store.sweep(Timestamp::from_millis(0)).await.unwrap(), 0, "all of it is too young");
    let now = Timestamp::from_millis(i64::MAX);
    assert_eq!(store.sweep(now).await.unwrap(), left.len() as u64);
    assert_eq!(store.sweep(now).await.unwrap(), 0);
    assert!(left.iter().all(|path| !root.join(path).exists()));
    assert!(foreign.iter().all(|path| root.join(path).exists()));
    drop(writer);
    for id in [id(), fork_id()] {
        assert!(store.verify(&id, None).await.unwrap().is_intact());
    }
}
