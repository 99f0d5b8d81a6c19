//! Checkpoints in files, and the syncs that they wait for.

use std::path::Path;

use pintle_agent::Checkpoints as _;
use pintle_env::{ExecutionEnvironment as _, MemoryEnvironment};

use super::super::disk::Disk as _;
use super::*;
use crate::checkpoint::StoredCheckpoints;

#[tokio::test]
async fn a_checkpoint_of_an_unchanged_workspace_writes_and_syncs_nothing() {
    let disk = Double::new();
    let store = store(&disk).unwrap();
    let _writer = store.create(summary()).await.unwrap();
    let checkpoints = StoredCheckpoints::new(Arc::new(store), id());
    // Without identities, all files are read again for each checkpoint.
    let env = MemoryEnvironment::new("/p").with_file("a", "1").with_file("d/b", "2");
    let first = checkpoints.take(&env).await.unwrap();
    let operations = disk.operations();
    // Two commands, each with a checkpoint before and after.
    for _ in 0..4 {
        assert_eq!(checkpoints.take(&env).await.unwrap(), first);
    }
    assert_eq!(disk.operations(), operations);
    env.write(Path::new("a"), b"changed").await.unwrap();
    let changed = checkpoints.take(&env).await.unwrap();
    assert_ne!(changed.id, first.id);
    let operations_then = disk.operations();
    assert!(operations_then > operations);
    env.write(Path::new("a"), b"1").await.unwrap();
    assert_eq!(checkpoints.take(&env).await.unwrap(), first);
    assert_eq!(disk.operations(), operations_then, "all values are on disk");
}

/// The process that added a name may have died before it synced the directory.
#[tokio::test]
async fn a_value_of_another_handle_is_synced_once() {
    let disk = Double::new();
    let store = store(&disk).unwrap();
    let _writer = store.create(summary()).await.unwrap();
    let hash = store.blobs(&id()).put(b"value".to_vec()).await.unwrap();
    let blobs = store.blobs(&id());
    for syncs in [1, 0] {
        let operations = disk.operations();
        assert_eq!(blobs.put(b"value".to_vec()).await.unwrap(), hash);
        assert_eq!(disk.operations() - operations, syncs);
    }
    // A value whose name is gone is written again.
    let own = store.layout.session(&id()).unwrap().blob(&hash);
    disk.remove_file(&own).unwrap();
    assert_eq!(blobs.get(&hash).await.unwrap(), None);
    blobs.put(b"value".to_vec()).await.unwrap();
    assert_eq!(blobs.get(&hash).await.unwrap().as_deref(), Some(&b"value"[..]));
}
