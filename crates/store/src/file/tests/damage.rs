//! Journals that somebody else has changed, cut, or never wrote.

use super::*;
use crate::store::Position;

const SEGMENT: &str = "/disk/store/sessions/s/0000000001.jsonl";

/// Returns a disk with a session of three lines, and its head.
async fn disk(closed: bool) -> (Double, Position) {
    let disk = Double::new();
    let mut writer = store(&disk).unwrap().create(summary()).await.unwrap();
    for number in [0, 1, 3] {
        append(writer.as_mut(), number, Barrier::Synced).await.unwrap();
    }
    let head = writer.head();
    let head = if closed { writer.close().await.unwrap() } else { head };
    (disk, head)
}

/// Returns the number of the line that has byte `at`, from 1.
fn line_of(bytes: &[u8], at: usize) -> u64 {
    bytes[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

/// A changed byte is found where it is. In the newest line, which no later one confirms, only a head that was kept
/// elsewhere shows it.
#[tokio::test]
async fn every_changed_byte_is_found() {
    let (original, head) = disk(true).await;
    let bytes = original.bytes(SEGMENT);
    let last = line_of(&bytes, bytes.len() - 1);
    for at in 0..bytes.len() {
        let changed = original.after_kill();
        changed.change(SEGMENT, |bytes| bytes[at] ^= 0x04);
        let store = store(&changed).unwrap();
        let line = line_of(&bytes, at);
        let verified = store.verify(&id(), Some(&head)).await.unwrap();
        assert!(!verified.is_intact(), "byte {at} of line {line}: {verified:?}");
        let opened = store.open(&id()).await;
        if line < last {
            let is_named = matches!(&opened, Err(StoreError::Damaged { seq, .. }) if *seq == line);
            // A first line may be damaged so that it is none at all.
            let is_none = line == 1 && matches!(&opened, Err(StoreError::NotAJournal(_)));
            assert!(is_named || is_none, "byte {at}: {opened:?}");
            assert_eq!(verified.problems[0].seq, line, "byte {at}: {verified:?}");
            assert_eq!(changed.bytes(SEGMENT).len(), bytes.len(), "nothing is rewritten");
        } else {
            // The mark that the session was closed is all that is lost.
            assert_eq!(opened.unwrap().torn.map(|torn| torn.seq), Some(last), "byte {at}");
        }
    }
}

/// Wherever the file ends, it opens without the line that is not whole, and says so.
#[tokio::test]
async fn every_cut_of_the_last_line_is_a_torn_tail() {
    let (original, head) = disk(false).await;
    let bytes = original.bytes(SEGMENT);
    let start = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for end in start..bytes.len() {
        let cut = original.after_kill();
        cut.change(SEGMENT, |bytes| bytes.truncate(end));
        let store = store(&cut).unwrap();
        let verified = store.verify(&id(), None).await.unwrap();
        assert!(verified.is_intact(), "{end}: {verified:?}");
        assert!(!store.verify(&id(), Some(&head)).await.unwrap().is_intact(), "{end}: the head is missing");
        let opened = store.open(&id()).await.unwrap();
        let torn = opened.torn.map(|torn| (torn.seq, torn.bytes));
        assert_eq!(torn, (end > start).then_some((4, (end - start) as u64)), "{end}");
        assert_eq!(numbers(&lines(&store).await.unwrap()), [0, 1], "{end}");
        assert_eq!(cut.bytes(SEGMENT).len(), end, "the tail is kept");
    }
}

/// Lines that are all right, but not in this place.
#[tokio::test]
async fn moved_lines_are_found() {
    let (original, head) = disk(true).await;
    let lines: Vec<Vec<u8>> =
        original.bytes(SEGMENT).split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let order = |order: &[usize]| order.iter().flat_map(|index| lines[*index].clone()).collect::<Vec<u8>>();
    for (name, bytes, seq) in [
        ("two lines are swapped", order(&[0, 2, 1, 3, 4]), 2),
        ("a line is there twice", order(&[0, 1, 1, 2, 3, 4]), 3),
        ("a line is left out", order(&[0, 1, 3, 4]), 3),
        ("the beginning is left out", order(&[1, 2, 3, 4]), 1),
    ] {
        let changed = original.after_kill();
        changed.change(SEGMENT, |old| *old = bytes);
        let found = store(&changed).unwrap().verify(&id(), Some(&head)).await.unwrap();
        assert_eq!(found.problems.first().map(|problem| problem.seq), Some(seq), "{name}: {found:?}");
    }
    // Without the lines that confirm them, lines that are cut off are missed only by the head.
    let cut = original.after_kill();
    cut.change(SEGMENT, |old| *old = order(&[0, 1, 2]));
    let store = store(&cut).unwrap();
    assert!(store.verify(&id(), None).await.unwrap().is_intact());
    let found = store.verify(&id(), Some(&head)).await.unwrap();
    assert_eq!((found.matches_head, found.head.seq), (Some(false), 3));
}

/// Somebody rewrites a line and everything after it, with hashes that fit.
#[tokio::test]
async fn a_rewritten_chain_does_not_have_the_head() {
    let (_, head) = disk(true).await;
    let disk = Double::new();
    let store = store(&disk).unwrap();
    let mut writer = store.create(summary()).await.unwrap();
    for number in [0, 4, 3] {
        append(writer.as_mut(), number, Barrier::Synced).await.unwrap();
    }
    let other = writer.close().await.unwrap();
    assert_eq!(other.seq, head.seq);
    let found = store.verify(&id(), Some(&head)).await.unwrap();
    assert!(found.problems.is_empty() && found.matches_head == Some(false), "{found:?}");
}

/// A line of another session does not fit, although its number does.
#[tokio::test]
async fn lines_of_another_session_are_found() {
    let (original, _) = disk(true).await;
    let other = SessionId::new("other");
    let store = store(&original).unwrap();
    store.create(Summary::new(other, Timestamp::from_millis(0))).await.unwrap().close().await.unwrap();
    let foreign = original.bytes("/disk/store/sessions/other/0000000001.jsonl");
    original.change(SEGMENT, |bytes| *bytes = foreign);
    assert!(matches!(store.open(&id()).await, Err(StoreError::Damaged { seq: 1, .. })));
}

#[tokio::test]
async fn a_removed_or_changed_value_is_found() {
    let disk = Double::new();
    let store = store(&disk).unwrap();
    let mut writer = store.create(summary()).await.unwrap();
    append(writer.as_mut(), 2, Barrier::Synced).await.unwrap();
    let directory = PathBuf::from("/disk/store/sessions/s/blobs");
    use super::super::disk::Disk as _;
    let blob = disk.list(&directory).unwrap().remove(0);
    disk.change(directory.join(&blob).to_str().unwrap(), |bytes| bytes[7] ^= 1);
    let found = store.verify(&id(), None).await.unwrap();
    assert_eq!(found.problems[0].message, format!("the value {blob} is damaged"));
    disk.remove_file(&directory.join(&blob)).unwrap();
    let found = store.verify(&id(), None).await.unwrap();
    assert_eq!((found.problems[0].seq, found.blobs), (2, 0));
    assert_eq!(found.problems[0].message, format!("the value {blob} was removed"));
}

/// Files that are no journals of this version, in a real directory.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test writes what somebody else might")]
async fn foreign_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    store.create(summary()).await.unwrap().close().await.unwrap();
    let second = directory.path().join("sessions/s/0000000002.jsonl");
    let refused = async || store.open(&id()).await.unwrap_err().to_string();
    let head = store.verify(&id(), None).await.unwrap().head;
    let future = serde_json::json!({"journal": 9, "session": "s", "epoch": 2, "follows": head}).to_string();
    let (future, _) = crate::line::HashChain::new(&id()).line(&future, head.seq + 1, head.seq, &head.hash);
    let not_ours = format!("`{}` is not a journal", second.display());
    for (text, expected) in [
        (
            format!("{}\n", future.replace("HASH", &"0".repeat(64))),
            "the journal of session `s` has version 9; this program reads up to 1",
        ),
        ("hello\n".to_owned(), not_ours.as_str()),
        (future, "the journal of session `s` has version 9; this program reads up to 1"),
        ("hello\n".to_owned(), not_ours.as_str()),
        (format!("{}\n", "x".repeat(1 << 20)), not_ours.as_str()),
    ] {
        std::fs::write(&second, text).unwrap();
        assert_eq!(refused().await, expected);
    }
    std::fs::remove_file(&second).unwrap();
    // A line of a gigabyte takes no memory.
    std::fs::File::create(&second).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(refused().await, not_ours);
    std::fs::remove_file(&second).unwrap();
    std::fs::create_dir_all(&second).unwrap();
    assert_eq!(refused().await, format!("cannot open `{}`", second.display()));
    std::fs::remove_dir(&second).unwrap();
    // Other names do not belong to the journal.
    std::fs::write(directory.path().join("sessions/s/notes.jsonl"), "hello").unwrap();
    assert!(store.open(&id()).await.is_ok());
}

/// Three writers wrote a line each; a segment is destroyed at its first line, or removed. The lines before it can still be read, and
/// the reader then reports the damage.
#[tokio::test]
async fn segments_before_a_destroyed_one_can_be_read() {
    let original = Double::new();
    let store = store(&original).unwrap();
    let mut writer = store.create(summary()).await.unwrap();
    append(writer.as_mut(), 0, Barrier::Synced).await.unwrap();
    writer.close().await.unwrap();
    drop(writer);
    for number in [1, 3] {
        let mut writer = store.open(&id()).await.unwrap().writer;
        append(writer.as_mut(), number, Barrier::Synced).await.unwrap();
        writer.close().await.unwrap();
    }
    let segment = |epoch| format!("/disk/store/sessions/s/000000000{epoch}.jsonl");
    use super::super::disk::Disk as _;
    for (epoch, expected) in [(3, vec![0, 1]), (2, vec![0])] {
        for is_removed in [false, true] {
            if is_removed && epoch == 3 {
                // No later segment names the newest one.
                continue;
            }
            let changed = original.after_kill();
            if is_removed {
                changed.remove_file(&PathBuf::from(segment(epoch))).unwrap();
            } else {
                changed.change(&segment(epoch), |bytes| bytes[..40].fill(0));
            }
            let store = super::store(&changed).unwrap();
            let mut reader = store.read(&id(), 1).await.unwrap();
            let mut lines = Vec::new();
            let error = loop {
                match reader.next().await {
                    Ok(Some(line)) => lines.push(line),
                    Ok(None) => panic!("{epoch}: the damage is not reported"),
                    Err(error) => break error,
                }
            };
            lines.retain(|line: &Line| line.object.starts_with("{\"n\":"));
            assert_eq!(numbers(&lines), expected, "{epoch}");
            assert!(error.is_damage(), "{epoch}: {error}");
            assert!(store.open(&id()).await.unwrap_err().is_damage(), "{epoch}");
            assert!(!store.verify(&id(), None).await.unwrap().is_intact(), "{epoch}");
            assert!(store.summary(&id()).await.unwrap().is_some(), "{epoch}");
        }
    }
}
