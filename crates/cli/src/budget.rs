//! Budgets of a run, from the user's file, flags and the project, and requests to raise them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{Budget, BudgetSource, ReachedBudget};
use pintle_env::ExecutionEnvironment;
use pintle_governance::{
    Agreement, AtLimit, BudgetApprover, BudgetLimits, BudgetQuestion, SessionBudget, UnknownPrice,
};

use crate::approve::Prompter;
use crate::failure::{Failure, OrFailure as _};
use crate::policy::Project;
use crate::process_env::{self, ProcessEnv};
use crate::render::{amount_of_budget, parse_amount};
use crate::sessions::Sessions;

/// Limits that a run asks for. They replace limits of the user's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BudgetChoice {
    /// Input and output tokens of the session.
    pub(crate) tokens: Option<u64>,
    /// Cost of the session, in millionths of a US dollar.
    pub(crate) cost_micros: Option<u64>,
    /// Calls of tools of the session.
    pub(crate) tool_calls: Option<u64>,
    /// Time of the run.
    pub(crate) wall_time: Option<Duration>,
    /// Further limits, as `SCOPE.KEY=VALUE`.
    pub(crate) limits: Vec<String>,
    /// Reaction to a limit on tokens, cost or calls.
    pub(crate) at_limit: Option<AtLimit>,
    /// Reaction to a model without a price, under a limit on cost.
    pub(crate) unknown_price: Option<UnknownPrice>,
}

impl BudgetChoice {
    /// Replaces limits by the limits of the choice.
    fn apply(&self, limits: &mut BudgetLimits) -> Result<(), Failure> {
        let session = &mut limits.session;
        session.tokens = self.tokens.or(session.tokens);
        session.cost_micros = self.cost_micros.or(session.cost_micros);
        session.tool_calls = self.tool_calls.or(session.tool_calls);
        limits.run.wall_time = self.wall_time.or(limits.run.wall_time);
        for text in &self.limits {
            limits.set_limit(text).or_usage("--budget is wrong")?;
        }
        if let Some(at_limit) = self.at_limit {
            limits.at_limit = at_limit;
        }
        if let Some(unknown_price) = self.unknown_price {
            limits.unknown_price = unknown_price;
        }
        Ok(())
    }
}

/// Loads the limits of a run. Flags replace limits of the user's file, and project files can only lower them.
///
/// A file or a flag with mistakes is a usage failure: an unrecognised part could be a limit.
pub(crate) async fn load(
    choice: &BudgetChoice,
    environment: &dyn ExecutionEnvironment,
    process_env: &ProcessEnv,
) -> Result<BudgetLimits, Failure> {
    let mut limits = user_limits(process_env)?;
    choice.apply(&mut limits)?;
    for project in Project::read_all(environment).await? {
        if let Some((name, text)) = project.budget() {
            let of_project = BudgetLimits::parse(&name, text)
                .or_usage("the project's budget file is wrong, so nothing runs")?;
            limits = limits.lowered_to(&of_project);
        }
    }
    Ok(limits)
}

/// Returns the limits without cost limits, for a free model without a price.
pub(crate) fn without_cost(mut limits: BudgetLimits) -> BudgetLimits {
    for budget in [&mut limits.run, &mut limits.session, &mut limits.day] {
        budget.cost_micros = None;
    }
    limits
}

fn user_limits(process_env: &ProcessEnv) -> Result<BudgetLimits, Failure> {
    let Some(directory) = process_env.configuration_directory() else { return Ok(BudgetLimits::default()) };
    let path = directory.join("budget.toml");
    match process_env::read_text_if_there("budget file", &path)? {
        None => Ok(BudgetLimits::default()),
        Some(text) => BudgetLimits::parse(&path.display().to_string(), &text)
            .or_usage("the budget file is wrong, so nothing runs"),
    }
}

/// Returns the limits of the session itself. The time limit applies to each run.
pub(crate) fn of_session(limits: &BudgetLimits) -> Budget {
    let mut budget = limits.session;
    budget.wall_time = limits.run.wall_time.into_iter().chain(budget.wall_time).min();
    budget
}

/// Returns the source of the session's budget; `None` if it has only its own limits and no user is asked.
pub(crate) async fn source(
    limits: BudgetLimits,
    prompter: &Prompter,
    process_env: &ProcessEnv,
) -> Result<Option<Arc<dyn BudgetSource>>, Failure> {
    let asks = limits.at_limit == AtLimit::Ask || limits.unknown_price == UnknownPrice::Ask;
    let asks = asks && prompter.is_attended();
    let mut of_run = limits.run;
    of_run.wall_time = None;
    let has_day = limits.day != Budget::default();
    if !asks && of_run == Budget::default() && !has_day {
        return Ok(None);
    }
    let mut source = SessionBudget::new(limits);
    if has_day {
        source = source.with_ledgers(Sessions::open(process_env).await?.ledgers());
    }
    if asks {
        source = source.with_approver(Arc::new(prompter.clone()));
    }
    Ok(Some(Arc::new(source)))
}

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
    fn chosen_limits_replace_the_limits_of_the_file() {
        let mut limits =
            BudgetLimits::parse("f", "[session]\ntokens = 5\ncalls = 7\n[day]\ncost = 1\n").unwrap();
        let choice = BudgetChoice {
            tokens: Some(9),
            wall_time: Some(Duration::from_secs(3)),
            limits: vec!["day.cost=2".to_owned()],
            at_limit: Some(AtLimit::Ask),
            ..BudgetChoice::default()
        };
        choice.apply(&mut limits).unwrap();
        assert_eq!(limits.session, Budget::default().with_tokens(9).with_tool_calls(7));
        assert_eq!(limits.run, Budget::default().with_wall_time(Duration::from_secs(3)));
        assert_eq!((limits.day.cost_micros, limits.at_limit), (Some(2_000_000), AtLimit::Ask));
        let wrong = BudgetChoice { limits: vec!["day.cots=2".to_owned()], ..BudgetChoice::default() };
        assert!(wrong.apply(&mut limits).unwrap_err().message().contains("cost"));
    }

    #[test]
    fn limits_without_cost_keep_the_others() {
        let limited = Budget::default().with_cost_micros(5).with_tokens(7);
        let limits = BudgetLimits::default().with_run(limited).with_session(limited).with_day(limited);
        let rest = without_cost(limits);
        assert_eq!([rest.run, rest.session, rest.day], [Budget::default().with_tokens(7); 3]);
    }

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
