//! Opens a store in a directory, and describes a session for its list.

use pintle_store::{FileStore, Filter, SessionId, Summary, Timestamp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("pintle-consumer-{}", std::process::id()));
    let store = FileStore::open(&directory)?;
    assert_eq!(store.root(), directory);
    let id = SessionId::generate();
    let summary = Summary::new(id, Timestamp::from_millis(0)).with_property("place", "here");
    assert!(Filter::default().with_property("place", "here").matches(&summary));
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
