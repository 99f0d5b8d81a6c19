//! Sources of the limits of a session, for hints at the end of a run that has reached a limit.

use std::collections::BTreeMap;

use pintle_agent::{BudgetKind, BudgetScope, Limits, Money, ReachedBudget};
use pintle_governance::{BudgetPolicy, ScopedLimits};

use crate::layers::ValueOrigin;

/// Hint at the flags for a limit of unknown source.
const BUDGET_FLAGS: &str = "raise it with --max-tokens, --max-cost, --max-calls, --max-time or --budget";

/// Limits of a file.
#[derive(Clone, Debug)]
pub(crate) struct LimitFile {
    /// Name for messages.
    pub(crate) name: String,
    pub(crate) policy: BudgetPolicy,
}

/// Sources of the limits of a session.
#[derive(Clone, Debug, Default)]
pub struct LimitSources {
    /// Limits that replace the limits of the user's file.
    pub(crate) chosen: ScopedLimits,
    /// Budget file of the user.
    pub(crate) user: Option<LimitFile>,
    /// Budget files of projects, which lower limits.
    pub(crate) projects: Vec<LimitFile>,
    /// Budget of the grant, which no flag can exceed.
    pub(crate) grant: Option<Limits>,
    /// Origins of the settings, by path.
    pub(crate) origins: BTreeMap<&'static str, Vec<ValueOrigin>>,
}

impl LimitSources {
    /// Adds the origins of the settings, by path.
    #[must_use]
    pub fn with_origins(mut self, origins: BTreeMap<&'static str, Vec<ValueOrigin>>) -> Self {
        self.origins = origins;
        self
    }

    /// Returns a hint at the source of a reached limit of the budget, and at the way to raise it. `None` is a limit that no event
    /// has reported.
    pub(crate) fn budget_hint(&self, reached: Option<ReachedBudget>) -> String {
        let Some(reached) = reached else { return BUDGET_FLAGS.to_owned() };
        let is_reached = |limit: Option<u64>| limit == Some(reached.limit);
        let of_file = |file: &LimitFile| limit_in(&file.policy.limits, reached);
        let of_grant = self.grant.filter(|_| reached.scope == BudgetScope::Session);
        if is_reached(of_grant.and_then(|grant| limit_of(&grant, reached.budget))) {
            return "it is a limit of the grant, which flags cannot raise: use another grant".to_owned();
        }
        if let Some(LimitFile { name, .. }) = self.projects.iter().find(|file| is_reached(of_file(file))) {
            return format!("it is a limit of the project, which flags cannot raise: raise it in {name}");
        }
        let flag = flag_for(reached);
        let is_chosen = is_reached(limit_in(&self.chosen, reached));
        match self.user.as_ref().filter(|file| !is_chosen && is_reached(of_file(file))) {
            Some(LimitFile { name, .. }) => format!("raise it in {name}, or with {flag}"),
            None => format!("raise it with {flag}"),
        }
    }

    /// Returns a hint at the source of the limit on turns, and at the way to raise it.
    pub(crate) fn turn_hint(&self) -> String {
        self.setting_hint("limits.max_turns", "--max-turns")
    }

    /// Returns a hint at the source of the limit on rounds of tool calls, and at the way to raise it.
    pub(crate) fn round_hint(&self) -> String {
        self.setting_hint("limits.max_tool_rounds", "--max-tool-rounds")
    }

    fn setting_hint(&self, path: &str, flag: &str) -> String {
        match self.origins.get(path).and_then(|origins| origins.last()) {
            None | Some(ValueOrigin::Default | ValueOrigin::Flag(_)) => format!("raise it with {flag}"),
            Some(origin) => format!("raise it with {flag}: it is set by {origin}"),
        }
    }
}

/// Returns the limit of a budget on a quantity.
fn limit_of(budget: &Limits, kind: BudgetKind) -> Option<u64> {
    match kind {
        BudgetKind::Tokens => budget.tokens,
        BudgetKind::CostMicros => budget.cost.map(Money::micros),
        BudgetKind::ToolCalls => budget.tool_calls,
        BudgetKind::WallTimeMs => {
            budget.wall_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        }
        _ => None,
    }
}

/// Returns the limit in the scope and on the quantity of a reached one. A session applies the time limit of its runs.
fn limit_in(limits: &ScopedLimits, reached: ReachedBudget) -> Option<u64> {
    let ScopedLimits { run, session, day, .. } = limits;
    let limit = |budget: &Limits| limit_of(budget, reached.budget);
    match reached.scope {
        BudgetScope::Session if reached.budget == BudgetKind::WallTimeMs => {
            limit(run).into_iter().chain(limit(session)).min()
        }
        BudgetScope::Session => limit(session),
        BudgetScope::Run => limit(run),
        BudgetScope::Day => limit(day),
        _ => None,
    }
}

/// Returns the flag that sets a limit.
fn flag_for(reached: ReachedBudget) -> String {
    let key = match (reached.scope, reached.budget) {
        (BudgetScope::Session, BudgetKind::Tokens) => return "--max-tokens".to_owned(),
        (BudgetScope::Session, BudgetKind::CostMicros) => return "--max-cost".to_owned(),
        (BudgetScope::Session, BudgetKind::ToolCalls) => return "--max-calls".to_owned(),
        (BudgetScope::Session | BudgetScope::Run, BudgetKind::WallTimeMs) => return "--max-time".to_owned(),
        (_, BudgetKind::Tokens) => "tokens",
        (_, BudgetKind::CostMicros) => "cost",
        (_, BudgetKind::ToolCalls) => "calls",
        (_, _) => "time",
    };
    format!("--budget {}.{key}=LIMIT", reached.scope)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn file(name: &str, limits: &str) -> LimitFile {
        LimitFile { name: name.to_owned(), policy: BudgetPolicy::parse(name, limits).unwrap() }
    }

    #[test]
    fn a_hint_names_the_source_of_a_limit_of_the_budget() {
        let mut chosen = ScopedLimits::default();
        chosen.session.tokens = Some(50);
        chosen.run.wall_time = Some(Duration::from_secs(1));
        let sources = LimitSources {
            chosen,
            user: Some(file("/u/budget.toml", "[session]\ntokens = 70\ncalls = 7\n[day]\ncalls = 9\n")),
            projects: vec![file(".pintle/budget.toml", "[session]\ncalls = 3\n")],
            grant: Some(Limits::default().with_tokens(10).with_tool_calls(2)),
            origins: BTreeMap::new(),
        };
        use BudgetKind::{CostMicros, Tokens, ToolCalls, WallTimeMs};
        use BudgetScope::{Day, Run, Session};
        for (scope, kind, limit, expected) in [
            (Session, Tokens, 10, "it is a limit of the grant, which flags cannot raise: use another grant"),
            (
                Session,
                ToolCalls,
                3,
                "it is a limit of the project, which flags cannot raise: raise it in .pintle/budget.toml",
            ),
            (Session, Tokens, 50, "raise it with --max-tokens"),
            (Session, WallTimeMs, 1_000, "raise it with --max-time"),
            (Session, ToolCalls, 7, "raise it in /u/budget.toml, or with --max-calls"),
            (Day, ToolCalls, 9, "raise it in /u/budget.toml, or with --budget day.calls=LIMIT"),
            (Run, CostMicros, 5, "raise it with --budget run.cost=LIMIT"),
            // A grant limits sessions.
            (Run, ToolCalls, 2, "raise it with --budget run.calls=LIMIT"),
        ] {
            let reached = ReachedBudget::new(scope, kind, limit, 0);
            assert_eq!(sources.budget_hint(Some(reached)), expected, "{reached:?}");
        }
        assert_eq!(sources.budget_hint(None), BUDGET_FLAGS);
    }

    #[test]
    fn a_hint_names_the_source_of_a_limit_on_turns() {
        let sources = |origin| {
            LimitSources::default().with_origins(BTreeMap::from([("limits.max_turns", vec![origin])]))
        };
        let of_file = ValueOrigin::File { name: "/p/.pintle/config.toml".into(), line: 3, profile: None };
        for (origin, expected) in [
            (ValueOrigin::Default, "raise it with --max-turns"),
            (ValueOrigin::Flag("--max-turns".into()), "raise it with --max-turns"),
            (of_file, "raise it with --max-turns: it is set by /p/.pintle/config.toml:3"),
        ] {
            assert_eq!(sources(origin).turn_hint(), expected);
        }
        assert_eq!(LimitSources::default().round_hint(), "raise it with --max-tool-rounds");
    }
}
