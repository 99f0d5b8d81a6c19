//! Budgets of a run, from the user's file, flags and the project, and the source that its session draws on.

use std::sync::Arc;

use pintle_agent::{BudgetSource, Limits, ProviderProfile};
use pintle_governance::{AtLimit, BudgetApprover, BudgetPolicy, ScopedLimits, SessionBudget, UnknownPrice};
use pintle_llm::{ModelInfo, Usage};

use crate::attendant::Attendant;
use crate::failure::{Failure, OrFailure as _};
use crate::limit_sources::{LimitFile, LimitSources};
use crate::policy::Project;
use crate::process_env::{self, ProcessEnv};
use crate::sessions::Sessions;
use crate::spec::{Breadth as _, LimitSpec, SessionSpec};

/// Limits that a run asks for. They replace limits of the user's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetChoice {
    /// Limits by scope.
    pub limits: ScopedLimits,
    /// Reaction to a limit on tokens, cost or calls; `None` for the reaction of the file.
    pub at_limit: Option<AtLimit>,
    /// Reaction to a model without a price, under a limit on cost; `None` for the reaction of the file.
    pub unknown_price: Option<UnknownPrice>,
}

impl From<&SessionSpec> for BudgetChoice {
    fn from(spec: &SessionSpec) -> Self {
        let LimitSpec { budget, at_limit, unknown_price, .. } = spec.limits;
        Self { limits: budget, at_limit, unknown_price }
    }
}

impl BudgetChoice {
    /// Replaces limits by the limits of the choice.
    pub fn apply(&self, policy: &mut BudgetPolicy) {
        policy.limits = self.limits.over(&policy.limits);
        policy.at_limit = self.at_limit.unwrap_or(policy.at_limit);
        policy.unknown_price = self.unknown_price.unwrap_or(policy.unknown_price);
    }
}

/// Loads the limits of a run in these projects, and their sources. Flags replace limits of the user's file. `run_limit`, which
/// the program sets, and project files can only lower them.
///
/// A file with mistakes is a usage failure: an unrecognised part could be a limit.
pub fn load(
    choice: &BudgetChoice,
    run_limit: &Limits,
    projects: &[Project],
    process_env: &ProcessEnv,
) -> Result<(BudgetPolicy, LimitSources), Failure> {
    let user = user_limits(process_env)?;
    let mut policy = user.as_ref().map(|file| file.policy).unwrap_or_default();
    let mut sources = LimitSources { chosen: choice.limits, user, ..LimitSources::default() };
    choice.apply(&mut policy);
    policy.limits.run = policy.limits.run.lower(run_limit);
    for project in projects {
        if let Some((name, text)) = project.budget() {
            let of_project = BudgetPolicy::parse(&name, text)
                .or_usage("the project's budget file is wrong, so nothing runs")?;
            policy = policy.lowered_to(&of_project);
            sources.projects.push(LimitFile { name, policy: of_project });
        }
    }
    Ok((policy, sources))
}

/// Refuses a model without a price under a limit on cost, unless the user can be asked about that.
///
/// Limits of projects are unknown before the environment is connected. The session reports that it cannot enforce them.
pub fn require_price(
    choice: &BudgetChoice,
    profile: &ProviderProfile,
    attendant: &Arc<dyn Attendant>,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let is_priced = |pricing: &ModelInfo| pricing.cost(&Usage::new(1, 1)).is_some();
    // A profile without prices is of a model that costs nothing.
    if profile.is_unpriced || profile.pricing.as_deref().is_some_and(is_priced) {
        return Ok(());
    }
    let (policy, _sources) = load(choice, &Limits::default(), &[], process_env)?;
    let ScopedLimits { run, session, day, .. } = policy.limits;
    let is_limited = [run, session, day].iter().any(|limits| limits.cost.is_some());
    if !is_limited || policy.unknown_price == UnknownPrice::Ask && attendant.is_attended() {
        return Ok(());
    }
    let message =
        format!("the limit on cost cannot be enforced, since the price of `{}` is unknown", profile.model);
    Err(Failure::usage(message).with_hint("add its price to the catalog, or limit tokens instead"))
}

/// Returns the limits without cost limits, for a free model without a price.
pub(crate) fn without_cost_limits(mut policy: BudgetPolicy) -> BudgetPolicy {
    let ScopedLimits { run, session, day, .. } = &mut policy.limits;
    for limits in [run, session, day] {
        limits.cost = None;
    }
    policy
}

/// Reads the budget file of the user; `None` without one.
fn user_limits(process_env: &ProcessEnv) -> Result<Option<LimitFile>, Failure> {
    let Some(directory) = process_env.configuration_directory() else { return Ok(None) };
    let path = directory.join("budget.toml");
    let Some(text) = process_env::read_text_if_exists("budget file", &path)? else { return Ok(None) };
    let name = path.display().to_string();
    let policy = BudgetPolicy::parse(&name, &text).or_usage("the budget file is wrong, so nothing runs")?;
    Ok(Some(LimitFile { name, policy }))
}

/// Returns the limits of the session itself. The time limit applies to each run.
pub(crate) fn session_budget(policy: &BudgetPolicy) -> Limits {
    let mut budget = policy.limits.session;
    budget.wall_time = policy.limits.run.wall_time.into_iter().chain(budget.wall_time).min();
    budget
}

/// Returns the source of the session's budget; `None` if it has only its own limits and no user is asked.
pub(crate) async fn create_source(
    policy: BudgetPolicy,
    attendant: &Arc<dyn Attendant>,
    process_env: &ProcessEnv,
) -> Result<Option<Arc<dyn BudgetSource>>, Failure> {
    let asks = policy.at_limit == AtLimit::Ask || policy.unknown_price == UnknownPrice::Ask;
    let asks = asks && attendant.is_attended();
    let mut of_run = policy.limits.run;
    of_run.wall_time = None;
    let has_day = policy.limits.day != Limits::default();
    if !asks && of_run == Limits::default() && !has_day {
        return Ok(None);
    }
    let mut source = SessionBudget::new(policy);
    if has_day {
        source = source.with_ledgers(Sessions::open(process_env).await?.ledgers());
    }
    if asks {
        source = source.with_approver(Arc::clone(attendant) as Arc<dyn BudgetApprover>);
    }
    Ok(Some(Arc::new(source)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pintle_agent::{BudgetRequest, Money, Principal, SessionId};

    use super::*;
    use crate::attendant::FakeAttendant;
    use crate::failure::FailureKind;

    #[test]
    fn chosen_limits_replace_the_limits_of_the_file() {
        let mut policy =
            BudgetPolicy::parse("f", "[session]\ntokens = 5\ncalls = 7\n[day]\ncost = 1\n").unwrap();
        let mut spec = SessionSpec::default();
        spec.limits.budget.session.tokens = Some(9);
        spec.limits.budget.run.wall_time = Some(Duration::from_secs(3));
        let cost = Some(Money::from_micros(2_000_000));
        spec.limits.budget.day.cost = cost;
        spec.limits.at_limit = Some(AtLimit::Ask);
        BudgetChoice::from(&spec).apply(&mut policy);
        let limits = policy.limits;
        assert_eq!(limits.session, Limits::default().with_tokens(9).with_tool_calls(7));
        assert_eq!(limits.run, Limits::default().with_wall_time(Duration::from_secs(3)));
        assert_eq!((limits.day.cost, policy.at_limit), (cost, AtLimit::Ask));
        BudgetChoice::from(&SessionSpec::default()).apply(&mut policy);
        assert_eq!(policy.at_limit, AtLimit::Ask, "the file decides without a setting");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes the file of a user")]
    fn the_limit_of_a_program_only_lowers_the_limits_of_the_user() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join(".config/pintle");
        std::fs::create_dir_all(&directory).unwrap();
        let text = "[run]\ntokens = 5\ncalls = 7\n[session]\ntokens = 9\n";
        std::fs::write(directory.join("budget.toml"), text).unwrap();
        let process_env = ProcessEnv::from_variables([("HOME", home.path().as_os_str())]);
        let program = Limits::default().with_tokens(6).with_tool_calls(3).with_cost(Money::from_micros(4));
        for (chosen, expected) in [(None, 5), (Some(2), 2), (Some(8), 6)] {
            let mut spec = SessionSpec::default();
            spec.limits.budget.run.tokens = chosen;
            let (policy, _sources) = load(&BudgetChoice::from(&spec), &program, &[], &process_env).unwrap();
            let limits = policy.limits;
            let run =
                Limits::default().with_tokens(expected).with_tool_calls(3).with_cost(Money::from_micros(4));
            assert_eq!((limits.run, limits.session), (run, Limits::default().with_tokens(9)), "{chosen:?}");
        }
    }

    #[test]
    fn limits_without_cost_keep_the_others() {
        let limited = Limits::default().with_cost(Money::from_micros(5)).with_tokens(7);
        let policy = BudgetPolicy::default().with_run(limited).with_session(limited).with_day(limited);
        let rest = without_cost_limits(policy).limits;
        assert_eq!([rest.run, rest.session, rest.day], [Limits::default().with_tokens(7); 3]);
    }

    #[test]
    fn a_limit_on_cost_needs_a_price() {
        let process_env = ProcessEnv::from_variables([]);
        let [attended, unattended] = [FakeAttendant::attended(["y"]), FakeAttendant::unattended()]
            .map(|attendant| Arc::new(attendant) as Arc<dyn Attendant>);
        let known = ProviderProfile::anthropic("opus");
        let unknown = ProviderProfile::anthropic("claude-of-tomorrow");
        let scripted = unknown.clone().without_prices();
        let limited = |unknown_price| {
            let mut choice = BudgetChoice { unknown_price, ..BudgetChoice::default() };
            choice.limits.day.cost = Some(Money::from_micros(1));
            choice
        };
        let ask = limited(Some(UnknownPrice::Ask));
        for (choice, profile, attendant, is_allowed) in [
            (limited(None), &unknown, &attended, false),
            (limited(None), &known, &unattended, true),
            (limited(None), &scripted, &unattended, true),
            (BudgetChoice::default(), &unknown, &unattended, true),
            (ask, &unknown, &attended, true),
            (ask, &unknown, &unattended, false),
        ] {
            let required = require_price(&choice, profile, attendant, &process_env);
            assert_eq!(required.is_ok(), is_allowed, "{choice:?} {}", profile.model);
            if let Err(failure) = required {
                assert_eq!(failure.kind(), FailureKind::Usage);
                assert!(failure.message().contains("the price of `claude-of-tomorrow` is unknown"));
            }
        }
    }

    #[tokio::test]
    async fn attendant_is_asked_at_a_limit_if_a_user_can_be_asked() {
        let process_env = ProcessEnv::from_variables([]);
        let ask = BudgetPolicy::default().with_at_limit(AtLimit::Ask);
        let stop = BudgetPolicy::default();
        let [attended, unattended] = [FakeAttendant::attended(["70"]), FakeAttendant::unattended()]
            .map(|attendant| Arc::new(attendant) as Arc<dyn Attendant>);
        for (limits, attendant, has_source) in
            [(ask, &attended, true), (ask, &unattended, false), (stop, &attended, false)]
        {
            let source = create_source(limits, attendant, &process_env).await.unwrap();
            assert_eq!(source.is_some(), has_source, "{limits:?}, {attendant:?}");
        }
        let mut request = BudgetRequest::new(SessionId::new("a"));
        (request.has, request.wants) = (Limits::default().with_tokens(0), Limits::default().with_tokens(150));
        let limits = ask.with_run(Limits::default().with_tokens(100));
        for (attendant, by) in [(&attended, Some(Principal::new("fake"))), (&unattended, None)] {
            let source = create_source(limits, attendant, &process_env).await.unwrap().unwrap();
            let answer = source.more(&request).await;
            assert_eq!((answer.short.is_none(), answer.by.clone()), (by.is_some(), by), "{answer:?}");
        }
    }
}
