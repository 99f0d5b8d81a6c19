//! Removal of old sessions.

use std::collections::BTreeSet;

use pintle_agent::{Clock as _, SessionId, SessionState, SystemClock, Timestamp};

use crate::error::StoreError;
use crate::journal::StoredJournal;
use crate::store::{Filter, Page, SessionStore, Summary};

/// Sessions that [`prune`] removes. A policy without conditions removes none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrunePolicy {
    /// Sessions that the policy applies to. The default selects all.
    pub filter: Filter,
    /// Removes sessions that were last changed before this time.
    pub older_than: Option<Timestamp>,
    /// Removes all but this many of the newest sessions that the filter selects.
    pub keep: Option<usize>,
    /// Sessions that are never removed.
    pub spared: BTreeSet<SessionId>,
    /// Only returns the sessions that would be removed.
    pub dry_run: bool,
}

/// Result of [`prune`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PruneResult {
    /// Sessions that were removed, or would be, without their subagents.
    pub removed: Vec<Summary>,
    /// Sessions that match the policy but stay: a process writes them, they were left unfinished, a call waits for a
    /// decision, or they are spared.
    pub kept: Vec<Summary>,
    /// Number of files, directories or values that were removed because no session uses them any more.
    pub swept: u64,
}

/// Minimum age of swept files, in milliseconds: a process may be about to use a newer one.
const MIN_AGE: i64 = 3_600_000;

impl PrunePolicy {
    /// Returns whether the policy removes this session. The newest session has the index 0. If both conditions are set,
    /// both must hold.
    fn fits(&self, index: usize, summary: &Summary) -> bool {
        let is_old = self.older_than.is_none_or(|time| summary.updated_at < time);
        let is_beyond = self.keep.is_none_or(|keep| index >= keep);
        (self.older_than.is_some() || self.keep.is_some()) && is_old && is_beyond
    }
}

/// Removes old sessions with their subagents, and files that deleted sessions and crashed processes left behind more
/// than an hour ago. A session stays if a process writes it, if it was left unfinished, or if a call waits for a
/// decision.
///
/// # Errors
///
/// As for [`SessionStore::list`], [`SessionStore::delete`] and [`SessionStore::sweep`]. Sessions and files removed
/// before the error stay removed.
pub async fn prune(store: &dyn SessionStore, policy: &PrunePolicy) -> Result<PruneResult, StoreError> {
    let all = store.list(&policy.filter, &Page::default()).await?;
    // The store also contains tasks and recorded costs.
    let sessions = all.into_iter().filter(Summary::is_session);
    let mut pruned = PruneResult::default();
    for (index, summary) in sessions.enumerate() {
        if !policy.fits(index, &summary) {
            continue;
        }
        let is_free = !policy.spared.contains(&summary.id) && !is_under_way(&summary);
        if !is_free || store.holder(&summary.id).await?.is_some() {
            pruned.kept.push(summary);
            continue;
        }
        if !policy.dry_run {
            match delete_tree(store, &summary.id).await {
                Err(StoreError::InUse { .. }) => {
                    pruned.kept.push(summary);
                    continue;
                }
                deleted => deleted?,
            }
        }
        pruned.removed.push(summary);
    }
    if !policy.dry_run {
        let now = SystemClock.now().as_millis();
        pruned.swept = store.sweep(Timestamp::from_millis(now.saturating_sub(MIN_AGE))).await?;
    }
    Ok(pruned)
}

/// Removes a session with its subagents, at any depth.
///
/// # Errors
///
/// As for [`SessionStore::list`] and [`SessionStore::delete`]. The session itself is removed last.
pub async fn delete_tree(store: &dyn SessionStore, id: &SessionId) -> Result<(), StoreError> {
    let children = Filter::default().with_parent(id.clone());
    for child in store.list(&children, &Page::default()).await? {
        Box::pin(delete_tree(store, &child.id)).await?;
    }
    store.delete(id).await?;
    Ok(())
}

/// Returns whether a process has left work unfinished.
fn is_under_way(summary: &Summary) -> bool {
    let processing = serde_json::to_value(SessionState::Processing).unwrap_or_default();
    let state = summary.properties.get(StoredJournal::STATE).map(String::as_str);
    state.is_some_and(|state| Some(state) == processing.as_str())
        || summary.properties.contains_key(StoredJournal::PENDING_APPROVALS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    /// A store with sessions `s0` to `s5`, the higher the newer, and a subagent of `s0`.
    async fn filled() -> MemoryStore {
        let store = MemoryStore::new();
        for number in 0..6 {
            let id = SessionId::new(format!("s{number}"));
            let mut summary = Summary::new(id, Timestamp::from_millis(number * 1_000));
            if number == 1 {
                summary = summary.with_property(StoredJournal::STATE, "PROCESSING");
            }
            drop(store.create(summary).await.unwrap());
        }
        let child = Summary::new(SessionId::new("child"), Timestamp::from_millis(0));
        drop(store.create(child.with_parent(SessionId::new("s0"))).await.unwrap());
        store
    }

    fn ids(summaries: &[Summary]) -> Vec<&str> {
        summaries.iter().map(|summary| summary.id.as_str()).collect()
    }

    #[tokio::test]
    async fn old_sessions_are_removed_with_their_subagents() {
        let time = Some(Timestamp::from_millis(3_000));
        let cases = [
            (PrunePolicy::default(), vec![], vec![]),
            (PrunePolicy { older_than: time, ..PrunePolicy::default() }, vec!["s2", "s0"], vec!["s1"]),
            (PrunePolicy { keep: Some(2), ..PrunePolicy::default() }, vec!["s3", "s2", "s0"], vec!["s1"]),
            (PrunePolicy { older_than: time, keep: Some(5), ..PrunePolicy::default() }, vec!["s0"], vec![]),
            (
                PrunePolicy {
                    keep: Some(0),
                    spared: [SessionId::new("s5")].into(),
                    ..PrunePolicy::default()
                },
                vec!["s4", "s3", "s2", "s0"],
                vec!["s5", "s1"],
            ),
        ];
        for (policy, removed, kept) in cases {
            for dry_run in [true, false] {
                let store = filled().await;
                let policy = PrunePolicy { dry_run, ..policy.clone() };
                let pruned = prune(&store, &policy).await.unwrap();
                assert_eq!(
                    (ids(&pruned.removed), ids(&pruned.kept)),
                    (removed.clone(), kept.clone()),
                    "{policy:?}"
                );
                let left = store.list(&Filter::default(), &Page::default()).await.unwrap();
                let gone = if dry_run { 0 } else { removed.len() };
                assert_eq!(left.len(), 6 - gone, "{policy:?}");
                let child = store.summary(&SessionId::new("child")).await.unwrap();
                assert_eq!(child.is_none(), removed.contains(&"s0") && !dry_run, "{policy:?}");
            }
        }
    }

    #[tokio::test]
    async fn the_filter_limits_what_is_counted_and_removed() {
        let store = filled().await;
        for number in 6..9 {
            let summary =
                Summary::new(SessionId::new(format!("s{number}")), Timestamp::from_millis(number * 1_000));
            drop(store.create(summary.with_property("project", "other")).await.unwrap());
        }
        let filter = Filter::default().with_property("project", "other");
        let policy = PrunePolicy { filter, keep: Some(1), ..PrunePolicy::default() };
        let pruned = prune(&store, &policy).await.unwrap();
        assert_eq!((ids(&pruned.removed), ids(&pruned.kept)), (vec!["s7", "s6"], vec![]));
    }

    #[tokio::test]
    async fn other_records_of_the_store_are_no_sessions() {
        for (policy, removed) in [
            (PrunePolicy { keep: Some(5), ..PrunePolicy::default() }, vec!["s0"]),
            (
                PrunePolicy { older_than: Some(Timestamp::from_millis(99_999)), ..PrunePolicy::default() },
                vec!["s5", "s4", "s3", "s2", "s0"],
            ),
        ] {
            let store = filled().await;
            // One is newer than all sessions, and one is as old as the oldest.
            for (kind, time) in [("cost", 9_000), ("task", 0)] {
                let summary = Summary::new(SessionId::new(kind), Timestamp::from_millis(time));
                drop(store.create(summary.with_property(Summary::KIND, kind)).await.unwrap());
            }
            let pruned = prune(&store, &policy).await.unwrap();
            assert_eq!(ids(&pruned.removed), removed, "{policy:?}");
            for kind in ["cost", "task"] {
                assert!(store.summary(&SessionId::new(kind)).await.unwrap().is_some(), "{policy:?} {kind}");
            }
        }
    }

    #[tokio::test]
    async fn a_session_that_somebody_has_stays() {
        let store = filled().await;
        let _writer = store.open(&SessionId::new("s2")).await.unwrap().writer;
        let pruned = prune(&store, &PrunePolicy { keep: Some(3), ..PrunePolicy::default() }).await.unwrap();
        assert_eq!((ids(&pruned.removed), ids(&pruned.kept)), (vec!["s0"], vec!["s2", "s1"]));
    }
}
