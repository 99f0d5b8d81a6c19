//! Client views of sessions, and lists of sessions.

use pintle_agent::{Money, SessionId, SessionState, Timestamp};
use pintle_store::{Filter, Page, StoreError, StoredJournal, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{App, Caller};
use crate::host::SessionSettings;
use crate::hub::TENANT;
use crate::problem::{INVALID, NOT_FOUND, Problem};

/// Default and maximum number of sessions of a page.
const PAGE: usize = 50;
const MAX_PAGE: usize = 500;

/// Number of sessions that are read at once for a page.
const CHUNK: usize = 200;

/// Maximum depth of subagents that is looked up.
const MAX_DEPTH: usize = 32;

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SessionView {
    /// Id.
    id: String,
    /// Beginning of the first message.
    title: String,
    /// Time of its creation, in RFC 3339.
    created_at: String,
    /// Time of the newest change.
    updated_at: String,
    /// Session whose subagent it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// Its state.
    state: SessionState,
    /// Whether this server has it open.
    live: bool,
    /// Position among the sessions of the same tenant that wait for room, from 1. Absent unless the session waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_position: Option<usize>,
    /// Number of calls that wait for a decision. Includes calls of its subagents while it is live.
    pending_approvals: u64,
    /// Cost so far in US dollars, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// Number of tokens so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// Settings, if they are known.
    #[serde(flatten)]
    settings: SessionSettings,
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionList {
    sessions: Vec<SessionView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Filter and page of a session list.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListQuery {
    limit: Option<usize>,
    cursor: Option<String>,
    search: Option<String>,
    state: Option<SessionState>,
    parent: Option<String>,
}

/// Session that a caller may see.
#[derive(Debug)]
pub(crate) struct FoundSession {
    pub(crate) summary: Summary,
    /// The session itself, or the root of its tree.
    pub(crate) root: SessionId,
}

fn property<T: std::str::FromStr>(summary: &Summary, name: &str) -> Option<T> {
    summary.properties.get(name)?.parse().ok()
}

/// Returns whether the summary is of a session of the caller's tenant.
pub(super) fn is_visible_to(summary: &Summary, caller: &Caller) -> bool {
    summary.is_session() && summary.properties.get(TENANT) == caller.tenant.as_ref()
}

impl App {
    /// Finds a session. Sessions of other tenants count as missing.
    pub(crate) async fn find(&self, caller: &Caller, id: &str) -> Result<FoundSession, Problem> {
        let missing = || Problem::new(NOT_FOUND, format!("there is no session `{id}`"));
        let store = &self.hub.store;
        let summary = store.summary(&SessionId::new(id)).await?.ok_or_else(missing)?;
        let mut root = summary.clone();
        for _ in 0..MAX_DEPTH {
            let Some(parent) = root.parent.take() else { break };
            root = store.summary(&parent).await?.ok_or_else(missing)?;
        }
        if !is_visible_to(&root, caller) {
            return Err(missing());
        }
        Ok(FoundSession { summary, root: root.id })
    }

    /// Finds a session that can continue.
    pub(crate) async fn find_going(&self, caller: &Caller, id: &str) -> Result<FoundSession, Problem> {
        let found = self.find(caller, id).await?;
        if self.has_ended(&found) {
            return Err(Problem::session_ended(&found.summary.id));
        }
        Ok(found)
    }

    /// Returns whether a session is closed and cannot continue.
    pub(crate) fn has_ended(&self, found: &FoundSession) -> bool {
        self.view(&found.summary).state == SessionState::Closed
    }

    /// Returns the current client view of a session.
    pub(crate) fn view(&self, summary: &Summary) -> SessionView {
        let live = self.hub.live(&summary.id);
        let recorded =
            || serde_json::from_value(summary.properties.get(StoredJournal::STATE)?.clone().into()).ok();
        let state =
            live.as_ref().and_then(|live| live.with_session(pintle_agent::Session::state)).or_else(recorded);
        let pending = match &live {
            Some(live) => live.handle.tree_approvals().len() as u64,
            None => property(summary, StoredJournal::PENDING_APPROVALS).unwrap_or_default(),
        };
        let micros: Option<u64> = property(summary, StoredJournal::COST_MICROS);
        let cost_usd = micros.map(|micros| Money::from_micros(micros).dollars());
        let settings =
            live.as_ref().map_or_else(|| self.hub.host.settings_of(summary), |live| live.controls.settings());
        SessionView {
            id: summary.id.to_string(),
            title: summary.title.clone(),
            created_at: summary.created_at.to_string(),
            updated_at: summary.updated_at.to_string(),
            parent: summary.parent.as_ref().map(ToString::to_string),
            state: state.unwrap_or_default(),
            live: live.is_some(),
            queue_position: self.hub.position(&summary.id),
            pending_approvals: pending,
            cost_usd,
            tokens: property(summary, StoredJournal::TOKENS),
            settings,
        }
    }

    /// Returns the view of a session for the response to a request. A session of this server with an input in its inbox
    /// counts as processing. Otherwise, a client that waits for the end of a run would see an end before the run starts.
    pub(crate) async fn view_now(&self, summary: &Summary) -> Result<SessionView, StoreError> {
        let id = &summary.id;
        let is_here = self.hub.live(id).is_some() || self.hub.position(id).is_some();
        // The inbox is read before the state, because an input leaves it after the run has started.
        let has_posted = is_here && self.hub.store.has_posted(id).await?;
        let mut view = self.view(summary);
        if has_posted && matches!(view.state, SessionState::Idle | SessionState::AwaitingInput) {
            view.state = SessionState::Processing;
        }
        Ok(view)
    }

    /// Returns the client view of the session with this id, if the caller may see it.
    pub(crate) async fn view_of(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Option<SessionView>, StoreError> {
        let summary = self.hub.store.summary(id).await?.filter(|summary| is_visible_to(summary, caller));
        Ok(summary.map(|summary| self.view(&summary)))
    }

    pub(super) async fn list(&self, caller: &Caller, query: ListQuery) -> Result<SessionList, Problem> {
        let limit = query.limit.unwrap_or(PAGE);
        if !(1..=MAX_PAGE).contains(&limit) {
            return Err(Problem::new(INVALID, format!("limit: expected 1 to {MAX_PAGE}")));
        }
        let mut filter = Filter::default();
        if let Some(tenant) = &caller.tenant {
            filter = filter.with_property(TENANT, tenant);
        }
        if let Some(parent) = &query.parent {
            // The caller must be allowed to see the parent session.
            filter = Filter::default().with_parent(self.find(caller, parent).await?.summary.id);
        }
        let search = query.search.as_deref().map(str::to_lowercase);
        let mut after = query.cursor.as_deref().map(parse_cursor).transpose()?;
        let mut sessions = Vec::new();
        loop {
            let mut page = Page::of(CHUNK);
            page.after = after.take();
            let summaries = self.hub.store.list(&filter, &page).await?;
            let is_last = summaries.len() < CHUNK;
            for summary in summaries {
                after = Some((summary.updated_at, summary.id.clone()));
                if query.parent.is_none() && !is_visible_to(&summary, caller) {
                    continue;
                }
                let view = self.view_now(&summary).await?;
                let is_wanted = query.state.is_none_or(|state| state == view.state)
                    && search.as_ref().is_none_or(|search| view.matches(search));
                if !is_wanted {
                    continue;
                }
                if sessions.len() == limit {
                    let next = sessions.last().map(SessionView::cursor);
                    return Ok(SessionList { sessions, next });
                }
                sessions.push(view);
            }
            if is_last {
                return Ok(SessionList { sessions, next: None });
            }
        }
    }
}

impl SessionView {
    fn matches(&self, search: &str) -> bool {
        let directory = self.settings.directory.as_deref().unwrap_or_default();
        [self.title.as_str(), &self.id, directory].iter().any(|text| text.to_lowercase().contains(search))
    }

    fn cursor(&self) -> String {
        let updated_at: Timestamp = self.updated_at.parse().unwrap_or_default();
        format!("{}.{}", updated_at.as_millis(), self.id)
    }
}

/// Returns the cursor of the page after a summary.
#[cfg(feature = "tasks")]
pub(super) fn cursor_of(summary: &Summary) -> String {
    format!("{}.{}", summary.updated_at.as_millis(), summary.id)
}

pub(super) fn parse_cursor(cursor: &str) -> Result<(Timestamp, SessionId), Problem> {
    let parsed = cursor.split_once('.').and_then(|(millis, id)| Some((millis.parse().ok()?, id)));
    let (millis, id) =
        parsed.ok_or_else(|| Problem::new(INVALID, "cursor: expected `next` of an earlier page"))?;
    Ok((Timestamp::from_millis(millis), SessionId::new(id)))
}
