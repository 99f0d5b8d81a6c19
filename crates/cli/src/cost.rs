//! What a run costs, where the catalog knows the price.

use std::collections::HashMap;

use pintle_agent::{EventKind, SessionEvent, SessionId};
use pintle_llm::{Catalog, ModelInfo, Usage};

/// The answers of a model and of those of its subagents, added up. Each is priced alone, since a long prompt may have a
/// price of its own.
#[derive(Debug)]
pub(crate) struct Bill<'a> {
    model: Option<&'a ModelInfo>,
    catalog: &'a Catalog,
    /// The models of the subagents.
    below: HashMap<SessionId, Option<&'a ModelInfo>>,
    total: Option<f64>,
}

impl<'a> Bill<'a> {
    /// Nothing used yet; with no model, nothing is ever known. The catalog has the prices of other models.
    pub(crate) fn of(model: Option<&'a ModelInfo>, catalog: &'a Catalog) -> Self {
        Self { model, catalog, below: HashMap::new(), total: model.map(|_| 0.0) }
    }

    /// Adds what an event tells.
    pub(crate) fn add(&mut self, event: &SessionEvent) {
        if let EventKind::SessionStart { provider, model, .. } = &event.kind {
            if event.depth > 0 {
                self.below.insert(event.session_id.clone(), self.catalog.find(provider, model));
            }
        } else if let EventKind::ModelResponse { usage, .. } = &event.kind {
            let model = if event.depth == 0 {
                self.model
            } else {
                *self.below.get(&event.session_id).unwrap_or(&None)
            };
            self.add_answer(model, usage);
        }
    }

    fn add_answer(&mut self, model: Option<&ModelInfo>, usage: &Usage) {
        let cost = model.and_then(|model| model.cost(usage));
        self.total = self.total.zip(cost).map(|(total, cost)| total + cost);
    }

    /// In US dollars; `None` if the price of any part is unknown.
    pub(crate) fn total(&self) -> Option<f64> {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(session: &str, depth: u32, kind: &str, data: &Value) -> SessionEvent {
        let record = json!({
            "seq": 0, "timestamp": "2026-01-02T03:04:05.000Z", "session_id": session, "depth": depth, "kind": kind,
            "data": data,
        });
        serde_json::from_value(record).unwrap()
    }

    fn answer(session: &str, depth: u32, input: u64, output: u64) -> SessionEvent {
        let usage = Usage::new(input, output);
        let reason = json!({"reason": "stop"});
        let data = json!({"response_id": "r", "model": "m", "finish_reason": reason, "usage": usage});
        event(session, depth, "MODEL_RESPONSE", &data)
    }

    fn is_near(bill: &Bill<'_>, expected: f64) {
        assert!((bill.total().unwrap() - expected).abs() < 1e-9, "{bill:?}");
    }

    #[test]
    fn every_answer_is_priced_alone() {
        // A prompt above 272,000 tokens costs twice as much; two shorter ones do not.
        let model = pintle_llm::get_model_info("gpt-6.2-sol").unwrap();
        let mut bill = Bill::of(Some(model), Catalog::built_in());
        assert_eq!(bill.total(), Some(0.0));
        for _ in 0..2 {
            bill.add(&answer("s", 0, 200_000, 10_000));
        }
        is_near(&bill, 2.0 * (0.4 + 0.1));
        bill.add(&answer("s", 0, 400_000, 10_000));
        is_near(&bill, 1.0 + 1.6 + 0.15);
    }

    #[test]
    fn what_is_unknown_stays_unknown() {
        let mut nobody = Bill::of(None, Catalog::built_in());
        nobody.add(&answer("s", 0, 1, 1));
        assert_eq!(nobody.total(), None);

        let free = ModelInfo::new("p", "m", 1);
        let mut bill = Bill::of(Some(&free), Catalog::built_in());
        bill.add(&answer("s", 0, 1, 1));
        bill.add(&answer("s", 0, 0, 0));
        assert_eq!(bill.total(), None, "one unknown part makes the sum unknown");
    }

    #[test]
    fn subagents_have_the_prices_of_their_own_models() {
        let model = pintle_llm::get_model_info("gpt-6.2-sol").unwrap();
        let started = |session: &str, model: &str| {
            let data = json!({"provider": "openai", "model": model, "working_directory": "/w"});
            event(session, 1, "SESSION_START", &data)
        };
        let mut bill = Bill::of(Some(model), Catalog::built_in());
        bill.add(&started("a", "gpt-6.2-sol"));
        bill.add(&answer("a", 1, 200_000, 10_000));
        is_near(&bill, 0.4 + 0.1);
        bill.add(&started("b", "no-such-model"));
        bill.add(&answer("b", 1, 1, 1));
        assert_eq!(bill.total(), None);
    }
}
