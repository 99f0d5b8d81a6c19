//! The process or the machine dies at every operation.

use super::double::{Fault, Random};
use super::*;
use crate::store::Posting;

/// Losses of power per operation, each with other parts of what was not synced.
const SEEDS: u64 = 12;

/// Acknowledgements that a script received.
#[derive(Debug, Default)]
struct Told {
    created: bool,
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
        let barrier = if number % 2 == 0 { Barrier::Synced } else { Barrier::Written };
        write(writer.as_mut(), number, barrier, told).await?;
    }
    for input in ["a", "b", "c"] {
        store.post(&id(), input, "{}".to_owned()).await?;
        told.posted.push(input.to_owned());
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
    }
    Ok(())
}

/// Checks that what the disk has is what was acknowledged, and a beginning of what was tried. Then goes on with it.
async fn recovers(disk: &Double, told: &Told, acknowledged: &[u64], what: &str) {
    let store = store(disk).unwrap();
    let mut opened = match store.open(&id()).await {
        Ok(opened) => opened,
        Err(StoreError::NotFound(_)) => {
            assert!(!told.created, "{what}: the session is gone");
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
        recovers(&disk.after_kill(), &told, &acknowledged, &format!("operation {at} ({error})")).await;
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
            recovers(&after, &told, &told.synced.clone(), &format!("operation {at}, seed {seed}")).await;
        }
    }
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
            recovers(&after, &told, &told.synced.clone(), &what).await;
        }
    }
}
