//! `pintle sessions list`.

use pintle_agent::SessionState;
use pintle_host::env_spec::EnvironmentChoice;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::sessions::{SessionLocation, Sessions, empty};
use pintle_store::{Filter, Page, StoredJournal, Summary};
use pintle_tui::console;
use serde::Serialize;

use crate::arguments::{ListFormat, ListSessionsArgs};
use crate::exit::Exit;

/// Fewest bytes of an id in a list. The first bytes encode the time, and are equal for sessions of the same second.
const MIN_SHORT_ID: usize = 18;

/// A session in a list.
#[derive(Debug, Serialize)]
pub(super) struct SessionListRow<'a> {
    pub(super) id: &'a str,
    pub(super) state: &'static str,
    pub(super) title: &'a str,
    /// Title in a list of lines, or a mark in its place.
    #[serde(skip)]
    pub(super) label: &'a str,
    pub(super) environment: String,
    pub(super) directory: String,
    pub(super) provider: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<u64>,
    pub(super) created_at: String,
    pub(super) updated_at: String,
}

pub(super) async fn list(
    sessions: &Sessions,
    args: &ListSessionsArgs,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    let filter = if args.all {
        Filter::default()
    } else {
        SessionLocation::from_choice(&EnvironmentChoice::here(), process_env)?.filter()
    };
    let found = list_started(sessions, &filter, args.limit as usize, args.all).await?;
    let mut rows = Vec::new();
    for summary in &found {
        rows.push(row(sessions, summary).await);
    }
    let text = match args.output {
        ListFormat::Json => json_line(&rows)?,
        ListFormat::Text if rows.is_empty() && !args.all => {
            "no sessions in this directory; `--all` lists the sessions of all directories\n".to_owned()
        }
        ListFormat::Text => table(&rows, args.all).concat(),
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Returns a line for each of the newest sessions, without line ends.
pub(super) async fn lines(
    sessions: &Sessions,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<String>, Failure> {
    let found = list_started(sessions, filter, limit, false).await?;
    let mut rows = Vec::new();
    for summary in &found {
        rows.push(row(sessions, summary).await);
    }
    Ok(table(&rows, false).iter().map(|line| line.trim_end().to_owned()).collect())
}

/// Returns the newest sessions, without sessions that were killed before anything was recorded, and, unless
/// `with_empty` is set, without sessions that have no message.
async fn list_started(
    sessions: &Sessions,
    filter: &Filter,
    limit: usize,
    with_empty: bool,
) -> Result<Vec<Summary>, Failure> {
    let is_begun = |summary: &Summary| {
        summary.is_session()
            && (!summary.title.is_empty() || summary.properties.contains_key(StoredJournal::STATE))
    };
    let (mut found, mut page) = (Vec::new(), Page::of(limit));
    loop {
        let summaries = sessions.store().list(filter, &page).await.or_failed("cannot list the sessions")?;
        let is_last = summaries.len() < limit;
        page.after = summaries.last().map(|summary| (summary.updated_at, summary.id.clone()));
        for summary in summaries.into_iter().filter(is_begun) {
            if with_empty || !empty::is_empty(sessions.store(), &summary).await {
                found.push(summary);
            }
        }
        if is_last || found.len() >= limit || page.after.is_none() {
            found.truncate(limit);
            return Ok(found);
        }
    }
}

/// Returns a session as a list shows it.
pub(super) async fn row<'a>(sessions: &Sessions, summary: &'a Summary) -> SessionListRow<'a> {
    let property = |name: &str| summary.properties.get(name).map(String::as_str);
    let place = SessionLocation::from_summary(summary);
    let cost: Option<f64> = property(StoredJournal::COST_MICROS).and_then(|cost| cost.parse().ok());
    let is_empty = empty::is_empty(sessions.store(), summary).await;
    SessionListRow {
        id: summary.id.as_str(),
        state: state(sessions, summary).await,
        title: &summary.title,
        label: if is_empty { "(no message)" } else { title_or_mark(&summary.title) },
        environment: place.environment().to_owned(),
        directory: place.directory().to_owned(),
        provider: property("provider"),
        model: property("model"),
        cost_usd: cost.map(|cost| cost / 1e6),
        tokens: property(StoredJournal::TOKENS).and_then(|tokens| tokens.parse().ok()),
        created_at: summary.created_at.to_string(),
        updated_at: summary.updated_at.to_string(),
    }
}

/// Returns the title of a session, or a mark in its place: the first message may have no text.
pub(super) fn title_or_mark(title: &str) -> &str {
    if title.is_empty() { "(no title)" } else { title }
}

/// Returns the state of a session as a single word.
async fn state(sessions: &Sessions, summary: &Summary) -> &'static str {
    let property = |name: &str| summary.properties.get(name).map(String::as_str);
    let is_processing = property(StoredJournal::STATE) == state_name(SessionState::Processing).as_deref();
    let is_live = matches!(sessions.store().holder(&summary.id).await, Ok(Some(_)));
    match (is_live, is_processing) {
        _ if property(StoredJournal::PENDING_APPROVALS).is_some() => "awaiting approval",
        (true, true) => "running",
        // The process of the session is gone.
        (false, true) => "unfinished",
        (_, false) => "idle",
    }
}

fn state_name(state: SessionState) -> Option<String> {
    serde_json::to_value(state).ok()?.as_str().map(str::to_owned)
}

/// Returns sessions as lines, with their directories or without. No two of their ids are shortened to the same text.
pub(super) fn table(rows: &[SessionListRow<'_>], with_place: bool) -> Vec<String> {
    let ids = short_ids(&rows.iter().map(|row| row.id).collect::<Vec<_>>());
    let width = ids.iter().map(|id| id.len()).max().unwrap_or(0).max(MIN_SHORT_ID);
    rows.iter().zip(ids).map(|(row, id)| line(row, id, width, with_place)).collect()
}

fn line(row: &SessionListRow<'_>, id: &str, width: usize, with_place: bool) -> String {
    let time = row.updated_at.get(..16).unwrap_or(&row.updated_at).replace('T', " ");
    let cost = row.cost_usd.map_or_else(|| "-".to_owned(), |cost| format!("${cost:.4}"));
    let place = if with_place { format!("  {}", sanitize(&row.directory)) } else { String::new() };
    format!("{id:<width$}  {time}  {:<17}  {cost:>9}  {}{place}\n", row.state, sanitize(row.label))
}

/// Returns a unique prefix of each id, or the whole id.
fn short_ids<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let short = |id: &'a str| {
        let at = sorted.binary_search(&id).unwrap_or_else(|at| at);
        // In sorted order, an id shares its longest prefix with a neighbour.
        let beside = [at.checked_sub(1), at.checked_add(1)].into_iter().flatten();
        let shared = beside.filter_map(|at| sorted.get(at)).map(|other| shared_len(id, other)).max();
        let mut end = shared.map_or(0, |shared| shared.saturating_add(1)).max(MIN_SHORT_ID);
        while end < id.len() && !id.is_char_boundary(end) {
            end = end.saturating_add(1);
        }
        id.get(..end).unwrap_or(id)
    };
    ids.iter().copied().map(short).collect()
}

/// Returns the length of the common prefix in bytes.
fn shared_len(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened_until_they_are_unique() {
        for (ids, expected) in [
            (vec![], vec![]),
            (vec!["0190a000-1111-7aaa-8000-000000000001"], vec!["0190a000-1111-7aaa"]),
            (
                vec![
                    "0190a000-1111-7aaa-8000-000000000001",
                    "0190a000-2222-7aaa-8000-000000000001",
                    "0190a000-1111-7aaa-9000-000000000001",
                ],
                vec!["0190a000-1111-7aaa-8", "0190a000-2222-7aaa", "0190a000-1111-7aaa-9"],
            ),
            (
                vec!["task-0190a000-1111-7", "task-0190a000-1111-7-b"],
                vec!["task-0190a000-1111-7", "task-0190a000-1111-7-"],
            ),
            (vec!["short", "sh"], vec!["short", "sh"]),
            (
                vec!["0190a000-1111-7aaé", "0190a000-1111-7aaè"],
                vec!["0190a000-1111-7aaé", "0190a000-1111-7aaè"],
            ),
        ] {
            assert_eq!(short_ids(&ids), expected, "{ids:?}");
        }
    }
}
