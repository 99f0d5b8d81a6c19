//! Sandbox support of this machine, cached between runs: a probe takes longer than drawing a prompt.

use std::path::PathBuf;

use pintle_env::{LocalEnvironment, SandboxSupport};

use super::confinement::UNUSABLE;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::{self, ProcessEnv};

/// File of the state directory with the record of [`SandboxSupport::record`].
const FILE: &str = "sandbox";

/// Abilities of this machine.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) support: SandboxSupport,
    /// Nothing was tried in this run.
    pub(super) is_remembered: bool,
}

impl Machine {
    /// Remembers what an earlier run found out, else tries it, and writes it down if `keeps_state` is set.
    pub(super) async fn recall_or_probe(
        local: &LocalEnvironment,
        keeps_state: bool,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let record = file(process_env)
            .and_then(|path| process_env::read_text_if_there("record of the sandbox", &path).ok().flatten());
        if let Some(record) = record {
            let recalled = SandboxSupport::recall(local, record.trim_end()).await.or_failed(UNUSABLE)?;
            if let Some(support) = recalled {
                return Ok(Self { support, is_remembered: true });
            }
        }
        Self::probe(local, keeps_state, process_env).await
    }

    /// Tries it, whatever was found out before.
    pub(super) async fn probe(
        local: &LocalEnvironment,
        keeps_state: bool,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let support = SandboxSupport::probe(local).await.or_failed(UNUSABLE)?;
        if let (true, Some(path)) = (keeps_state, file(process_env)) {
            let record = support.record().await.or_failed(UNUSABLE)?.unwrap_or_default();
            // Without a record, the next run tries it again.
            let _ = process_env.write_private(&path, &(record + "\n"));
        }
        Ok(Self { support, is_remembered: false })
    }
}

fn file(process_env: &ProcessEnv) -> Option<PathBuf> {
    Some(process_env.state_directory().ok()?.join(FILE))
}
