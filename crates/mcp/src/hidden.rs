//! Files of a server that the sandbox hides.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pintle_env::{Command, ExecutionEnvironment, ExecutionEnvironmentExt as _, ExitStatus};

use crate::spec::{ServerSpec, ServerTransport};

/// Returns the first absolute path in the server's command line that exists outside of the sandbox but not in it. Returns
/// `None` if no path is hidden or if the check fails.
pub(crate) async fn hidden_path(spec: &ServerSpec, env: &dyn ExecutionEnvironment) -> Option<PathBuf> {
    let ServerTransport::Stdio(server) = &spec.transport else { return None };
    if server.outside_sandbox {
        return None;
    }
    let outside = env.outside_sandbox()?;
    let words = std::iter::once(&server.program).chain(&server.arguments);
    for path in words.map(Path::new).filter(|path| path.is_absolute()) {
        if outside.file_exists(path).await.is_ok_and(|exists| exists) && !exists_in_sandbox(path, env).await?
        {
            return Some(path.to_path_buf());
        }
    }
    None
}

/// Runs `test -e` in the sandbox, because the methods for files of an environment are not confined by it.
async fn exists_in_sandbox(path: &Path, env: &dyn ExecutionEnvironment) -> Option<bool> {
    let test = Command::argv("test", [OsStr::new("-e"), path.as_os_str()]);
    match env.spawn(test).await.ok()?.wait().await.ok()? {
        ExitStatus::Exited(0) => Some(true),
        ExitStatus::Exited(1) => Some(false),
        ExitStatus::Exited(_) | ExitStatus::Signaled(_) => None,
    }
}
