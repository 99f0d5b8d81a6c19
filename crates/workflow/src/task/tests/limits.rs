//! Budgets of tasks and limits of sessions.

use super::*;

#[test]
fn a_budget_ends_what_costs_and_not_what_proves() {
    let budget = TaskBudget { cost: Some(Money::from_dollars(1.0)), ..TaskBudget::default() };
    let with = |rounds: u32, costs: fn(&TaskStep) -> f64| {
        let review = ReviewPlan { rounds, ..ReviewPlan::default() };
        let mut played = PlayedTask::new(
            contract()
                .with_budget(budget)
                .with_review(review)
                .with_candidates(vec![CandidatePlan::default(); 2]),
        );
        played.play(|step| (right(step).0, costs(step)));
        format!("{}: {}\n", played.end(), played.steps.join(" "))
    };
    let said = [
        with(1, |step| if step.id.kind == StepKind::Anchor { 1.0 } else { 0.0 }),
        with(1, |step| if step.id.kind == StepKind::Work { 0.5 } else { 0.0 }),
        with(0, |step| if step.id.kind == StepKind::Work { 1.0 } else { 0.0 }),
        with(1, |_| 0.1),
    ];
    insta::assert_snapshot!(said.concat(), @r"
    Limit { limit: Usd, best: None }: baseline-1 anchor-1
    Limit { limit: Usd, best: Some(0) }: baseline-1 anchor-1 work-0-1 evidence-0-1 work-1-1 evidence-1-1
    done by 0: baseline-1 anchor-1 work-0-1 evidence-0-1
    done by 0: baseline-1 anchor-1 work-0-1 evidence-0-1 work-1-1 evidence-1-1 review-0-1
    ");
    // A step that has begun stays wanted, even after the other one has used up the budget.
    let mut played =
        PlayedTask::new(contract().with_budget(budget).with_candidates(vec![CandidatePlan::default(); 2]));
    played.play(|step| match step.id.kind {
        StepKind::Work => (StepOutput::failed("unused"), 0.0),
        _ => right(step),
    });
    assert!(played.end().starts_with("Blocked"), "{}", played.end());
    let mut task =
        Task::new(contract().with_budget(budget).with_candidates(vec![CandidatePlan::default(); 2])).unwrap();
    for output in [baseline(), anchor(1)] {
        let step = task.pending().steps.remove(0).id;
        task.apply(TaskInput::StepFinished(Box::new(StepResult {
            step,
            output,
            spent: WorkCost::default(),
        })));
    }
    let [one, other] = &task.pending().steps[..] else { unreachable!() };
    let StepOrder::Work { limits, .. } = &one.order else { unreachable!() };
    assert_eq!(limits.cost, Some(Money::from_dollars(0.5)), "each has its share");
    let (one, other) = (one.id.clone(), other.id.clone());
    assert!(
        task.apply(TaskInput::StepStarted(one.clone())) && task.apply(TaskInput::StepStarted(other.clone()))
    );
    assert!(!task.apply(TaskInput::StepStarted(one.clone())), "it has begun");
    let spent = WorkCost { cost: Money::from_dollars(5.0), ..WorkCost::default() };
    task.apply(TaskInput::StepFinished(Box::new(StepResult {
        step: one,
        output: worked(WorkEnd::Limit),
        spent,
    })));
    assert!(task.pending().steps.iter().any(|step| step.id == other), "{:?}", task.pending());
}

#[test]
fn a_share_that_a_step_under_way_holds_is_given_to_no_other() {
    let budget = TaskBudget { cost: Some(Money::from_dollars(10.0)), tokens: Some(1_000), minutes: None };
    let contract =
        contract().with_budget(budget).with_candidates(vec![CandidatePlan::default(); 2]).with_attempts(3);
    let mut played = PlayedTask::new(contract);
    let StepOrder::Baseline = played.task.pending().steps[0].order else { unreachable!() };
    played.finish(played.task.pending().steps[0].id.clone(), baseline(), 0.0);
    let [anchoring] = &played.task.pending().steps[..] else { unreachable!() };
    assert_eq!(
        anchoring.order.limits().unwrap().cost,
        Some(Money::from_dollars(10.0)),
        "a session that proposes has a limit, too"
    );
    played.finish(anchoring.id.clone(), anchor(1), 0.0);
    let ids: Vec<StepId> = played.task.pending().steps.into_iter().map(|step| step.id).collect();
    for id in &ids {
        assert!(played.task.apply(TaskInput::StepStarted(id.clone())));
    }
    let spent = WorkCost { cost: Money::from_dollars(4.9), tokens: 400, ..WorkCost::default() };
    let (step, output) = (ids[0].clone(), StepOutput::failed("no"));
    played.task.apply(TaskInput::StepFinished(Box::new(StepResult { step, output, spent })));
    let limits: Vec<_> =
        played.task.pending().steps.iter().map(|step| step.order.limits().unwrap()).collect();
    let costs: Vec<Money> = limits.iter().map(|limits| limits.cost.unwrap()).collect();
    assert_eq!(costs, [0.1, 5.0].map(Money::from_dollars));
    assert_eq!(limits.iter().map(|limits| limits.tokens.unwrap()).collect::<Vec<_>>(), [90, 490]);
}

#[test]
fn a_task_whose_candidates_stop_at_their_limits_is_at_its_limit() {
    let budget =
        TaskBudget { cost: Some(Money::from_dollars(1.0)), minutes: Some(60), ..TaskBudget::default() };
    let mut played = PlayedTask::new(contract().with_budget(budget));
    played.play(|step| match step.id.kind {
        StepKind::Work => (worked(WorkEnd::Limit), 0.9),
        StepKind::Evidence => (evidence(3, 1), 0.0),
        _ => (right(step).0, 0.0),
    });
    assert_eq!(played.end(), "Limit { limit: Usd, best: None }");
}

#[test]
fn a_session_at_its_budget_without_an_answer_ends_the_task_at_its_limit() {
    let of_contract =
        TaskBudget { cost: Some(Money::from_dollars(1.0)), minutes: Some(60), ..TaskBudget::default() };
    for (kind, steps, best) in [
        (StepKind::Anchor, "baseline-1 anchor-1", "None"),
        (StepKind::Review, "baseline-1 anchor-1 work-0-1 evidence-0-1 review-0-1", "Some(0)"),
    ] {
        for (budget, limit) in [(TaskBudget::default(), "Session"), (of_contract, "Usd")] {
            let mut played = PlayedTask::new(contract().with_budget(budget));
            played.play(|step| match step.id.kind == kind {
                true => (StepOutput::AtLimit { session: "s".to_owned() }, 0.2),
                false => (right(step).0, 0.1),
            });
            assert_eq!(played.end(), format!("Limit {{ limit: {limit}, best: {best} }}"));
            assert_eq!(played.steps.join(" "), steps, "nothing is tried again");
        }
    }
    // The budget of a candidate's session, which the contract does not contain.
    let mut played = PlayedTask::new(contract());
    played.play(|step| match step.id.kind {
        StepKind::Work => (worked(WorkEnd::Limit), 0.0),
        StepKind::Evidence => (evidence(3, 1), 0.0),
        _ => right(step),
    });
    assert_eq!(played.end(), "Limit { limit: Session, best: None }");
}

#[test]
fn a_candidate_at_a_limit_is_out_for_the_true_reason() {
    for (end, name, reason) in [
        (WorkEnd::Limit, "limit", "its share of the budget covers no further call"),
        (WorkEnd::TurnLimit, "turn_limit", "its limit on turns is reached"),
        (WorkEnd::ContextFull, "context_full", "its conversation does not fit the model's context window"),
        (WorkEnd::OutputLimit, "output_limit", "its response was cut off by the output limit"),
        (WorkEnd::Loop, "loop", "it repeated the same calls, and was stopped"),
    ] {
        assert_eq!(serde_json::to_value(end).unwrap(), name, "the recorded name");
        let mut played = PlayedTask::new(contract().with_attempts(3));
        played.play(|step| match step.id.kind {
            StepKind::Work => (worked(end), 0.0),
            StepKind::Evidence => (evidence(3, 1), 0.0),
            _ => (right(step).0, 0.0),
        });
        let candidate = &played.task.candidates()[0];
        assert_eq!((candidate.attempts().len(), candidate.stop_reason()), (1, Some(reason)), "{name}");
    }
}
