//! Questions about spending beyond a limit.

use async_trait::async_trait;
use pintle_agent::ReachedBudget;
use pintle_governance::{Agreement, BudgetApprover, BudgetQuestion};
use pintle_host::attendant::Attendant as _;

use super::Prompter;
use crate::render::{amount_of_budget, parse_amount};

#[async_trait]
impl BudgetApprover for Prompter {
    async fn agree(&self, question: &BudgetQuestion) -> Option<Agreement> {
        let (text, prompt) = match question {
            BudgetQuestion::Limit { reached, needs, .. } => limit_question(reached, *needs),
            BudgetQuestion::Price { model, .. } => (
                format!("the price of {model} is unknown, so the limit on cost cannot be enforced"),
                "Call it without that limit? [y]es, [n]o: ".to_owned(),
            ),
            _ => return None,
        };
        let answer = self.ask_now(&text, &prompt).await?;
        let more = match question {
            BudgetQuestion::Limit { reached, needs, .. } => agreed(&answer, reached, *needs)?,
            BudgetQuestion::Price { .. } | _ => matches!(answer.trim(), "y" | "yes").then_some(0)?,
        };
        Some(Agreement::new(more, self.user()?))
    }
}

fn limit_question(reached: &ReachedBudget, needs: u64) -> (String, String) {
    let amount = |value| amount_of_budget(reached.budget, value);
    let text = format!(
        "the limit of the {} is reached: {} of {}, and the next call needs {} more",
        reached.scope,
        amount(reached.spent),
        amount(reached.limit),
        amount(needs)
    );
    (text, format!("Allow more? [y]es, {} more, [n]o, or how much: ", amount(offered(reached, needs))))
}

/// Returns the amount that a plain yes adds: the previous limit, so that the question is not repeated before each call.
fn offered(reached: &ReachedBudget, needs: u64) -> u64 {
    reached.limit.max(needs)
}

/// Parses an answer; `None` is a refusal.
fn agreed(answer: &str, reached: &ReachedBudget, needs: u64) -> Option<u64> {
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(offered(reached, needs)),
        amount => parse_amount(reached.budget, amount).filter(|more| *more >= needs),
    }
}

#[cfg(test)]
mod tests {
    use pintle_agent::{BudgetKind, BudgetScope};

    use super::*;

    #[test]
    fn answers_add_to_a_limit() {
        let reached = ReachedBudget::new(BudgetScope::Day, BudgetKind::CostMicros, 5_000_000, 4_900_000);
        for (answer, expected) in [
            ("y", Some(5_000_000)),
            (" YES ", Some(5_000_000)),
            ("2.50", Some(2_500_000)),
            ("$3", Some(3_000_000)),
            ("0.05", None),
            ("n", None),
            ("", None),
            ("later", None),
        ] {
            assert_eq!(agreed(answer, &reached, 100_000), expected, "{answer:?}");
        }
        let tokens = ReachedBudget::new(BudgetScope::Run, BudgetKind::Tokens, 1_000, 900);
        assert_eq!(agreed("20,000", &tokens, 9_000), Some(20_000));
        assert_eq!(agreed("y", &tokens, 9_000), Some(9_000), "enough for the next call");
        let (text, prompt) = limit_question(&reached, 100_000);
        assert_eq!(
            text,
            "the limit of the day is reached: $4.9000 of $5.0000, and the next call needs $0.1000 more"
        );
        assert_eq!(prompt, "Allow more? [y]es, $5.0000 more, [n]o, or how much: ");
    }
}
