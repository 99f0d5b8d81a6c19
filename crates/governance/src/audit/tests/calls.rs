//! Histories of single calls.

use pintle_agent::protocol::ApprovalEnding;
use pintle_agent::{CallAnswer, EndAnswer, HookSession, Hooks, Limits, TurnLimits};
use pintle_tools::ToolErrorKind;
use pintle_tools::gate::{Judgement, Permission};
use pintle_tools::pipeline::PreparedCall;

use super::*;

fn kinds(call: &CallHistory) -> Vec<&str> {
    let moments: Vec<EventStamp> = call.events.iter().map(|event| event.moment).collect();
    assert!(moments.is_sorted(), "{moments:?}");
    call.events.iter().map(|event| event.kind.as_str()).collect()
}

#[tokio::test]
async fn allowed_call_reads_back_from_intent_to_result() {
    let call = one_call("note", nobody).await;
    assert_eq!((call.call_id.as_str(), call.outcome), ("c1", CallOutcome::Succeeded));
    let intent = call.intent.as_ref().unwrap();
    assert_eq!((intent.text.as_str(), intent.source, intent.run), ("go", InputSource::Submitted, Some(0)));
    let proposal = &call.proposal;
    assert_eq!((proposal.tool.as_str(), proposal.effect), ("note", Some(Effect::Write)));
    assert_eq!((proposal.model.as_deref(), &proposal.arguments), (Some("claude-opus-4-6"), &json!({"x": 1})));
    let step = call.decisive_step().unwrap();
    assert_eq!((step.gate.as_str(), step.rule.as_deref()), ("rules", Some("allow note (rules.toml:2)")));
    assert!(call.approvals.is_empty() && call.late_decisions.is_empty());
    let execution = call.execution.as_ref().unwrap();
    assert_eq!((execution.starts.len(), execution.output.as_ref().unwrap().text.as_str()), (1, "noted"));
    assert!(execution.ended_at.unwrap() >= execution.starts[0] && execution.duration_ms.is_some());
    let edit = &execution.changes[0];
    assert_eq!((edit.path.as_str(), edit.added, edit.removed), ("notes", 2, 1));
    let result = call.result.as_ref().unwrap();
    assert_eq!((result.error, result.text.as_str()), (None, "noted"));
    assert_eq!(kinds(&call), ["MODEL_RESPONSE", "CALL_JUDGED", "TOOL_CALL_START", "TOOL_CALL_END"]);
    assert_eq!(proposal.moment.unwrap(), call.events[0].moment);
}

#[tokio::test]
async fn denied_call_names_the_rule_and_did_not_run() {
    let call = one_call("forbidden", nobody).await;
    assert_eq!((call.outcome, call.execution.as_ref()), (CallOutcome::Denied, None));
    assert_eq!(call.decisive_step().unwrap().rule.as_deref(), Some("deny forbidden (rules.toml:4)"));
    let result = call.result.unwrap();
    assert_eq!(result.error, Some(ToolErrorKind::Denied));
    assert!(result.text.contains("the rule `forbidden` of rules.toml:4 names it"), "{}", result.text);
}

#[tokio::test]
async fn decisions_of_people_are_part_of_the_call() {
    let approve = |handle: &SessionHandle, id: &str| handle.decide(id, Decision::Approve).unwrap();
    let approved = one_call("run", approve).await;
    let deny = |handle: &SessionHandle, id: &str| {
        handle.decide(id, Decision::Deny { reason: Some("not now".to_owned()) }).unwrap();
    };
    let denied = one_call("run", deny).await;
    let interrupt = |handle: &SessionHandle, _: &str| handle.stop_turn().unwrap();
    let cancelled = one_call("run", interrupt).await;
    let cases = [
        (approved, CallOutcome::Succeeded, ApprovalEnding::Allowed, Some("jan"), None),
        (denied, CallOutcome::Rejected, ApprovalEnding::Denied, Some("jan"), Some("not now")),
        (cancelled, CallOutcome::NotRun, ApprovalEnding::Cancelled, None, None),
    ];
    for (call, outcome, ending, by, reason) in cases {
        assert_eq!(call.outcome, outcome, "{call:?}");
        let [approval] = call.approvals.as_slice() else { panic!("{call:?}") };
        assert_eq!(approval.arguments, json!({"x": 1}));
        assert!(approval.reason.contains("the rule `run`") && approval.ticket.len() == 32, "{approval:?}");
        let decision = approval.decision.as_ref().unwrap();
        assert_eq!((decision.ending, decision.approved), (Some(ending), ending == ApprovalEnding::Allowed));
        assert_eq!(decision.by.as_ref().map(Principal::as_str), by);
        assert_eq!(decision.reason.as_deref(), reason);
        assert!(approval.requested < decision.moment);
        assert_eq!(call.execution.is_some(), outcome == CallOutcome::Succeeded);
        assert_eq!(call.decisive_step().unwrap().rule.as_deref(), Some("ask run (rules.toml:3)"));
    }
}

/// Hook that lets `build` run with other arguments, and sends the model on once.
#[derive(Debug)]
struct Lint;

#[async_trait]
impl Hooks for Lint {
    async fn before_call(&self, _: &HookSession, call: &PreparedCall, _: &Judgement) -> CallAnswer {
        if call.name() != "build" {
            return CallAnswer::default();
        }
        let answer = CallAnswer::judge(Permission::Allow, None).with_hook("lint");
        answer.with_arguments(Some(json!({"x": 3})))
    }

    async fn before_end(&self, _: &HookSession, _: &str, sent_on: u32) -> EndAnswer {
        if sent_on == 0 { EndAnswer::send_on("mend the lints") } else { EndAnswer::default() }
    }
}

#[tokio::test]
async fn answers_of_hooks_are_part_of_the_call() {
    let build = calling(&[("c1", "build", json!({"x": 1}))]);
    let audit = audit_of(&record(builder(vec![build]).hooks(Lint), nobody).await);
    let call = audit.call("c1").unwrap();
    assert_eq!((call.outcome, call.arguments()), (CallOutcome::Succeeded, &json!({"x": 3})));
    let [judgement] = call.judgements.as_slice() else { panic!("{call:?}") };
    let verdicts: Vec<_> = judgement.steps.steps().iter().map(|step| step.permission).collect();
    assert_eq!(verdicts, [Permission::Ask, Permission::Allow], "{judgement:?}");
    assert_eq!(judgement.permission, Permission::Allow);
    let step = call.decisive_step().unwrap();
    assert!(step.answers && step.rule.as_deref() == Some("lint"), "{step:?}");
    assert_eq!(judgement.changed.as_ref().unwrap().by.as_ref().map(Principal::as_str), Some("hook lint"));
    let sent_on = audit.inputs.iter().find(|input| input.source == InputSource::Hook).unwrap();
    assert_eq!((sent_on.text.as_str(), sent_on.run), ("mend the lints", Some(0)));
}

#[tokio::test]
async fn request_that_nobody_answers_expires() {
    let mut limits = TurnLimits::default();
    limits.approval_timeout = Some(Duration::from_millis(20));
    let builder = builder(vec![calling(&[("c1", "run", json!({}))])])
        .with_config(SessionConfig::default().with_limits(limits));
    let audit = audit_of(&record(builder, |_, _| {}).await);
    let call = audit.call("c1").unwrap();
    assert_eq!((call.outcome, call.execution.as_ref()), (CallOutcome::Expired, None));
    let decision = call.approvals[0].decision.as_ref().unwrap();
    assert_eq!((decision.ending, decision.by.as_ref()), (Some(ApprovalEnding::Expired), None));
}

#[tokio::test]
async fn changed_arguments_are_on_record_with_who_changed_them() {
    let change = |handle: &SessionHandle, id: &str| {
        handle.decide(id, Decision::Change { arguments: json!({"x": 2}) }).unwrap();
    };
    let call = one_call("run", change).await;
    assert_eq!(call.outcome, CallOutcome::Succeeded, "{call:?}");
    assert_eq!((&call.proposal.arguments, call.arguments()), (&json!({"x": 1}), &json!({"x": 2})));
    let changed = call.judgements[1].changed.as_ref().unwrap();
    assert_eq!((call.judgements.len(), changed.by.as_ref().map(Principal::as_str)), (2, Some("jan")));
    let decision = call.approvals[0].decision.as_ref().unwrap();
    assert_eq!(decision.ending, Some(ApprovalEnding::Superseded));
    let execution = call.execution.unwrap();
    assert_eq!((execution.exit_code, execution.output.unwrap().text.as_str()), (Some(7), "{\"x\":2}"));
    let result = call.result.unwrap().text;
    assert!(result.starts_with("[The arguments were changed by jan before the call ran"), "{result}");
    assert!(result.ends_with("{\"x\":2}"), "{result}");
}

#[tokio::test]
async fn second_decision_is_late() {
    let twice = |handle: &SessionHandle, id: &str| {
        handle.decide(id, Decision::Approve).unwrap();
        handle.decide(id, Decision::Deny { reason: None }).unwrap();
    };
    let call = one_call("run", twice).await;
    assert_eq!(call.outcome, CallOutcome::Succeeded);
    let [late] = call.late_decisions.as_slice() else { panic!("{call:?}") };
    assert!(!late.approved && late.reason.contains("decided on before"), "{late:?}");
}

#[tokio::test]
async fn failures_and_time_outs_have_their_kind() {
    let failed = one_call("fail", nobody).await;
    assert_eq!(failed.outcome, CallOutcome::Failed);
    let result = failed.result.unwrap();
    assert_eq!(result.error, Some(ToolErrorKind::Failed));
    assert!(result.text.contains("it does not work"), "{result:?}");

    let slow = one_call("slow", nobody).await;
    assert_eq!(slow.outcome, CallOutcome::TimedOut);
    assert_eq!(slow.execution.unwrap().timeout_ms, Some(2_000));

    let unknown = one_call("nothing", nobody).await;
    assert_eq!((unknown.outcome, unknown.execution.as_ref()), (CallOutcome::Invalid, None));
    assert_eq!(unknown.proposal.effect, None);
}

#[tokio::test]
async fn call_beyond_the_budget_did_not_run() {
    let config = SessionConfig::default().with_budget(Limits::default().with_tool_calls(1));
    let calls = calling(&[("c1", "look", json!({})), ("c2", "look", json!({}))]);
    let record = record(builder(vec![calls]).with_config(config), nobody).await;
    let audit = audit_of(&record);
    let outcomes: Vec<CallOutcome> = audit.calls.iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, [CallOutcome::Succeeded, CallOutcome::NotRun]);
    let [limit] = audit.limits.as_slice() else { panic!("{:?}", audit.limits) };
    assert!(matches!(limit.limit, ReachedLimit::Budget { limit: 1, spent: 1, .. }), "{limit:?}");
}

#[tokio::test]
async fn calls_with_one_id_are_told_apart() {
    let call = |x: u32| calling(&[("same", "look", json!({ "x": x }))]);
    let audit = audit(vec![call(1), call(2)], nobody).await;
    let found: Vec<_> = audit
        .calls
        .iter()
        .map(|call| (call.call_id.as_str(), call.proposal.renamed_from.as_deref(), &call.proposal.arguments))
        .collect();
    assert_eq!(found, [("same", None, &json!({"x": 1})), ("same_2", Some("same"), &json!({"x": 2}))]);
    assert!(audit.calls.iter().all(|call| call.execution.is_some() && call.result.is_some()));
    assert!(audit.notices.iter().any(|notice| notice.kind == NoticeKind::Repair));
}

#[tokio::test]
async fn call_that_waits_when_the_record_ends_is_pending() {
    let builder = builder(vec![calling(&[("c1", "run", json!({}))])]);
    let session = builder.build().unwrap();
    let mut run = session.submit("go");
    while !matches!(run.next().await.unwrap().kind, EventKind::ApprovalRequested { .. }) {}
    let audit = audit_of(&session.record().unwrap());
    let call = audit.call("c1").unwrap();
    assert_eq!((call.outcome, call.result.as_ref()), (CallOutcome::AwaitingDecision, None));
    assert_eq!(call.approvals[0].decision, None);
    assert_eq!(audit.state, SessionState::Processing);
}

/// A process dies while a call runs, and another one resumes its session.
#[tokio::test]
async fn interrupted_call_says_what_the_resumed_session_decided() {
    let hanging = || calling(&[("c1", "hang", json!({})), ("c2", "look", json!({}))]);
    let session = builder(vec![hanging()]).build().unwrap();
    let mut run = session.submit("go");
    let is_hanging =
        |kind: &EventKind| matches!(kind, EventKind::ToolCallStart { tool_name, .. } if tool_name == "hang");
    while !is_hanging(&run.next().await.unwrap().kind) {}
    let record = session.record().unwrap();
    drop((run, session));
    let call = audit_of(&record).call("c1").cloned().unwrap();
    assert_eq!((call.outcome, call.result), (CallOutcome::Running, None));

    let mut session = builder(Vec::new()).resume(record).build().unwrap();
    session.resumed().unwrap().await.unwrap();
    let audit = audit_of(&session.record().unwrap());
    let call = audit.call("c1").unwrap();
    assert_eq!(call.outcome, CallOutcome::Interrupted, "{call:?}");
    assert_eq!(call.recoveries[0].action, RecoveryAction::Interrupted);
    assert!(call.result.as_ref().unwrap().text.contains("Nobody knows whether it had its effect"));
    assert!(audit.notices.iter().any(|notice| notice.kind == NoticeKind::Resumed));
    let repeatable = audit.call("c2").unwrap();
    assert_eq!(repeatable.outcome, CallOutcome::Succeeded, "{repeatable:?}");
}
