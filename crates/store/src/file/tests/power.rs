//! The process or the machine dies at every operation.

use super::double::{Fault, Random};
use super::*;
use crate::store::{Filter, Page, Posting};

/// Losses of power per operation, each with other parts of what was not synced.
const SEEDS: u64 = 12;

/// Acknowledgements that a script received.
#[derive(Debug, Default)]
struct Told {
    created: bool,
    /// Whether the session was acknowledged: it was created, and passed a barrier or got an input.
    acknowledged: bool,
    /// Lines whose barrier was passed.
    synced: Vec<u64>,
    /// Lines that were written, at least.
    written: Vec<u64>,
    /// Lines that were handed over.
    tried: Vec<u64>,
    posted: Vec<String>,
    /// Inputs that the writer has removed, or tried to.
    taken: Vec<String>,
}

/// Runs a session until something fails.
async fn script(disk: &Double, told: &mut Told) -> Result<(), StoreError> {
    let store = store(disk)?;
    let mut writer = store.create(summary()).await?;
    told.created = true;
    for number in 0..8 {
        let barrier = if number % 4 == 3 { Barrier::Synced } else { Barrier::Written };
        write(writer.as_mut(), number, barrier, told).await?;
    }
    for input in ["a", "b", "c"] {
        post(&store, input, told).await?;
    }
    told.taken.push("a".to_owned());
    writer.take("a").await?;
    writer.set_summary(summary().with_property("k", "v")).await?;
    drop(writer);
    let mut writer = store.open(&id()).await?.writer;
    for number in 8..11 {
        write(writer.as_mut(), number, Barrier::Synced, told).await?;
    }
    writer.close().await?;
    told.synced.clone_from(&told.tried);
    Ok(())
}

async fn write(
    writer: &mut dyn SessionWriter,
    number: u64,
    barrier: Barrier,
    told: &mut Told,
) -> Result<(), StoreError> {
    told.tried.push(number);
    append(writer, number, barrier).await?;
    told.written.push(number);
    if barrier == Barrier::Synced {
        // The barrier is one for everything before it.
        told.synced.clone_from(&told.written);
        told.acknowledged = true;
    }
    Ok(())
}

async fn post(store: &FileStore, input: &str, told: &mut Told) -> Result<(), StoreError> {
    store.post(&id(), input, "{}".to_owned()).await?;
    told.posted.push(input.to_owned());
    told.acknowledged = true;
    Ok(())
}

/// Runs a session that gets inputs before its writer has passed a barrier, and whose process dies before it does.
async fn script_without_barrier(disk: &Double, told: &mut Told) -> Result<(), StoreError> {
    let store = store(disk)?;
    let mut writer = store.create(summary()).await?;
    told.created = true;
    write(writer.as_mut(), 0, Barrier::Written, told).await?;
    post(&store, "a", told).await?;
    write(writer.as_mut(), 1, Barrier::Written, told).await?;
    drop(writer);
    let mut writer = store.open(&id()).await?.writer;
    post(&store, "b", told).await?;
    write(writer.as_mut(), 2, Barrier::Written, told).await
}

/// Checks that what the disk has is what was acknowledged, and a beginning of what was tried. Then continues the session,
/// which may be missing unless `must_exist`.
async fn recovers(disk: &Double, told: &Told, must_exist: bool, acknowledged: &[u64], what: &str) {
    let store = store(disk).unwrap();
    let mut opened = match store.open(&id()).await {
        Ok(opened) => opened,
        Err(StoreError::NotFound(_)) => {
            assert!(!must_exist, "{what}: the session is gone");
            store.create(summary()).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
            return;
        }
        Err(error) => panic!("{what}: {error:?}"),
    };
    let found = numbers(&lines(&store).await.unwrap());
    assert!(found.starts_with(acknowledged), "{what}: {found:?} lacks some of {acknowledged:?}");
    assert!(told.tried.starts_with(&found), "{what}: {found:?} is not the beginning of {:?}", told.tried);
    let waiting: Vec<String> =
        opened.writer.inbox().await.unwrap().into_iter().map(|posted| posted.input_id).collect();
    for input in told.posted.iter().filter(|input| !told.taken.contains(input)) {
        assert!(waiting.contains(input), "{what}: input {input} is lost");
        assert_eq!(store.post(&id(), input, "{}".to_owned()).await.unwrap(), Posting::Known, "{what}");
    }
    append(opened.writer.as_mut(), 99, Barrier::Synced).await.unwrap();
    let verified = store.verify(&id(), None).await.unwrap();
    assert!(verified.is_intact(), "{what}: {verified:?}");
    assert_eq!(numbers(&lines(&store).await.unwrap()).last(), Some(&99), "{what}");
}

/// Returns the number of operations of a whole script.
async fn operations() -> u64 {
    let disk = Double::new();
    script(&disk, &mut Told::default()).await.unwrap();
    disk.operations()
}

#[tokio::test]
async fn acknowledged_lines_survive_the_death_of_the_process_at_every_operation() {
    let operations = operations().await;
    println!("{operations} operations");
    for at in 1..=operations {
        let (disk, mut told) = (Double::new(), Told::default());
        disk.set_fault(Some(Fault::Death { at }));
        let error = script(&disk, &mut told).await.expect_err("it dies");
        let acknowledged = told.written.clone();
        let what = format!("operation {at} ({error})");
        recovers(&disk.after_kill(), &told, told.created, &acknowledged, &what).await;
    }
}

#[tokio::test]
async fn acknowledged_lines_survive_a_loss_of_power_at_every_operation() {
    for at in 1..=operations().await {
        let (disk, mut told) = (Double::new(), Told::default());
        disk.set_fault(Some(Fault::Death { at }));
        script(&disk, &mut told).await.expect_err("it dies");
        for seed in 0..SEEDS {
            let after = disk.after_power_loss(&mut Random(at * 1_000 + seed));
            let what = format!("operation {at}, seed {seed}");
            recovers(&after, &told, told.acknowledged, &told.synced, &what).await;
        }
    }
}

/// An input that was posted before the first barrier is not lost with its session.
#[tokio::test]
async fn inputs_before_the_first_barrier_survive_a_loss_of_power() {
    let disk = Double::new();
    script_without_barrier(&disk, &mut Told::default()).await.unwrap();
    // The last round loses the power after the script.
    for at in 1..=disk.operations() + 1 {
        let (disk, mut told) = (Double::new(), Told::default());
        disk.set_fault(Some(Fault::Death { at }));
        let ended = script_without_barrier(&disk, &mut told).await;
        for seed in 0..SEEDS {
            let after = disk.after_power_loss(&mut Random(at * 1_000 + seed));
            let what = format!("operation {at}, seed {seed}, {ended:?}");
            recovers(&after, &told, told.acknowledged, &told.synced, &what).await;
        }
    }
}

/// Nothing is on disk before the first barrier. Whatever a loss of power leaves is no damage.
#[tokio::test]
async fn a_session_without_a_barrier_is_lost_or_a_beginning() {
    let disk = Double::new();
    let mut writer = store(&disk).unwrap().create(summary()).await.unwrap();
    let mut told = Told { created: true, ..Told::default() };
    for number in [0, 1, 3, 4, 6] {
        write(writer.as_mut(), number, Barrier::Written, &mut told).await.unwrap();
    }
    let mut missing = 0;
    for seed in 0..200 {
        let after = disk.after_power_loss(&mut Random(seed));
        let files = store(&after).unwrap();
        let listed = files.list(&Filter::default(), &Page::default()).await.unwrap();
        let is_missing = matches!(files.open(&id()).await, Err(StoreError::NotFound(_)));
        assert_eq!(listed.is_empty(), is_missing, "seed {seed}: {listed:?}");
        missing += u64::from(is_missing);
        recovers(&after, &told, false, &[], &format!("seed {seed}")).await;
    }
    assert!((1..200).contains(&missing), "{missing}");
}

/// A writer waits for the disk once before its first input is accepted: for the segment, its name and the name of its
/// directory together.
#[tokio::test]
async fn a_new_session_waits_for_the_disk_once() {
    let disk = Double::new();
    let store = store(&disk).unwrap();
    let start = disk.waits();
    let waits = || disk.waits() - start;
    let mut writer = store.create(summary()).await.unwrap();
    append(writer.as_mut(), 0, Barrier::Written).await.unwrap();
    assert_eq!(waits(), 0);
    append(writer.as_mut(), 1, Barrier::Synced).await.unwrap();
    assert_eq!(waits(), 1);
    append(writer.as_mut(), 3, Barrier::Synced).await.unwrap();
    assert_eq!(waits(), 2);
    // All lines are on disk. Only the mark that the journal is complete is not.
    writer.close().await.unwrap();
    assert_eq!(waits(), 3);
    drop(writer);
    // The lines of the previous writer come first, then the line that follows them and its name.
    drop(store.open(&id()).await.unwrap());
    assert_eq!(waits(), 5);
}

/// The power goes again while the session is opened after the first loss.
#[tokio::test]
async fn acknowledged_lines_survive_a_second_loss_of_power() {
    let all = operations().await;
    for at in (1..=all).step_by(3) {
        let (disk, mut told) = (Double::new(), Told::default());
        disk.set_fault(Some(Fault::Death { at }));
        script(&disk, &mut told).await.expect_err("it dies");
        for again in 1..12 {
            let after = disk.after_power_loss(&mut Random(at * 100 + again));
            after.set_fault(Some(Fault::Death { at: again }));
            if let Ok(store) = store(&after) {
                let _ = store.open(&id()).await;
            }
            let after = after.after_power_loss(&mut Random(at + again));
            let what = format!("operation {at}, then {again}");
            recovers(&after, &told, told.acknowledged, &told.synced, &what).await;
        }
    }
}
