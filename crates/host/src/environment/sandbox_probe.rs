//! Sandbox support of this machine, cached between runs: a probe takes longer than drawing a prompt.

use std::path::PathBuf;

use pintle_env::{LocalEnvironment, SandboxSupport};

use super::confinement::ENVIRONMENT_UNUSABLE;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::{self, ProcessEnv};

/// File of the state directory with the record of [`SandboxSupport::record`].
const FILE: &str = "sandbox";

/// Result of a probe of this machine.
#[derive(Debug)]
pub(super) struct SandboxProbe {
    pub(super) support: SandboxSupport,
    /// Whether the support was read from the record.
    pub(super) is_cached: bool,
}

impl SandboxProbe {
    /// Reads the record of an earlier probe. Without a valid record, probes the machine, and records the result if
    /// `keeps_state` is set.
    pub(super) async fn recall_or_probe(
        local: &LocalEnvironment,
        keeps_state: bool,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let record = file(process_env)
            .and_then(|path| process_env::read_text_if_exists("record of the sandbox", &path).ok().flatten());
        if let Some(record) = record {
            let recalled =
                SandboxSupport::recall(local, record.trim_end()).await.or_failed(ENVIRONMENT_UNUSABLE)?;
            if let Some(support) = recalled {
                return Ok(Self { support, is_cached: true });
            }
        }
        Self::probe(local, keeps_state, process_env).await
    }

    /// Probes the machine without reading the record.
    pub(super) async fn probe(
        local: &LocalEnvironment,
        keeps_state: bool,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let support = SandboxSupport::probe(local).await.or_failed(ENVIRONMENT_UNUSABLE)?;
        if let (true, Some(path)) = (keeps_state, file(process_env)) {
            let record = support.record().await.or_failed(ENVIRONMENT_UNUSABLE)?.unwrap_or_default();
            // Without a record, the next run tries it again.
            let _ = process_env.write_private(&path, &(record + "\n"));
        }
        Ok(Self { support, is_cached: false })
    }
}

/// Removes the record of the probe, so that the next session probes the machine.
pub(super) fn forget(process_env: &ProcessEnv) {
    let Some(path) = file(process_env).filter(|path| path.exists()) else { return };
    // An empty record is invalid.
    if let Err(failure) = process_env.write_private(&path, "\n") {
        process_env.notices().report(failure.message());
    }
}

fn file(process_env: &ProcessEnv) -> Option<PathBuf> {
    Some(process_env.state_directory().ok()?.join(FILE))
}
