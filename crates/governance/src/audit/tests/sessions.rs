//! Audits of whole sessions.

use pintle_agent::protocol::{InputKind, OutcomeStatus, SubagentStatus};
use pintle_agent::{Money, PolicyChange, SessionState};
use pintle_env::Redactions;

use super::*;

fn three_calls() -> Vec<Message> {
    let fetch = json!({"url": "https://docs.rs/x"});
    vec![calling(&[
        ("c1", "note", json!({})),
        ("c2", "forbidden", json!({})),
        ("c3", "fetch", fetch),
        ("c4", "note", json!({})),
    ])]
}

#[tokio::test]
async fn summary_counts_calls_files_and_hosts() {
    let audit = audit(three_calls(), nobody).await;
    let count = |tool: &str, outcome, calls| ToolCount { tool: tool.to_owned(), outcome, calls };
    assert_eq!(
        audit.summary.calls,
        [
            count("fetch", CallOutcome::Succeeded, 1),
            count("forbidden", CallOutcome::Denied, 1),
            count("note", CallOutcome::Succeeded, 2),
        ]
    );
    let [refused] = audit.summary.refused.as_slice() else { panic!("{:?}", audit.summary) };
    assert_eq!(refused.rule.as_deref(), Some("rules: deny forbidden (rules.toml:4)"));
    let file = FileCount { path: "notes".to_owned(), calls: 2, added: 4, removed: 2 };
    assert_eq!(audit.summary.files, [file]);
    assert_eq!(audit.summary.hosts, [HostCount { host: "docs.rs".to_owned(), calls: 1 }]);
    assert_eq!((audit.state, audit.session.working_directory.as_str()), (SessionState::Closed, "/w"));
}

#[tokio::test]
async fn inputs_name_their_run_and_how_it_ended() {
    let session = builder(vec![calling(&[("c1", "look", json!({}))])]).build().unwrap();
    let handle = session.handle();
    handle
        .record_policy(PolicyChange::mode("edit").with_principal(Some(Principal::new("jan"))))
        .await
        .unwrap();
    handle.steer("also this").await.unwrap();
    let run = session.submit("go");
    handle.follow_up("and then?").await.unwrap();
    run.await.unwrap();
    session.close().await;
    let audit = audit_of(&handle.record().unwrap());
    let mut inputs: Vec<_> = audit
        .inputs
        .iter()
        .map(|input| (input.text.as_str(), input.source, input.run, input.run_ended))
        .collect();
    inputs.sort_unstable_by_key(|input| input.0);
    let completed = Some(OutcomeStatus::Completed);
    assert_eq!(
        inputs,
        [
            ("also this", InputSource::Steering, Some(0), None),
            ("and then?", InputSource::FollowUp, Some(0), None),
            ("go", InputSource::Submitted, Some(0), completed),
        ]
    );
    let [policy] = audit.policy.as_slice() else { panic!("{:?}", audit.policy) };
    assert_eq!(policy.change.mode.as_deref(), Some("edit"));
    assert_eq!(policy.change.by.as_ref().map(Principal::as_str), Some("jan"));
    assert_eq!(audit.call("c1").unwrap().intent.as_ref().unwrap().text, "go");
}

#[tokio::test]
async fn unknown_price_stays_unknown() {
    let known = audit(three_calls(), nobody).await;
    let [spent] = known.spending.models.as_slice() else { panic!("{:?}", known.spending) };
    assert_eq!((spent.model.as_str(), spent.responses), ("claude-opus-4-6", 2));
    assert_eq!((spent.input_tokens, spent.output_tokens), (20, 10));
    let total = &known.spending.total;
    assert!(spent.cost > Some(Money::ZERO) && spent.cost == total.cost, "{known:?}");
    assert_eq!((total.input_tokens, total.tool_calls), (20, 3));

    let model = model().answer("done");
    let builder = builder_for(profile("no-such-model"), Models(vec![("", model)]));
    let unknown = audit_of(&record(builder, nobody).await);
    assert_eq!(unknown.spending.models[0].cost, None);
    assert_eq!(unknown.spending.total.cost, None);
    assert_eq!(unknown.models[0].model, "no-such-model");
}

#[tokio::test]
async fn calls_of_subagents_belong_to_them() {
    let spawn = json!({"task": "Look around."});
    let parent = model()
        .message(calling(&[("c1", "spawn_agent", spawn)]))
        .message(calling(&[("c2", "wait", json!({"agent_id": "agent_1"}))]))
        .answer("done");
    let child = model().message(calling(&[("d1", "look", json!({}))])).answer("seen");
    let models = Models(vec![("go", parent), ("Look", child)]);
    let session = builder_for(profile("claude-opus-4-6"), models).build().unwrap();
    session.submit("go").await.unwrap();
    let handle = session.handle();
    let records = handle.tree_records().unwrap();
    session.close().await;
    let audits: Vec<Audit> = records.iter().map(audit_of).collect();
    let [parent, child] = audits.as_slice() else { panic!("{audits:?}") };
    let [subagent] = parent.subagents.as_slice() else { panic!("{parent:?}") };
    assert_eq!((subagent.agent_id.as_str(), subagent.call_id.as_deref()), ("agent_1", Some("c1")));
    assert_eq!((&subagent.session_id, &subagent.task), (&child.session.id, &"Look around.".to_owned()));
    assert_eq!(parent.call("c1").unwrap().spawned.first(), Some(&child.session.id));
    let call = child.call("d1").unwrap();
    assert_eq!((call.agent.as_deref(), call.outcome), (Some("agent_1"), CallOutcome::Succeeded));
    assert_eq!(child.session.spawned_by.as_ref().unwrap().parent, parent.session.id);

    let closed = audit_of(&handle.record().unwrap());
    assert_eq!(closed.subagents[0].status, Some(SubagentStatus::Completed));
    let mut whole = closed.clone();
    whole.subagents[0].report = Some(Box::new(AuditReport::new(child.clone())));
    let report = AuditReport::new(whole);
    let ids: Vec<&str> = report.calls().map(|call| call.call_id.as_str()).collect();
    assert_eq!(ids, ["c1", "c2", "d1"]);
}

#[tokio::test]
async fn redacted_report_has_no_secret() {
    const SECRET: &str = "sk-0123456789";
    let long = format!("{SECRET} {}", "x".repeat(5_000));
    let calls =
        calling(&[("c1", "run", json!({ "x": { "y": long, SECRET: 1 } })), ("c2", "note", json!({}))]);
    let deny = |handle: &SessionHandle, id: &str| {
        handle.decide(id, Decision::Deny { reason: Some(format!("because {SECRET}")) }).unwrap();
    };
    let full = AuditReport::new(audit(vec![calls], deny).await).with_chain(ChainReport::new(3, "1:3:ff"));
    let text = serde_json::to_string(&full).unwrap();
    assert!(text.contains(SECRET) && text.len() > 10_000);
    assert_eq!(serde_json::from_str::<AuditReport>(&text).unwrap(), full);

    let redacted = full.clone().redacted(&Redactions::new([SECRET])).unwrap();
    let text = serde_json::to_string(&redacted).unwrap();
    assert!(!text.contains("sk-") && text.contains("[redacted]") && text.len() < 10_000, "{text}");
    let audit = redacted.audit.unwrap();
    let argument = audit.call("c1").unwrap().proposal.arguments["x"]["y"].as_str().unwrap();
    assert!(argument.ends_with("more bytes]"), "{argument}");
    let edit = &audit.call("c2").unwrap().execution.as_ref().unwrap().changes[0];
    assert_eq!((edit.diff.as_str(), edit.diff_bytes > 0, edit.added), ("", true, 2));

    let word = full.redacted(&Redactions::new(["succeeded"])).unwrap_err();
    assert_eq!(word.to_string(), "a secret cannot be distinguished from a word of the audit");
}

#[tokio::test]
async fn audit_ends_where_the_record_diverges() {
    let answers = ["c1", "c2", "c3"].map(|id| calling(&[(id, "look", json!({}))]));
    let mut forged = record(builder(answers.into()), nobody).await;
    let mut finished = forged.entries.iter().enumerate().filter_map(|(index, entry)| {
        matches!(entry.input.kind, InputKind::ToolFinished { .. }).then_some(index)
    });
    let second = finished.nth(1).unwrap();
    forged.entries.remove(second);
    let audit = audit_of(&forged);
    let unread = audit.unread.clone().unwrap();
    assert!(unread.input as usize >= second && unread.inputs > 0, "{unread:?}");
    assert_eq!(audit.call("c1").unwrap().outcome, CallOutcome::Succeeded);
    assert_eq!(audit.call("c2").unwrap().outcome, CallOutcome::Running);
    let report = AuditReport::new(audit).with_chain(ChainReport::new(9, "1:9:00"));
    assert!(!report.is_intact(), "part of it was not read");
}

#[test]
fn damage_of_a_chain_is_not_intact() {
    let chain = ChainReport::new(4, "1:4:00");
    assert!(chain.is_intact());
    let mut cut = chain.clone();
    cut.matches_head = Some(false);
    assert!(!cut.is_intact());
    let damaged =
        chain.with_problem(None, "a checkpoint").with_problem(Some(7), "a").with_problem(Some(5), "b");
    assert!(!damaged.is_intact());
    assert_eq!(damaged.first_damaged_line(), Some(5));
    let unread =
        AuditReport::unreadable(SessionId::new("s"), "it is empty").with_chain(ChainReport::new(0, ""));
    assert!(!unread.is_intact() && unread.tree().len() == 1);
}

#[tokio::test]
async fn rewind_keeps_what_calls_did_on_record() {
    let session = builder(vec![calling(&[("c1", "look", json!({}))])]).build().unwrap();
    session.submit("go").await.unwrap();
    let handle = session.handle();
    handle.rewind(1).await.unwrap();
    let audit = audit_of(&session.record().unwrap());
    assert_eq!(audit.rewinds.iter().map(|rewind| rewind.turns).collect::<Vec<_>>(), [1]);
    let call = audit.call("c1").unwrap();
    assert_eq!(
        (call.outcome, call.result.as_ref().unwrap().text.as_str()),
        (CallOutcome::Succeeded, "look did")
    );
    // Cut between the response and its results, the history says that the call did not run here.
    handle.rewind(2).await.unwrap();
    let audit = audit_of(&session.record().unwrap());
    assert_eq!(audit.call("c1").unwrap().result.as_ref().unwrap().text, "look did");
}

#[tokio::test]
async fn summaries_of_conversations_count_as_spending() {
    let model = (0..8).fold(model(), |model, _| model.answer("x".repeat(2_000)));
    let session = builder_for(profile("claude-opus-4-6"), Models(vec![("", model)])).build().unwrap();
    let handle = session.handle();
    for number in 0..4 {
        session.submit(format!("go {number}")).await.unwrap();
    }
    let mut events = session.events();
    handle.compact().unwrap();
    while !matches!(events.next().await.unwrap().kind, EventKind::CompactionEnd { .. }) {}
    let audit = audit_of(&session.record().unwrap());
    let [spent] = audit.spending.models.as_slice() else { panic!("{:?}", audit.spending) };
    assert_eq!((spent.responses, spent.input_tokens), (5, 50));
    assert_eq!(spent.input_tokens, audit.spending.total.input_tokens);
    assert_eq!(spent.cost, audit.spending.total.cost, "{:?}", audit.spending);
}

#[tokio::test]
async fn errors_and_limits_are_part_of_the_report() {
    let failing = model().failure(Error::new(pintle_llm::ErrorKind::Authentication, "no such key"));
    let builder = builder_for(profile("claude-opus-4-6"), Models(vec![("", failing)]));
    let failed = audit_of(&record(builder, nobody).await);
    let errors: Vec<&Notice> =
        failed.notices.iter().filter(|notice| notice.kind == NoticeKind::Error).collect();
    assert!(matches!(errors.as_slice(), [error] if error.message.contains("no such key")), "{errors:?}");
    assert_eq!(failed.inputs[0].run_ended, Some(OutcomeStatus::Failed));
    assert_eq!(failed.spending.models, []);

    let config = SessionConfig::default().with_max_tool_rounds(1);
    let builder = super::builder(vec![calling(&[("c1", "look", json!({}))])]).with_config(config);
    let limited = audit_of(&record(builder, nobody).await);
    assert_eq!(limited.limits[0].limit, ReachedLimit::Rounds { rounds: 1 });
    assert_eq!(limited.limits[0].limit.to_string(), "rounds of calls for one input: 1");
}

/// A process may die after each entry of a record.
#[tokio::test]
async fn every_beginning_of_a_record_has_an_audit() {
    let answers = vec![
        calling(&[
            ("c1", "run", json!({"x": 1})),
            ("c2", "forbidden", json!({})),
            ("c3", "nothing", json!({})),
        ]),
        calling(&[("c1", "note", json!({}))]),
    ];
    let whole = record(builder(answers), |handle, id| handle.decide(id, Decision::Approve).unwrap()).await;
    let mut before = (0, 0);
    for entries in 0..=whole.entries.len() {
        let audit = audit_of(&whole.before(entries));
        assert_eq!(audit.unread, None);
        let ended = audit.calls.iter().filter(|call| call.result.is_some()).count();
        let now = (audit.calls.len(), ended);
        assert!(now.0 >= before.0 && now.1 >= before.1, "{audit:?}");
        before = now;
    }
    assert_eq!(before, (4, 4));
}
