//! File systems that refuse writes: runs this test binary again in its own mount namespace.

use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
};

use pintle_env::{
    EnvError, ExecRequest, ExecutionEnvironment, ExecutionEnvironmentExt as _, LocalEnvironment, OutputLimits,
};
use tempfile::TempDir;

use super::harness::run_case;

/// Path of the mounted file system, set for the process that uses it.
const DISK: &str = "PINTLE_TEST_DISK";

const OLD: &str = "the old content\n";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// Has 256 KiB of space.
    Full,
    ReadOnly,
}

/// Plays both roles of a test: the user of the file system if started as such, else the process
/// that mounts it.
pub(crate) fn check(test: &str, disk: Disk) {
    if let Some(directory) = std::env::var_os(DISK) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(use_disk(Path::new(&directory), disk));
        return;
    }
    run_case(async |_| {
        // Tries it out with a child of this process, which no other case may see.
        if !pintle_test_conditions::MOUNTS.is_present() {
            return;
        }
        let directory = TempDir::new().unwrap();
        let mount = "mount -t tmpfs -o size=256k tmpfs \"$1\" || exit 99; printf '%s' \"$4\" >\"$1/file\"; mkdir \"$1/empty\"; \
                     [ \"$5\" = full ] || mount -o remount,ro \"$1\"; exec \"$2\" --exact \"$3\" --nocapture";
        let status = Command::new("unshare")
            .args(["--map-root-user", "--mount", "/bin/sh", "-c", mount, "sh"])
            .arg(directory.path())
            .arg(std::env::current_exe().unwrap())
            .args([test, OLD, if disk == Disk::Full { "full" } else { "read-only" }])
            .env(DISK, directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
    });
}

async fn use_disk(directory: &Path, disk: Disk) {
    let limits = OutputLimits::default().with_spool_dir(directory).with_inline(1 << 10);
    let environment = LocalEnvironment::builder(directory)
        .with_variable("PATH", "/usr/bin:/bin")
        .with_output_limits(limits)
        .build()
        .unwrap();
    let expected = match disk {
        Disk::Full => io::ErrorKind::StorageFull,
        Disk::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
    };
    let is_expected = |error: EnvError| {
        let EnvError::Io { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), expected);
    };
    let much = vec![b'x'; 1 << 20];
    for name in ["file", "new", "below/new", "empty/a/b/new"] {
        is_expected(environment.write(Path::new(name), &much).await.unwrap_err());
    }
    if disk == Disk::ReadOnly {
        is_expected(environment.remove(Path::new("file")).await.unwrap_err());
        is_expected(environment.remove(Path::new("empty")).await.unwrap_err());
        is_expected(environment.rename(Path::new("file"), Path::new("moved")).await.unwrap_err());
    }
    assert_eq!(environment.read_file(Path::new("file"), None, None).await.unwrap(), OLD);
    // No partial or temporary file is left.
    let mut files = environment.glob("**", Path::new("")).await.unwrap();
    files.retain(|file| fs::metadata(file).unwrap().len() > 0);
    assert_eq!(files, [directory.join("file")]);
    // No created directory is left.
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["empty", "file"]);
    // Output that cannot be spooled is counted and does not fail the command.
    let result = environment.exec_command(ExecRequest::new("head -c 1000000 /dev/zero")).await.unwrap();
    assert!(result.success());
    assert_eq!(result.stdout.len() + result.stdout.dropped(), 1_000_000);
    assert!(result.stdout.dropped() > 0);
    assert_eq!(fs::read_dir(directory.join("empty")).unwrap().count(), 0);
    environment.cleanup().await.unwrap();
}
