//! The grant of a run, and revoked grants.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_agent::{Record, Timestamp};
use pintle_governance::{
    Grant, GrantId, GrantTrust, PublicKey, RevocationSource, RevokedGrants, SignedChain,
};

use crate::failure::{Failure, OrFailure as _};
use crate::process_env::{self, ProcessEnv};
use crate::sanitize::to_single_line;

/// File in the state directory.
const REVOKED: &str = "revoked-grants.json";

/// File in the configuration directory.
const ROOTS: &str = "grant-roots.toml";

/// Longest wait for another process that revokes grants.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// The revoked grants of this machine's user. All sessions of the command read it for each call.
#[derive(Clone, Debug)]
pub struct RevocationFile {
    revoked: PathBuf,
    /// File of the pinned roots; `None` without a configuration directory.
    roots: Option<PathBuf>,
}

impl RevocationFile {
    /// Locates the file. It may be missing.
    pub fn open(process_env: &ProcessEnv) -> Result<Self, Failure> {
        let roots = process_env.configuration_directory().map(|directory| directory.join(ROOTS));
        Ok(Self { revoked: process_env.state_directory()?.join(REVOKED), roots })
    }

    /// Returns the revoked grants.
    pub fn read(&self) -> Result<RevokedGrants, Failure> {
        match process_env::read_text_if_exists("list of revoked grants", &self.revoked)? {
            None => Ok(RevokedGrants::default()),
            Some(text) => {
                serde_json::from_str(&text).or_failed(&format!("cannot read {}", self.revoked.display()))
            }
        }
    }

    /// Adds grants, and raises the epoch below which all are revoked. With an issuer, the epoch applies only to the grants that
    /// it signed, and without an epoch all of these are revoked.
    pub async fn revoke(
        &self,
        ids: impl IntoIterator<Item = GrantId>,
        before_epoch: Option<u64>,
        issuer: Option<PublicKey>,
        process_env: &ProcessEnv,
    ) -> Result<(), Failure> {
        let _lock = process_env.lock_private(&self.revoked.with_extension("lock"), LOCK_TIME).await?;
        let mut revoked = self.read()?;
        revoked.ids.extend(ids);
        match issuer {
            Some(key) => {
                let before = revoked.issuers.entry(key).or_default();
                *before = (*before).max(before_epoch.unwrap_or(RevokedGrants::ALL_EPOCHS));
            }
            None => revoked.before_epoch = revoked.before_epoch.max(before_epoch.unwrap_or(0)),
        }
        let text = serde_json::to_string_pretty(&revoked).or_failed("cannot write the revoked grants")?;
        process_env.write_private(&self.revoked, &text)
    }
}

impl RevocationSource for RevocationFile {
    fn revoked(&self) -> Result<RevokedGrants, String> {
        let mut revoked = self.read().map_err(|failure| failure.message())?;
        // No signed grant is in force while the file cannot be read.
        let roots = read_trust(self.roots.as_deref()).map(|trust| trust.roots);
        revoked.pinned_roots = Some(roots.unwrap_or_default());
        Ok(revoked)
    }
}

/// Reads a grant from a file. A signed chain is verified with the roots of the user.
///
/// A missing or invalid file, and a chain that is not accepted, are usage failures.
pub fn read_file(file: &Path, process_env: &ProcessEnv) -> Result<Grant, Failure> {
    let text = process_env::read_text("grant", file)?;
    let message = format!("{} is wrong", file.display());
    if SignedChain::is_form_of(&text) {
        let chain = SignedChain::parse(&text).or_usage(&message)?;
        return grant_trust(process_env)?.verify(&chain, Timestamp::now()).or_usage(&message);
    }
    let grant = Grant::parse(&text).or_usage(&message)?;
    require_unsigned(&grant)?;
    Ok(grant)
}

/// Fails if a grant that was not verified from a signed chain names the issuers or the text of one.
pub(crate) fn require_unsigned(grant: &Grant) -> Result<(), Failure> {
    if grant.chain.is_none() && grant.issuers.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "invalid grant {}: an unsigned grant has `issuers` or `chain`",
        to_single_line(&grant.id.to_string())
    )))
}

/// Reads a signed chain from a file, and verifies it without its root.
///
/// A missing or invalid file is a usage failure.
pub fn read_chain(file: &Path) -> Result<SignedChain, Failure> {
    let text = process_env::read_text("signed grant", file)?;
    SignedChain::parse(&text).or_usage(&format!("{} is wrong", file.display()))
}

/// Returns the roots and names of the user, from `grant-roots.toml` in the configuration directory. Without `subjects`, the user
/// of the command is the only subject.
///
/// An invalid file is a usage failure.
pub fn grant_trust(process_env: &ProcessEnv) -> Result<GrantTrust, Failure> {
    let file = process_env.configuration_directory().map(|directory| directory.join(ROOTS));
    let mut trust = read_trust(file.as_deref())?;
    if trust.subjects.is_empty() {
        trust.subjects.insert(process_env.principal().to_string());
    }
    Ok(trust)
}

fn read_trust(file: Option<&Path>) -> Result<GrantTrust, Failure> {
    let Some(file) = file else { return Ok(GrantTrust::default()) };
    match process_env::read_text_if_exists("file of grant roots", file)? {
        None => Ok(GrantTrust::default()),
        Some(text) => GrantTrust::parse(&text).or_usage(&format!("{} is wrong", file.display())),
    }
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

    #[test]
    fn a_grant_that_was_not_verified_names_no_issuer_and_no_chain() {
        let mut grant = Grant::all(GrantId::new("g"));
        assert!(require_unsigned(&grant).is_ok());
        grant.chain = Some(String::new());
        assert!(require_unsigned(&grant).is_err());
        grant.chain = None;
        grant.issuers = vec![format!("ed25519:{}", "0".repeat(64)).parse().unwrap()];
        let failure = require_unsigned(&grant).unwrap_err();
        assert!(failure.message().contains("an unsigned grant has `issuers` or `chain`"), "{failure:?}");
    }
}
