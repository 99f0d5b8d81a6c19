//! Files with the tokens and the certificate of a server. They are reloaded while it serves.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_server::{AccessToken, AccessTokens, AuditLine, AuditLog, TlsIdentity};
use pintle_tui::console;

use crate::arguments::ServeSessionsArgs;
use crate::commands::tokens::TokenFile;

/// Time after which a revoked token is invalid.
const READ_INTERVAL: Duration = Duration::from_secs(2);

/// File of audit lines in the directory of the state.
const AUDIT: &str = "serve-audit.jsonl";

/// Size at which a file of audit lines is renamed with the suffix `.1`, replacing the previous one: 64 MiB, some
/// 400,000 lines.
const MAX_AUDIT: u64 = 64 << 20;

/// Tokens of a server: the tokens of the file, and one of this process.
#[derive(Debug)]
pub(super) struct ServedTokens {
    file: TokenFile,
    own: Option<AccessToken>,
    pub(super) tokens: AccessTokens,
}

impl ServedTokens {
    pub(super) fn new(file: TokenFile, own: Option<AccessToken>) -> Result<Self, Failure> {
        let served = Self { file, own, tokens: AccessTokens::default() };
        served.read()?;
        Ok(served)
    }

    /// Returns whether the file contains a token.
    pub(super) fn has_any(&self) -> Result<bool, Failure> {
        Ok(!self.file.read()?.is_empty())
    }

    fn read(&self) -> Result<(), Failure> {
        let mut tokens = self.file.read()?;
        tokens.extend(self.own.clone());
        self.tokens.set(tokens);
        Ok(())
    }
}

/// Certificate and key of a server, by their files.
#[derive(Debug)]
pub(super) struct TlsFiles {
    certificates: PathBuf,
    key: PathBuf,
    pub(super) identity: TlsIdentity,
}

impl TlsFiles {
    /// Reads both files, if they are given.
    pub(super) fn from_args(args: &ServeSessionsArgs) -> Result<Option<Self>, Failure> {
        let (Some(certificates), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
        let identity = TlsIdentity::from_pem(&pem("certificate", certificates)?, &pem("key", key)?);
        let identity = identity.or_usage("--tls-cert and --tls-key")?;
        Ok(Some(Self { certificates: certificates.clone(), key: key.clone(), identity }))
    }

    fn read(&self) -> Result<(), Failure> {
        let set = self.identity.set(&pem("certificate", &self.certificates)?, &pem("key", &self.key)?);
        set.or_usage("the new certificate is not used")
    }
}

fn pem(what: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    process_env::read_text(what, path).map(String::into_bytes)
}

/// Reloads the files periodically. A problem is reported once, and the previous contents stay in effect.
pub(super) async fn keep_reading(tokens: &ServedTokens, tls: Option<&TlsFiles>) {
    let mut said = String::new();
    loop {
        tokio::time::sleep(READ_INTERVAL).await;
        let read = tokens.read().and_then(|()| tls.map_or(Ok(()), TlsFiles::read));
        let problem = read.err().map(|failure| failure.message()).unwrap_or_default();
        if !problem.is_empty() && problem != said {
            console::notice(&problem);
        }
        said = problem;
    }
}

/// Appends audit lines to a file. The file may be moved away at any time, and is rotated when it becomes large.
#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    process_env: ProcessEnv,
    /// Held while a line is written, since the file may have to be rotated first.
    writing: Mutex<()>,
}

impl AuditFile {
    pub(super) fn new(given: Option<&Path>, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let path = match given {
            Some(path) => path.to_path_buf(),
            None => process_env.state_directory()?.join(AUDIT),
        };
        // An unwritable file is reported before the server starts.
        process_env.append_private(&path, "")?;
        Ok(Self { path, process_env: process_env.clone(), writing: Mutex::new(()) })
    }
}

impl AuditLog for AuditFile {
    fn write(&self, line: &AuditLine) {
        let Ok(text) = serde_json::to_string(line) else { return };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // A file that cannot be rotated exceeds the limit, but keeps all lines.
        let rotated = self.process_env.rotate(&self.path, MAX_AUDIT);
        let written = self.process_env.append_private(&self.path, &format!("{text}\n"));
        for failure in [rotated, written].into_iter().filter_map(Result::err) {
            console::notice(&failure.message());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_moved_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit");
        let process_env = ProcessEnv::from_variables([]);
        for (text, aside) in [("one", None), ("two", None), ("three", Some("onetwo"))] {
            process_env.rotate(&path, 6).unwrap();
            process_env.append_private(&path, text).unwrap();
            let found = process_env::read_text_if_exists("audit", &directory.path().join("audit.1")).unwrap();
            assert_eq!(found.as_deref(), aside, "{text}");
        }
        assert_eq!(process_env::read_text("audit", &path).unwrap(), "three");
    }
}
