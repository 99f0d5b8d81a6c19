//! Errors of the file system: a full disk, a read-only one, a broken one, locks that fail.

use std::io;

use super::double::Fault;
use super::*;

const KINDS: [io::ErrorKind; 4] = [
    io::ErrorKind::StorageFull,
    io::ErrorKind::ReadOnlyFilesystem,
    io::ErrorKind::QuotaExceeded,
    // As EIO is reported.
    io::ErrorKind::Other,
];

/// After an error nothing more is acknowledged, although the disk works again; what was acknowledged is there.
#[tokio::test]
async fn a_writer_ends_at_the_first_error() {
    let disk = Double::new();
    let mut writer = store(&disk).unwrap().create(summary()).await.unwrap();
    let created = disk.operations();
    for number in 0..4 {
        append(writer.as_mut(), number, Barrier::Synced).await.unwrap();
    }
    let all = disk.operations();
    for at in created + 1..=all {
        for kind in KINDS {
            for lasting in [false, true] {
                let disk = Double::new();
                let store = store(&disk).unwrap();
                let mut writer = store.create(summary()).await.unwrap();
                let fence = writer.fence();
                disk.set_fault(Some(Fault::Error { at, kind, lasting }));
                let mut acknowledged = Vec::new();
                let mut number = 0;
                let error = loop {
                    match append(writer.as_mut(), number, Barrier::Synced).await {
                        Ok(()) => acknowledged.push(number),
                        Err(error) => break error,
                    }
                    number += 1;
                    // Sharing a value with other sessions may fail without harm.
                    if number == 4 {
                        break StoreError::Lost(id());
                    }
                };
                let what = format!("operation {at}, {kind:?}, lasting: {lasting}: {error:?}");
                if number < 4 {
                    assert!(
                        matches!(&error, StoreError::Io { source, .. } if source.kind() == kind),
                        "{what}"
                    );
                    fence.check().expect_err("nothing may have an effect any more");
                    disk.set_fault(None);
                    let refused = append(writer.as_mut(), 50, Barrier::Written).await;
                    assert!(matches!(refused, Err(StoreError::Lost(_))), "{what}: {refused:?}");
                }
                disk.set_fault(None);
                drop(writer);
                let opened = store.open(&id()).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
                drop(opened);
                let found = numbers(&lines(&store).await.unwrap());
                assert!(
                    found.starts_with(&acknowledged) && found.len() <= acknowledged.len() + 1,
                    "{what}: {found:?}"
                );
            }
        }
    }
}

/// A session that cannot be created is an error, and can be created later.
#[tokio::test]
async fn a_failed_creation_leaves_nothing() {
    let disk = Double::new();
    store(&disk).unwrap().create(summary()).await.unwrap();
    for at in 1..=disk.operations() {
        let disk = Double::new();
        disk.set_fault(Some(Fault::Error { at, kind: io::ErrorKind::StorageFull, lasting: true }));
        let created = match store(&disk) {
            Ok(store) => store.create(summary()).await.map(drop),
            Err(error) => Err(error),
        };
        disk.set_fault(None);
        let store = store(&disk).unwrap();
        match created {
            Ok(()) => assert!(store.open(&id()).await.is_ok(), "operation {at}"),
            Err(error) => {
                assert!(matches!(error, StoreError::Io { .. }), "operation {at}: {error:?}");
                let again = store.create(summary()).await;
                let exists = matches!(again, Err(StoreError::Exists(_)));
                assert!(again.is_ok() || exists && store.open(&id()).await.is_ok(), "operation {at}");
            }
        }
    }
}

#[tokio::test]
async fn a_disk_whose_locks_fail_is_refused() {
    let disk = Double::new();
    let store = store(&disk).unwrap();
    store.create(summary()).await.unwrap().close().await.unwrap();
    disk.refuse_locks();
    let error = store.open(&id()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot lock `/disk/store/sessions/s/lock`");
    assert!(store.verify(&id(), None).await.unwrap().is_intact(), "it can be read");
}

#[tokio::test]
async fn two_stores_share_one_directory() {
    let directory = tempfile::tempdir().unwrap();
    let stores = [(); 2].map(|()| FileStore::open(directory.path()).unwrap());
    let mut writer = stores[0].create(summary()).await.unwrap();
    append(writer.as_mut(), 1, Barrier::Written).await.unwrap();
    assert_eq!(numbers(&lines(&stores[1]).await.unwrap()), [1]);
    assert!(matches!(stores[1].open(&id()).await, Err(StoreError::InUse { .. })));
    assert!(matches!(
        stores[1].create(summary()).await,
        Err(StoreError::InUse { .. } | StoreError::Exists(_))
    ));
    drop(writer);
    assert_eq!(stores[1].open(&id()).await.unwrap().writer.epoch(), 2);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let error = FileStore::open("/proc/pintle/store").unwrap_err();
    assert_eq!(error.to_string(), "cannot create `/proc/pintle/store`");
}
