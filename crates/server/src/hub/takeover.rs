//! Sessions left by other servers: by an earlier server, or by a server that shared the store and died.

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_store::{Filter, Page, StoreError, StoredJournal, Summary};
use tokio::time::MissedTickBehavior;

use super::room::OpenOutcome;
use super::{Hub, SERVER_OWNED, lock};

/// Number of sessions that are read at once.
const PAGE: usize = 100;

/// Sessions of an earlier server that this server resumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reopened {
    /// Number of sessions that continue.
    pub sessions: usize,
    /// Number of sessions that continue once there is room.
    pub waiting: usize,
    /// Sessions with work that could not be opened, with the reasons.
    pub failed: Vec<(SessionId, String)>,
}

impl Hub {
    /// Resumes the sessions of an earlier server that have an unfinished run or a posted input.
    pub(crate) async fn reopen_sessions(self: &Arc<Self>) -> Result<Reopened, StoreError> {
        self.reopen_matching(Filter::default().with_property(SERVER_OWNED, "true")).await
    }

    /// Resumes sessions whose server has died, at this interval until this server shuts down.
    pub(crate) async fn keep_reopening(self: &Arc<Self>, interval: Duration) {
        let mut looks = tokio::time::interval(interval);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let under_way = Filter::default()
            .with_property(SERVER_OWNED, "true")
            .with_property(StoredJournal::STATE, "PROCESSING");
        loop {
            tokio::select! {
                _ = looks.tick() => {}
                () = self.closing.cancelled() => return,
            }
            match self.reopen_matching(under_way.clone()).await {
                Ok(reopened) => {
                    for (id, problem) in &reopened.failed {
                        tracing::debug!(session = %id, problem, "a session of another server is left");
                    }
                }
                Err(error) => tracing::warn!(%error, "the sessions of other servers cannot be listed"),
            }
            self.check_posted().await;
        }
    }

    async fn reopen_matching(self: &Arc<Self>, filter: Filter) -> Result<Reopened, StoreError> {
        let mut page = Page::of(PAGE);
        let mut reopened = Reopened::default();
        loop {
            let summaries = self.store.list(&filter, &page).await?;
            let Some(last) = summaries.last() else { return Ok(reopened) };
            page = Page::of(PAGE).after(last);
            for summary in &summaries {
                if self.is_orphaned(summary).await? {
                    match self.open_or_wait(&summary.id).await {
                        Ok(OpenOutcome::Open) => reopened.sessions += 1,
                        Ok(OpenOutcome::Queued) => reopened.waiting += 1,
                        Err(problem) => reopened.failed.push((summary.id.clone(), problem.detail)),
                    }
                }
            }
        }
    }

    /// Returns whether a session has work, but no process has it open or queued.
    async fn is_orphaned(&self, summary: &Summary) -> Result<bool, StoreError> {
        let id = &summary.id;
        let is_known = self.live(id).is_some() || self.position(id).is_some();
        Ok(!is_known && self.has_work(summary).await? && self.store.holder(id).await?.is_none())
    }

    /// Remembers a session that another server has open. That server may die before it applies an input posted to the
    /// session.
    pub(super) fn remember_posted(&self, id: &SessionId) {
        lock(&self.state).elsewhere.insert(id.clone());
    }

    async fn check_posted(self: &Arc<Self>) {
        let posted: Vec<SessionId> = lock(&self.state).elsewhere.iter().cloned().collect();
        for id in posted {
            match self.store.has_posted(&id).await {
                Ok(true) if matches!(self.store.holder(&id).await, Ok(None)) => {
                    Arc::clone(self).open_if_work(id.clone()).await;
                }
                // The session is checked again at the next interval.
                Ok(true) => continue,
                Ok(false) | Err(StoreError::NotFound(_)) => {}
                Err(error) => {
                    tracing::warn!(session = %id, %error, "the inbox cannot be read");
                    continue;
                }
            }
            lock(&self.state).elsewhere.remove(&id);
        }
    }
}
