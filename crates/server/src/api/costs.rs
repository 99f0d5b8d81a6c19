//! Cost by day and model, added up from the records. The cost of deleted sessions is kept.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pintle_agent::{EventKind, SessionEvent, SessionId, Timestamp};
use pintle_llm::{Money, Usage};
use pintle_store::{Filter, Page, StoreError, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extractors::Query;
use super::list::is_visible_to;
use super::openapi::{Operation, Parameter};
use super::{App, Caller, TokenScope, json};
use crate::hub::TENANT;
use crate::problem::{FAILED, INVALID, Problem};

/// Default and maximum days of a report.
const DAYS: u32 = 30;
const MAX_DAYS: u32 = 366;

/// Maximum number of records that are read for one report, including records of subagents.
const MAX_RECORDS: usize = 5_000;

/// Number of sessions that are listed at once.
const PAGE: usize = 100;

const DAY: i64 = 24 * 60 * 60 * 1_000;

const QUERY: &[Parameter] =
    &[Parameter::number("days", 1, 366, "Days up to today, in UTC, at most 366; default 30")];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "get",
            "/v1/costs",
            "readCosts",
            TokenScope::Read,
            "Add up the cost of all sessions by day and model",
            get(costs),
        )
        .with_query(QUERY)
        .answers::<CostReport>(200),
    ]
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CostQuery {
    days: Option<u32>,
}

/// Cost by day and model.
#[derive(Debug, Serialize, JsonSchema)]
struct CostReport {
    /// First day, in UTC.
    since: String,
    /// Cost of each day and model that has any, the newest day first.
    days: Vec<DayCost>,
    /// Number of sessions with these days, including subagents and deleted sessions.
    sessions: usize,
    /// Whether all sessions of these days were read. Beyond 5,000 the oldest are left out, and always what follows the damage of
    /// a record.
    is_complete: bool,
}

/// Cost of one model on one day.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct DayCost {
    /// Day, in UTC.
    day: String,
    /// Model that responded.
    model: String,
    /// Number of responses.
    responses: u64,
    /// Input tokens, cached ones among them.
    input_tokens: u64,
    /// Input tokens that were read from a cache.
    cache_read_tokens: u64,
    /// Output tokens.
    output_tokens: u64,
    /// Cost in US dollars; absent if a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

/// Sums of one model on one day.
#[derive(Debug)]
struct UsageSums {
    responses: u64,
    input: u64,
    cache_read: u64,
    output: u64,
    cost: Option<Money>,
}

impl Default for UsageSums {
    fn default() -> Self {
        Self { responses: 0, input: 0, cache_read: 0, output: 0, cost: Some(Money::ZERO) }
    }
}

impl UsageSums {
    fn add(&mut self, usage: &Usage, cost: Option<Money>) {
        self.responses += 1;
        self.input = self.input.saturating_add(usage.input_tokens);
        self.cache_read = self.cache_read.saturating_add(usage.cache_read_tokens.unwrap_or(0));
        self.output = self.output.saturating_add(usage.output_tokens);
        // Each response is priced separately, because a long prompt may have a different price.
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }

    /// Adds the cost of deleted sessions for one day and model.
    fn add_day(&mut self, day: &DayCost) {
        self.responses = self.responses.saturating_add(day.responses);
        self.input = self.input.saturating_add(day.input_tokens);
        self.cache_read = self.cache_read.saturating_add(day.cache_read_tokens);
        self.output = self.output.saturating_add(day.output_tokens);
        self.cost = self.cost.zip(day.cost_usd).map(|(sum, cost)| sum + Money::from_dollars(cost));
    }
}

/// Sums by day and model.
type CostSums = BTreeMap<(String, String), UsageSums>;

/// Returns the sums for the report, newest day first.
fn day_costs(sums: CostSums) -> Vec<DayCost> {
    let view = |((day, model), sums): ((String, String), UsageSums)| DayCost {
        day,
        model,
        responses: sums.responses,
        input_tokens: sums.input,
        cache_read_tokens: sums.cache_read,
        output_tokens: sums.output,
        cost_usd: sums.cost.map(Money::dollars),
    };
    sums.into_iter().rev().map(view).collect()
}

/// Cost of a deleted session and its subagents. The store keeps it in place of the session.
#[derive(Debug, Serialize, Deserialize)]
struct KeptCost {
    /// Session that was deleted or is being deleted.
    session: SessionId,
    /// Day of the newest response of each session that has one, including subagents.
    newest_days: Vec<String>,
    days: Vec<DayCost>,
}

impl KeptCost {
    /// [`Summary::KIND`] of stored costs.
    const KIND: &str = "cost";

    /// Property of the summary with the cost.
    const COST: &str = "cost";

    /// Returns the cost in a summary.
    fn from_summary(summary: &Summary) -> Option<Self> {
        serde_json::from_str(summary.properties.get(Self::COST)?).ok()
    }
}

/// Returns the day of a time, in UTC.
fn day_of(time: Timestamp) -> String {
    time.to_string().chars().take_while(|letter| *letter != 'T').collect()
}

/// Result of adding a record.
#[derive(Debug, PartialEq, Eq)]
struct AddedRecord {
    /// Day of the record's newest response; `None` if it has no response.
    newest_day: Option<String>,
    /// Whether the complete record was read.
    is_complete: bool,
}

/// Adds the responses of one record since a time. Returns the day of the newest response. `price` returns the cost of a
/// response from its provider, model and usage.
fn add_events(
    sums: &mut CostSums,
    events: &[SessionEvent],
    since: Timestamp,
    price: impl Fn(&str, &str, &Usage) -> Option<Money>,
) -> Option<String> {
    let (mut own_provider, mut newest_day) = ("", None);
    for event in events {
        if let EventKind::SessionStart { provider, .. } = &event.kind {
            own_provider = provider;
        } else if let EventKind::ModelResponse { model, usage, .. } = &event.kind
            && event.timestamp >= since
        {
            let (day, cost) = (day_of(event.timestamp), price(own_provider, model, usage));
            sums.entry((day.clone(), model.clone())).or_default().add(usage, cost);
            newest_day = newest_day.max(Some(day));
        }
    }
    newest_day
}

impl App {
    /// Returns the sessions of a caller that changed since a time, with their subagents, and whether the list is complete.
    async fn changed_since(
        &self,
        caller: &Caller,
        since: Timestamp,
    ) -> Result<(Vec<SessionId>, bool), StoreError> {
        let mut filter = Filter::default();
        if let Some(tenant) = &caller.tenant {
            filter = filter.with_property(TENANT, tenant);
        }
        let is_wanted = |summary: &Summary| summary.parent.is_some() || is_visible_to(summary, caller);
        let (mut found, mut lists) = (Vec::new(), vec![filter]);
        while let Some(filter) = lists.pop() {
            let mut page = Page::of(PAGE);
            loop {
                let summaries = self.hub.store.list(&filter, &page).await?;
                let Some(last) = summaries.last() else { break };
                page = Page::of(PAGE).after(last);
                let is_past = last.updated_at < since;
                for summary in summaries.into_iter().filter(|summary| summary.updated_at >= since) {
                    if !is_wanted(&summary) {
                        continue;
                    }
                    if found.len() == MAX_RECORDS {
                        return Ok((found, false));
                    }
                    lists.push(Filter::default().with_parent(summary.id.clone()));
                    found.push(summary.id);
                }
                if is_past {
                    break;
                }
            }
        }
        Ok((found, true))
    }

    /// Adds the responses of the record of a session, up to the first damaged line.
    async fn add_record(&self, sums: &mut CostSums, id: &SessionId, since: Timestamp) -> AddedRecord {
        match self.intact_replay(id).await {
            Ok((replay, damage)) => {
                let newest_day = add_events(sums, &replay.events, since, |provider, model, usage| {
                    self.hub.host.cost(provider, model, usage)
                });
                AddedRecord { newest_day, is_complete: damage.is_none() }
            }
            Err(problem) => {
                tracing::debug!(session = %id, problem = problem.detail, "a record has no cost");
                AddedRecord { newest_day: None, is_complete: false }
            }
        }
    }

    /// Stores the cost of a session and its subagents, which are about to be deleted. On a full disk, the cost is lost and
    /// the deletion continues, because it frees space.
    pub(super) async fn keep_cost(&self, id: &SessionId, tenant: Option<&str>) {
        if let Err(problem) = self.try_keep_cost(id, tenant).await {
            tracing::warn!(session = %id, problem = problem.detail, "the cost of a deleted session is lost");
        }
    }

    async fn try_keep_cost(&self, id: &SessionId, tenant: Option<&str>) -> Result<(), Problem> {
        let store = &self.hub.store;
        let Some(summary) = store.summary(id).await? else { return Ok(()) };
        let mut sums = CostSums::new();
        let (mut newest_days, mut tree) = (Vec::new(), vec![id.clone()]);
        while let Some(member) = tree.pop() {
            let added = self.add_record(&mut sums, &member, Timestamp::from_millis(0)).await;
            newest_days.extend(added.newest_day);
            let below = store.list(&Filter::default().with_parent(member), &Page::default()).await?;
            tree.extend(below.into_iter().map(|summary| summary.id));
        }
        if sums.is_empty() {
            return Ok(());
        }
        let cost = KeptCost { session: id.clone(), newest_days, days: day_costs(sums) };
        let cost = serde_json::to_string(&cost)
            .map_err(|error| Problem::internal(FAILED, "the cost of the session cannot be kept", &error))?;
        let mut kept = Summary::new(SessionId::new(format!("cost-{id}")), summary.created_at)
            .with_property(Summary::KIND, KeptCost::KIND)
            .with_property(KeptCost::COST, cost);
        if let Some(tenant) = tenant {
            kept = kept.with_property(TENANT, tenant);
        }
        kept.updated_at = self.access.clock.now();
        let mut writer = match store.create(kept.clone()).await {
            Ok(writer) => writer,
            // An earlier request stored the cost but did not delete the session.
            Err(StoreError::Exists(_)) => store.open(&kept.id).await?.writer,
            Err(error) => return Err(error.into()),
        };
        writer.set_summary(kept).await?;
        writer.close().await?;
        Ok(())
    }

    /// Returns the costs of the caller's sessions that were deleted since a time.
    async fn kept_since(&self, caller: &Caller, since: Timestamp) -> Result<Vec<KeptCost>, StoreError> {
        let filter = Filter::default().with_property(Summary::KIND, KeptCost::KIND);
        let (mut found, mut page) = (Vec::new(), Page::of(PAGE));
        loop {
            let summaries = self.hub.store.list(&filter, &page).await?;
            let Some(last) = summaries.last() else { return Ok(found) };
            page = Page::of(PAGE).after(last);
            let is_past = last.updated_at < since;
            for summary in summaries {
                if summary.updated_at < since || summary.properties.get(TENANT) != caller.tenant.as_ref() {
                    continue;
                }
                let Some(kept) = KeptCost::from_summary(&summary) else { continue };
                // A session that could not be deleted still has its record.
                if self.hub.store.summary(&kept.session).await?.is_none() {
                    found.push(kept);
                }
            }
            if is_past {
                return Ok(found);
            }
        }
    }
}

async fn costs(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<CostQuery>,
) -> Result<Response, Problem> {
    let days = query.days.unwrap_or(DAYS);
    if !(1..=MAX_DAYS).contains(&days) {
        return Err(Problem::new(INVALID, format!("days: expected 1 to {MAX_DAYS}")));
    }
    let today = app.access.clock.now().as_millis().div_euclid(DAY);
    let since = Timestamp::from_millis((today - i64::from(days) + 1) * DAY);
    let (found, mut is_complete) = app.changed_since(&caller, since).await?;
    let mut sums = CostSums::new();
    let mut sessions = 0;
    for id in &found {
        let added = app.add_record(&mut sums, id, since).await;
        sessions += usize::from(added.newest_day.is_some());
        is_complete &= added.is_complete;
    }
    let deleted = app.kept_since(&caller, since).await?;
    let since = day_of(since);
    for kept in &deleted {
        sessions += kept.newest_days.iter().filter(|day| **day >= since).count();
        for day in kept.days.iter().filter(|day| day.day >= since) {
            sums.entry((day.day.clone(), day.model.clone())).or_default().add_day(day);
        }
    }
    Ok(json(&CostReport { since, days: day_costs(sums), sessions, is_complete }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn events() -> Vec<SessionEvent> {
        let event = |seq: u64, time: &str, kind: &str, data: serde_json::Value| {
            let event = json!({
                "seq": seq, "timestamp": time, "session_id": "s", "depth": 0, "kind": kind, "data": data,
            });
            serde_json::from_value(event).unwrap()
        };
        let response = |input| {
            let (usage, reason) = (Usage::new(input, 5), json!({"reason": "stop"}));
            json!({"response_id": "r", "model": "m", "finish_reason": reason, "usage": usage})
        };
        vec![
            event(0, "2026-11-25T23:59:00.000Z", "MODEL_RESPONSE", response(1)),
            event(1, "2026-11-26T00:00:00.000Z", "MODEL_RESPONSE", response(10)),
            event(2, "2026-11-26T12:00:00.000Z", "MODEL_RESPONSE", response(100)),
        ]
    }

    /// The store has them in place of deleted sessions.
    #[test]
    fn serialised_names_of_costs_are_those_of_the_fixture() {
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/costs.json"));
        let mut values = pintle_test_conditions::SerialisedValues::parse(text);
        values.check::<KeptCost>("costs of deleted sessions");
        values.finish();
    }

    #[test]
    fn responses_are_added_by_day_and_model() {
        let since = Timestamp::from_millis(0);
        let mut sums = BTreeMap::new();
        let price = |_: &str, _: &str, usage: &Usage| {
            (usage.input_tokens != 100).then_some(Money::from_micros(500_000))
        };
        let newest_day = add_events(&mut sums, &events(), since, price);
        assert_eq!(newest_day.as_deref(), Some("2026-11-26"));
        assert_eq!(add_events(&mut sums, &[], since, price), None, "a session without a response has no day");
        let found: Vec<_> = sums
            .iter()
            .map(|((day, model), sums)| (day.as_str(), model.as_str(), sums.responses, sums.input, sums.cost))
            .collect();
        assert_eq!(
            found,
            [("2026-11-25", "m", 1, 1, Some(Money::from_micros(500_000))), ("2026-11-26", "m", 2, 110, None)]
        );
    }
}
