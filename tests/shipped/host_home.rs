//! Home of a user whose sessions `Host::open` opens in this process. It is not below a temporary directory.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use pintle::host::attendant::ClientAttendant;
use pintle::host::process_env::ProcessEnv;
use pintle::host::{Host, OpenRequest, SessionSpec, Surface};
use pintle_agent::{Outcome, Principal};
use pintle_governance::audit::Audit;
use pintle_llm::{Client, ProviderAdapter};
use tempfile::TempDir;

use super::user::{KEY, outside_temporary_directories};
use crate::host_sessions::Answers;

pub(super) struct Home {
    directory: TempDir,
    host: Host,
}

impl Home {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir_in(outside_temporary_directories()).unwrap();
        let home = directory.path().canonicalize().unwrap().join("home");
        std::fs::create_dir(&home).unwrap();
        let (path, key) = (std::env::var_os("PATH").unwrap(), OsStr::new(KEY));
        let variables = [
            ("HOME", home.as_os_str()),
            ("PATH", path.as_os_str()),
            ("OPENAI_API_KEY", key),
            ("ANTHROPIC_API_KEY", key),
            ("GEMINI_API_KEY", key),
        ];
        let host = Host::new(ProcessEnv::from_variables(variables));
        Self { directory, host }
    }

    /// Creates a directory beside the home.
    pub(super) fn directory(&self) -> TempDir {
        tempfile::tempdir_in(self.directory.path()).unwrap()
    }

    /// Opens a session whose model is `model`, runs the task `go`, and closes the session. Returns the outcome, and the audits
    /// of the session and its subagents.
    pub(super) async fn run(
        &self,
        spec: SessionSpec,
        model: impl ProviderAdapter + 'static,
        approver: Arc<Answers>,
    ) -> (Outcome, Vec<Audit>) {
        let mut chosen = Arc::into_inner(self.host.choose_model(&spec).await.unwrap()).unwrap();
        chosen.client = Client::builder().provider(model).build().unwrap();
        let mut request = OpenRequest::from(spec);
        request.model = Some(Arc::new(chosen));
        let attendant = ClientAttendant::with_approver(Some(Principal::new("jan")), approver);
        let opened = self.host.open(request, Surface::new(Arc::new(attendant))).await.unwrap();
        let mut ids = vec![opened.session.id().clone()];
        let outcome =
            opened.session.submit("go").await.or_else(pintle_agent::RunError::into_outcome).unwrap();
        // A changed file is a failure as well.
        let _ = opened.close().await;
        let sessions = self.host.sessions().await.unwrap();
        let mut audits = Vec::new();
        while let Some(id) = ids.pop() {
            let audit = Audit::of_record(&sessions.record(&id).await.unwrap()).unwrap();
            ids.extend(audit.calls.iter().flat_map(|call| call.spawned.iter().cloned()));
            audits.push(audit);
        }
        (outcome, audits)
    }
}

/// Makes a repository, so that the directory does not belong to the repository around it.
pub(super) fn init_repository(directory: &Path) {
    let mut init = Command::new("git");
    init.args(["init", "--quiet", "--template="]).current_dir(directory);
    assert!(init.status().unwrap().success());
}
