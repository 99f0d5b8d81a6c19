//! Many concurrent commands with a low limit on open files: this test binary, started again, since
//! the limit is per process.

use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use pintle_env::{ExecRequest, ExecutionEnvironment, LocalEnvironment};
use tokio::task::JoinSet;

use super::harness::run_case;

/// Set for the process that may lower its limit.
const LIMITED: &str = "PINTLE_TEST_FEW_DESCRIPTORS";

const DESCRIPTORS: u64 = 32;
const COMMANDS: usize = 200;

pub(crate) fn check(test: &str) {
    if std::env::var_os(LIMITED).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
        return runtime.unwrap().block_on(run_many());
    }
    run_case(async |_| {
        let limited = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(LIMITED, "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&limited.stderr);
        assert!(limited.status.success(), "{stderr}");
    });
}

async fn run_many() {
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
    // A dropped command leaves the queue and holds no slot.
    let dropped = environment.exec_command(ExecRequest::new("sleep 60"));
    let _ = tokio::time::timeout(Duration::from_millis(100), dropped).await;

    let outcomes = commands.join_all().await;
    let failed: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{} of {COMMANDS} failed: {:?}", failed.len(), failed.first());
    environment.cleanup().await.unwrap();
}
