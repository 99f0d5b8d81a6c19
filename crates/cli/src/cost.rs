//! What a run costs, where the catalog knows the price.

use pintle_llm::{ModelInfo, Usage};

/// The answers of a model, added up. Each is priced alone, since a long prompt may have a price of its own.
#[derive(Debug)]
pub(crate) struct Bill<'a> {
    model: Option<&'a ModelInfo>,
    total: Option<f64>,
}

impl<'a> Bill<'a> {
    /// Nothing used yet; with no model, nothing is ever known.
    pub(crate) fn of(model: Option<&'a ModelInfo>) -> Self {
        Self { model, total: model.map(|_| 0.0) }
    }

    /// Adds the tokens of one answer.
    pub(crate) fn add(&mut self, usage: &Usage) {
        let cost = self.model.and_then(|model| model.cost(usage));
        self.total = self.total.zip(cost).map(|(total, cost)| total + cost);
    }

    /// In US dollars; `None` if the price of any part is unknown.
    pub(crate) fn total(&self) -> Option<f64> {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_priced_alone() {
        // A prompt above 272,000 tokens costs twice as much; two shorter ones do not.
        let model = pintle_llm::get_model_info("gpt-6.2-sol").unwrap();
        let mut bill = Bill::of(Some(model));
        assert_eq!(bill.total(), Some(0.0));
        for _ in 0..2 {
            bill.add(&Usage::new(200_000, 10_000));
        }
        assert!((bill.total().unwrap() - 2.0 * (0.4 + 0.1)).abs() < 1e-9, "{bill:?}");
        bill.add(&Usage::new(400_000, 10_000));
        assert!((bill.total().unwrap() - (1.0 + 1.6 + 0.15)).abs() < 1e-9, "{bill:?}");
    }

    #[test]
    fn what_is_unknown_stays_unknown() {
        let mut nobody = Bill::of(None);
        nobody.add(&Usage::new(1, 1));
        assert_eq!(nobody.total(), None);

        let free = ModelInfo::new("p", "m", 1);
        let mut bill = Bill::of(Some(&free));
        bill.add(&Usage::new(1, 1));
        bill.add(&Usage::default());
        assert_eq!(bill.total(), None, "one unknown part makes the sum unknown");
    }
}
