//! Wrappers of an environment.

use std::{
    mem,
    ops::Range,
    path::{Path, PathBuf},
    slice,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;

use super::{CheckResult, ContractViolation, equals, holds, succeeds};
use crate::{
    command::{Command, ExecRequest, ExecResult},
    environment::ExecutionEnvironment,
    error::EnvError,
    file::{DirEntry, Metadata},
    process::Process,
    search::{GlobRequest, GrepOutput, GrepRequest},
    walk::{FileContent, ReadLimits, WalkOutput, WalkRequest},
};

const DIRECTORY: &str = "/probe";

/// Checks that a wrapper refuses the operations with these names with [`EnvError::Refused`], and forwards each other operation to
/// the same operation of the environment that it wraps. An operation that a wrapper forgets would use the default of
/// [`ExecutionEnvironment`], which is slower or does less.
///
/// The inner environment is a probe in the directory `/probe`, whose operations fail.
///
/// # Errors
///
/// The first violated rule.
pub async fn wrapper<E: ExecutionEnvironment>(
    wrap: impl FnOnce(Arc<dyn ExecutionEnvironment>) -> E,
    refused: &[&str],
) -> Result<(), ContractViolation> {
    let derived: Arc<dyn ExecutionEnvironment> = Arc::new(Probe::default());
    let probe = Arc::new(Probe { calls: Mutex::default(), derived: Some(Arc::clone(&derived)) });
    let env = wrap(Arc::clone(&probe) as Arc<dyn ExecutionEnvironment>);
    properties(&env)?;
    let outside = env.outside_sandbox();
    let held = succeeds("a wrapper forwards `hold`", env.hold(&[path()]).await)?;
    for (name, wrapped) in [("outside_sandbox", outside), ("hold", held)] {
        let is_wrapped = wrapped.is_some_and(|wrapped| !Arc::ptr_eq(&wrapped, &derived));
        holds("a wrapper wraps the environment that the inner one derives", is_wrapped, name)?;
    }
    let subject = Subject { probe: &probe, refused };
    subject.check("initialize", env.initialize().await)?;
    subject.check("place", env.place().await)?;
    reads(&env, subject).await?;
    changes(&env, subject).await?;
    subject.check("spawn", env.spawn(Command::shell("true")).await)?;
    subject.check("exec_command", env.exec_command(ExecRequest::new("true")).await)?;
    subject.check("cleanup", env.cleanup().await)
}

fn path() -> PathBuf {
    Path::new(DIRECTORY).join("file")
}

fn properties(env: &dyn ExecutionEnvironment) -> CheckResult {
    let rule = "a wrapper forwards the properties of the environment";
    equals(rule, env.working_directory(), Path::new(DIRECTORY))?;
    equals(rule, env.home_directory(), Some(Path::new("/homes/probe")))?;
    equals(rule, (env.platform(), env.os_version()), ("probe", "Probe 1"))?;
    equals(rule, env.command_limits().as_deref(), Some("none run"))?;
    equals("a wrapper forwards `resolve`", env.resolve(Path::new("x")), PathBuf::from("/resolved"))
}

async fn reads(env: &dyn ExecutionEnvironment, subject: Subject<'_>) -> CheckResult {
    let path = path();
    subject.check("read", env.read(&path, None).await)?;
    subject.check("metadata", env.metadata(&path).await)?;
    subject.check("list", env.list(&path).await)?;
    subject.check("canonicalize", env.canonicalize(&path).await)?;
    subject.check("canonicalize_many", env.canonicalize_many(slice::from_ref(&path)).await)?;
    subject.check("read_file", env.read_file(&path, None, None).await)?;
    subject.check("find_files", env.find_files(&GlobRequest::new("*")).await)?;
    subject.check("grep", env.grep(&GrepRequest::new("x")).await)?;
    subject.check("walk", env.walk(&WalkRequest::new(DIRECTORY)).await)?;
    subject.check("read_many", env.read_many(slice::from_ref(&path), ReadLimits::new(1, 1)).await)
}

async fn changes(env: &dyn ExecutionEnvironment, subject: Subject<'_>) -> CheckResult {
    let (path, other) = (path(), Path::new(DIRECTORY).join("other"));
    subject.check("write", env.write(&path, b"x").await)?;
    subject.check("remove", env.remove(&path).await)?;
    subject.check("rename", env.rename(&path, &other).await)?;
    subject.check("create_directory", env.create_directory(&path).await)?;
    subject.check("create_symlink", env.create_symlink(&path, &other).await)?;
    subject.check("set_mode", env.set_mode(&path, 0o600).await)
}

#[derive(Clone, Copy)]
struct Subject<'a> {
    probe: &'a Probe,
    refused: &'a [&'a str],
}

impl Subject<'_> {
    /// Checks the calls of the probe since the last check.
    fn check<T>(self, name: &str, result: Result<T, EnvError>) -> CheckResult {
        let calls = mem::take(&mut *self.probe.calls.lock().unwrap_or_else(PoisonError::into_inner));
        let is_forwarded = calls.contains(&name);
        if !self.refused.contains(&name) {
            return holds(&format!("a wrapper forwards `{name}`"), is_forwarded, calls);
        }
        let is_refused = matches!(result.err(), Some(EnvError::Refused { .. })) && !is_forwarded;
        holds(&format!("the wrapper refuses `{name}`"), is_refused, calls)
    }
}

/// Environment that keeps the names of its calls, which fail.
#[derive(Debug, Default)]
struct Probe {
    calls: Mutex<Vec<&'static str>>,
    /// Environment with held paths, and outside of the sandbox.
    derived: Option<Arc<dyn ExecutionEnvironment>>,
}

impl Probe {
    fn call(&self, name: &'static str) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }

    fn fail<T>(&self, name: &'static str) -> Result<T, EnvError> {
        self.call(name);
        Err(EnvError::Unsupported { operation: name.to_owned(), environment: "the probe".to_owned() })
    }
}

#[async_trait]
impl ExecutionEnvironment for Probe {
    fn working_directory(&self) -> &Path {
        Path::new(DIRECTORY)
    }

    fn home_directory(&self) -> Option<&Path> {
        Some(Path::new("/homes/probe"))
    }

    fn platform(&self) -> &str {
        "probe"
    }

    fn os_version(&self) -> &str {
        "Probe 1"
    }

    fn command_limits(&self) -> Option<String> {
        Some("none run".to_owned())
    }

    fn resolve(&self, _: &Path) -> PathBuf {
        PathBuf::from("/resolved")
    }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        self.derived.clone()
    }

    async fn hold(&self, _: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        Ok(self.derived.clone())
    }

    // Wrappers that confine paths resolve them first.
    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.call("canonicalize");
        Ok(path.to_path_buf())
    }

    async fn canonicalize_many(&self, paths: &[PathBuf]) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
        self.call("canonicalize_many");
        Ok(paths.iter().cloned().map(Ok).collect())
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        self.fail("initialize")
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        self.fail("cleanup")
    }

    async fn spawn(&self, _: Command) -> Result<Box<dyn Process>, EnvError> {
        self.fail("spawn")
    }

    async fn read(&self, _: &Path, _: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.fail("read")
    }

    async fn write(&self, _: &Path, _: &[u8]) -> Result<(), EnvError> {
        self.fail("write")
    }

    async fn metadata(&self, _: &Path) -> Result<Metadata, EnvError> {
        self.fail("metadata")
    }

    async fn list(&self, _: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.fail("list")
    }

    async fn remove(&self, _: &Path) -> Result<(), EnvError> {
        self.fail("remove")
    }

    async fn rename(&self, _: &Path, _: &Path) -> Result<(), EnvError> {
        self.fail("rename")
    }

    async fn place(&self) -> Result<Option<String>, EnvError> {
        self.fail("place")
    }

    async fn exec_command(&self, _: ExecRequest) -> Result<ExecResult, EnvError> {
        self.fail("exec_command")
    }

    async fn read_file(&self, _: &Path, _: Option<usize>, _: Option<usize>) -> Result<String, EnvError> {
        self.fail("read_file")
    }

    async fn find_files(&self, _: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        self.fail("find_files")
    }

    async fn grep(&self, _: &GrepRequest) -> Result<GrepOutput, EnvError> {
        self.fail("grep")
    }

    async fn create_directory(&self, _: &Path) -> Result<(), EnvError> {
        self.fail("create_directory")
    }

    async fn create_symlink(&self, _: &Path, _: &Path) -> Result<(), EnvError> {
        self.fail("create_symlink")
    }

    async fn set_mode(&self, _: &Path, _: u32) -> Result<(), EnvError> {
        self.fail("set_mode")
    }

    async fn walk(&self, _: &WalkRequest) -> Result<WalkOutput, EnvError> {
        self.fail("walk")
    }

    async fn read_many(&self, _: &[PathBuf], _: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        self.fail("read_many")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{forward::forward, read_only::ReadOnlyEnvironment};

    const CHANGES: [&str; 8] = [
        "spawn",
        "exec_command",
        "write",
        "remove",
        "rename",
        "create_directory",
        "create_symlink",
        "set_mode",
    ];

    #[tokio::test]
    async fn a_wrapper_that_refuses_and_forwards_passes() {
        wrapper(ReadOnlyEnvironment::new, &CHANGES).await.unwrap();
    }

    #[tokio::test]
    async fn an_operation_that_is_not_refused_is_named() {
        let violation = wrapper(|inner| ReadOnlyEnvironment::new(inner).allow_commands(), &CHANGES).await;
        assert_eq!(violation.unwrap_err().rule, "the wrapper refuses `spawn`");
        let violation = wrapper(ReadOnlyEnvironment::new, &["spawn"]).await;
        assert_eq!(violation.unwrap_err().rule, "a wrapper forwards `write`");
    }

    /// A wrapper without `grep`.
    #[derive(Debug)]
    struct Forgetful {
        inner: Arc<dyn ExecutionEnvironment>,
    }

    #[async_trait]
    impl ExecutionEnvironment for Forgetful {
        forward! {
            inner:
            working_directory, home_directory, platform, os_version, initialize, cleanup, output_limits,
            command_limits, spawn, exec_command, read, write, metadata, list, remove, rename, canonicalize,
            canonicalize_many, place, read_file, find_files, create_directory, create_symlink, set_mode, walk,
            read_many, resolve,
        }

        fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
            Some(Arc::new(Self { inner: self.inner.outside_sandbox()? }))
        }

        async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
            Ok(self.inner.hold(paths).await?.map(|inner| Arc::new(Self { inner }) as _))
        }
    }

    #[tokio::test]
    async fn a_forgotten_operation_is_named() {
        let violation = wrapper(|inner| Forgetful { inner }, &[]).await;
        assert_eq!(violation.unwrap_err().rule, "a wrapper forwards `grep`");
    }
}
