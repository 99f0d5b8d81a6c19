//! Many commands at a time in a process that may open few files.
//!
//! A test program of its own with one test, since the limit is that of the process.
#![cfg(unix)]

use std::sync::Arc;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use pintle_env::{ExecRequest, ExecutionEnvironment, LocalEnvironment};
use tokio::task::JoinSet;

const DESCRIPTORS: u64 = 32;
const COMMANDS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commands_wait_for_descriptors_and_all_succeed() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS, hard).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let local = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap();
    let environment: Arc<dyn ExecutionEnvironment> = Arc::new(local);
    environment.write("file".as_ref(), b"text").await.unwrap();

    let mut commands = JoinSet::new();
    for number in 0..COMMANDS {
        let environment = Arc::clone(&environment);
        commands.spawn(async move {
            let request = ExecRequest::new(format!("sleep 0.02; echo {number}; echo {number} >&2"));
            let result = environment.exec_command(request).await.map_err(|error| format!("{error:?}"))?;
            let read = environment.read("file".as_ref(), None).await.map_err(|error| format!("{error:?}"))?;
            assert_eq!((read.as_slice(), result.exit_code), (&b"text"[..], 0), "{result:?}");
            assert_eq!(result.stdout.to_text_lossy().unwrap().trim(), number.to_string());
            Ok::<_, String>(())
        });
    }
    // One that is dropped leaves the queue, and takes nobody's turn.
    let dropped = environment.exec_command(ExecRequest::new("sleep 60"));
    let _ = tokio::time::timeout(Duration::from_millis(100), dropped).await;

    let outcomes = commands.join_all().await;
    let failed: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{} of {COMMANDS} failed: {:?}", failed.len(), failed.first());
    environment.cleanup().await.unwrap();
}
