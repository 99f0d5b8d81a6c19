//! Budgets of a run, from the user's file, flags and the project, and the source that its session draws on.

use std::sync::Arc;

use pintle_agent::{Budget, BudgetSource};
use pintle_env::ExecutionEnvironment;
use pintle_governance::{AtLimit, BudgetApprover, BudgetLimits, SessionBudget, UnknownPrice};

use crate::args::BudgetArgs;
use crate::attendant::Attendant;
use crate::failure::{Failure, OrFailure as _};
use crate::policy::Project;
use crate::process_env::{self, ProcessEnv};
use crate::sessions::Sessions;

/// Loads the limits of a run. Flags replace limits of the user's file, and project files can only lower them.
///
/// A file or a flag with mistakes is a usage failure: an unrecognised part could be a limit.
pub(crate) async fn load(
    args: &BudgetArgs,
    environment: &dyn ExecutionEnvironment,
    process_env: &ProcessEnv,
) -> Result<BudgetLimits, Failure> {
    let mut limits = user_limits(process_env)?;
    args.apply(&mut limits)?;
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
    attendant: &Arc<dyn Attendant>,
    process_env: &ProcessEnv,
) -> Result<Option<Arc<dyn BudgetSource>>, Failure> {
    let asks = limits.at_limit == AtLimit::Ask || limits.unknown_price == UnknownPrice::Ask;
    let asks = asks && attendant.is_attended();
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
        source = source.with_approver(Arc::clone(attendant) as Arc<dyn BudgetApprover>);
    }
    Ok(Some(Arc::new(source)))
}

#[cfg(test)]
mod tests {
    use pintle_agent::{BudgetRequest, Principal, SessionId};

    use super::*;
    use crate::attendant::FakeAttendant;

    #[test]
    fn limits_without_cost_keep_the_others() {
        let limited = Budget::default().with_cost_micros(5).with_tokens(7);
        let limits = BudgetLimits::default().with_run(limited).with_session(limited).with_day(limited);
        let rest = without_cost(limits);
        assert_eq!([rest.run, rest.session, rest.day], [Budget::default().with_tokens(7); 3]);
    }

    #[tokio::test]
    async fn attendant_is_asked_at_a_limit_if_a_user_can_be_asked() {
        let process_env = ProcessEnv::with([]);
        let ask = BudgetLimits::default().with_at_limit(AtLimit::Ask);
        let stop = BudgetLimits::default();
        let [attended, unattended] = [FakeAttendant::attended(["70"]), FakeAttendant::unattended()]
            .map(|attendant| Arc::new(attendant) as Arc<dyn Attendant>);
        for (limits, attendant, has_source) in
            [(ask, &attended, true), (ask, &unattended, false), (stop, &attended, false)]
        {
            let source = source(limits, attendant, &process_env).await.unwrap();
            assert_eq!(source.is_some(), has_source, "{limits:?}, {attendant:?}");
        }
        let mut request = BudgetRequest::new(SessionId::new("a"));
        (request.has, request.wants) = (Budget::default().with_tokens(0), Budget::default().with_tokens(150));
        let limits = ask.with_run(Budget::default().with_tokens(100));
        for (attendant, by) in [(&attended, Some(Principal::new("fake"))), (&unattended, None)] {
            let source = source(limits, attendant, &process_env).await.unwrap().unwrap();
            let answer = source.more(&request).await;
            assert_eq!((answer.short.is_none(), answer.by.clone()), (by.is_some(), by), "{answer:?}");
        }
    }
}
