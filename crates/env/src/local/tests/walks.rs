//! The latest walk of the working directory is shared by all environments of a builder.

use super::*;

#[tokio::test]
async fn environments_of_a_builder_share_the_latest_walk() {
    // In memory, where changes are reported on any machine. Without files, the walk is kept for any time.
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let root = directory.path().canonicalize().unwrap();
    let builder = LocalEnvironment::builder(&root).with_variable("PATH", "/usr/local/bin:/usr/bin:/bin");
    let request = WalkRequest::new("").with_max_entries(9);
    let each = builder.clone().build().unwrap();
    assert_ne!(each.walk(&request).await.unwrap(), each.walk(&request).await.unwrap());
    let builder = builder.with_cached_walks();
    let one = builder.clone().build().unwrap();
    let other: Arc<dyn ExecutionEnvironment> = Arc::new(builder.build().unwrap());
    let held = other.hold(std::slice::from_ref(&root)).await.unwrap().unwrap();
    let first = one.walk(&request).await.unwrap();
    assert_eq!(other.walk(&request).await.unwrap(), first);
    assert_eq!(held.walk(&request).await.unwrap(), first);
    // The change of a command is found.
    run(&one, "mkdir below && echo text > below/file").await;
    let paths = |output: WalkOutput| Vec::from_iter(output.entries.into_iter().map(|entry| entry.path));
    for environment in [held, other] {
        let found = paths(environment.walk(&request).await.unwrap());
        assert_eq!(found, ["below", "below/file"].map(PathBuf::from));
    }
    one.cleanup().await.unwrap();
}
