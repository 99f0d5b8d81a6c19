//! Cost of a run at catalog prices.

use std::collections::HashMap;

use pintle_agent::{EventKind, SessionEvent, SessionId};
use pintle_llm::{Catalog, ModelInfo, Money};

/// Adds up the cost of the responses of a session with one model, and of its subagents.
#[derive(Debug)]
pub struct CostTracker<'a> {
    model: Option<&'a ModelInfo>,
    catalog: &'a Catalog,
    costs: Costs,
}

/// Cost of a session and its subagents so far. Each response is priced separately, since a long prompt may be priced
/// differently.
#[derive(Debug)]
pub struct Costs {
    /// Providers and models of the subagents.
    subagents: HashMap<SessionId, (String, String)>,
    total: Option<Money>,
}

impl<'a> CostTracker<'a> {
    /// Creates a tracker for a session with this model. Without a model the total is always unknown. Subagents' models are
    /// looked up in the catalog.
    pub fn new(model: Option<&'a ModelInfo>, catalog: &'a Catalog) -> Self {
        Self { model, catalog, costs: Costs::new(model) }
    }

    /// Adds the cost of an event.
    pub fn add(&mut self, event: &SessionEvent) {
        self.costs.add(event, self.model, self.catalog);
    }

    /// Returns the total, or `None` if any price is unknown.
    pub fn total(&self) -> Option<Money> {
        self.costs.total()
    }
}

impl Costs {
    /// Starts to count. Without a model the total is always unknown.
    pub fn new(model: Option<&ModelInfo>) -> Self {
        Self { subagents: HashMap::new(), total: model.map(|_| Money::ZERO) }
    }

    /// Adds the cost of an event of a session that now has this model. Subagents' models are looked up in the catalog.
    pub fn add(&mut self, event: &SessionEvent, model: Option<&ModelInfo>, catalog: &Catalog) {
        if let EventKind::SessionStart { provider, model, .. } = &event.kind {
            if event.depth > 0 {
                self.subagents.insert(event.session_id.clone(), (provider.clone(), model.clone()));
            }
        } else if let EventKind::ModelResponse { usage, .. } = &event.kind {
            let model = if event.depth == 0 {
                model
            } else {
                let started = self.subagents.get(&event.session_id);
                started.and_then(|(provider, model)| catalog.find(provider, model))
            };
            let cost = model.and_then(|model| model.cost(usage));
            self.total = self.total.zip(cost).map(|(total, cost)| total + cost);
        }
    }

    /// Returns the total, or `None` if any price is unknown.
    pub fn total(&self) -> Option<Money> {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use pintle_llm::Usage;
    use serde_json::{Value, json};

    use super::*;

    fn event(session: &str, depth: u32, kind: &str, data: &Value) -> SessionEvent {
        let record = json!({
            "seq": 0, "timestamp": "2026-01-02T03:04:05.000Z", "session_id": session, "depth": depth, "kind": kind,
            "data": data,
        });
        serde_json::from_value(record).unwrap()
    }

    fn response(session: &str, depth: u32, input: u64, output: u64) -> SessionEvent {
        let usage = Usage::new(input, output);
        let reason = json!({"reason": "stop"});
        let data = json!({"response_id": "r", "model": "m", "finish_reason": reason, "usage": usage});
        event(session, depth, "MODEL_RESPONSE", &data)
    }

    fn assert_total(tracker: &CostTracker<'_>, expected: f64) {
        assert_eq!(tracker.total(), Some(Money::from_dollars(expected)), "{tracker:?}");
    }

    #[test]
    fn responses_are_priced_separately() {
        // A prompt above 272,000 tokens costs twice as much; two shorter ones do not.
        let model = pintle_llm::get_model_info("gpt-6.2-sol").unwrap();
        let mut tracker = CostTracker::new(Some(model), Catalog::built_in());
        assert_eq!(tracker.total(), Some(Money::ZERO));
        for _ in 0..2 {
            tracker.add(&response("s", 0, 200_000, 10_000));
        }
        assert_total(&tracker, 2.0 * (0.4 + 0.1));
        tracker.add(&response("s", 0, 400_000, 10_000));
        assert_total(&tracker, 1.0 + 1.6 + 0.15);
    }

    #[test]
    fn unknown_price_makes_total_unknown() {
        let mut unpriced = CostTracker::new(None, Catalog::built_in());
        unpriced.add(&response("s", 0, 1, 1));
        assert_eq!(unpriced.total(), None);

        let free = ModelInfo::new("p", "m", 1);
        let mut tracker = CostTracker::new(Some(&free), Catalog::built_in());
        tracker.add(&response("s", 0, 1, 1));
        tracker.add(&response("s", 0, 0, 0));
        assert_eq!(tracker.total(), None, "one unknown price makes the total unknown");
    }

    #[test]
    fn subagents_are_priced_by_their_own_models() {
        let model = pintle_llm::get_model_info("gpt-6.2-sol").unwrap();
        let started = |session: &str, model: &str| {
            let data = json!({"provider": "openai", "model": model, "working_directory": "/w"});
            event(session, 1, "SESSION_START", &data)
        };
        let mut tracker = CostTracker::new(Some(model), Catalog::built_in());
        tracker.add(&started("a", "gpt-6.2-sol"));
        tracker.add(&response("a", 1, 200_000, 10_000));
        assert_total(&tracker, 0.4 + 0.1);
        tracker.add(&started("b", "no-such-model"));
        tracker.add(&response("b", 1, 1, 1));
        assert_eq!(tracker.total(), None);
    }
}
