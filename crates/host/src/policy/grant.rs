//! The grant of a run, and revoked grants.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_agent::Record;
use pintle_governance::{Grant, GrantId, RevocationSource, RevokedGrants};

use crate::failure::{Failure, OrFailure as _};
use crate::process_env::{self, ProcessEnv};

/// File in the state directory.
const REVOKED: &str = "revoked-grants.json";

/// Longest wait for another process that revokes grants.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// The revoked grants of this machine's user. All sessions of the command read it for each call.
#[derive(Clone, Debug)]
pub struct RevocationFile(PathBuf);

impl RevocationFile {
    /// Locates the file. It may be missing.
    pub fn open(process_env: &ProcessEnv) -> Result<Self, Failure> {
        Ok(Self(process_env.state_directory()?.join(REVOKED)))
    }

    /// Returns the revoked grants.
    pub fn read(&self) -> Result<RevokedGrants, Failure> {
        match process_env::read_text_if_exists("list of revoked grants", &self.0)? {
            None => Ok(RevokedGrants::default()),
            Some(text) => serde_json::from_str(&text).or_failed(&format!("cannot read {}", self.0.display())),
        }
    }

    /// Adds grants, and raises the epoch below which all are revoked.
    pub async fn revoke(
        &self,
        ids: impl IntoIterator<Item = GrantId>,
        before_epoch: Option<u64>,
        process_env: &ProcessEnv,
    ) -> Result<(), Failure> {
        let _lock = process_env.lock_private(&self.0.with_extension("lock"), LOCK_TIME).await?;
        let mut revoked = self.read()?;
        revoked.ids.extend(ids);
        revoked.before_epoch = revoked.before_epoch.max(before_epoch.unwrap_or(0));
        let text = serde_json::to_string_pretty(&revoked).or_failed("cannot write the revoked grants")?;
        process_env.write_private(&self.0, &text)
    }
}

impl RevocationSource for RevocationFile {
    fn revoked(&self) -> Result<RevokedGrants, String> {
        self.read().map_err(|failure| failure.message())
    }
}

/// Reads a grant from a file.
///
/// A missing or invalid file is a usage failure.
pub fn read_file(file: &Path) -> Result<Grant, Failure> {
    let text = process_env::read_text("grant", file)?;
    Grant::parse(&text).or_usage(&format!("{} is wrong", file.display()))
}

/// Returns the given grant, or else the recorded grant of the session. A session that is resumed or forked cannot get a wider
/// grant. It keeps a recorded grant that a client narrowed from the given one.
///
/// A grant that is wider than the session's grant is a usage failure.
pub fn load(given: Option<&Grant>, recorded: Option<&Grant>) -> Result<Option<Grant>, Failure> {
    let Some(given) = given else { return Ok(recorded.cloned()) };
    if let Some(recorded) = recorded.filter(|recorded| is_narrowed_from(recorded, given)) {
        return Ok(Some(recorded.clone()));
    }
    if let Some(axis) = recorded.and_then(|recorded| recorded.first_wider_axis(given)) {
        let message = format!("the given grant allows more than the grant of the session: {axis}");
        return Err(Failure::usage(message).with_hint("start a new session with this grant"));
    }
    Ok(Some(given.clone()))
}

/// Returns whether a grant was narrowed from another one, which still allows everything that it allows.
fn is_narrowed_from(recorded: &Grant, given: &Grant) -> bool {
    recorded.ancestors.contains(&given.id) && given.first_wider_axis(recorded).is_none()
}

/// Returns the recorded grant.
pub(crate) fn recorded_grant(record: &Record) -> Result<Option<Grant>, Failure> {
    Grant::of_record(record).or_failed("the grant of the session cannot be restored")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_keeps_the_grant_that_a_client_narrowed() {
        let given = Grant::all(GrantId::new("given"));
        let mut narrowed = Grant::none(GrantId::new("client"));
        let failure = load(Some(&given), Some(&narrowed)).unwrap_err();
        assert!(failure.message().contains("allows more than the grant of the session"), "{failure:?}");
        narrowed.ancestors = vec![given.id.clone()];
        assert_eq!(load(Some(&given), Some(&narrowed)).unwrap(), Some(narrowed.clone()));
        let mut later = given.clone();
        later.epoch = 1;
        assert!(load(Some(&later), Some(&narrowed)).is_err(), "the given grant has a newer epoch");
        assert_eq!(load(Some(&narrowed), Some(&given)).unwrap(), Some(narrowed));
    }
}
