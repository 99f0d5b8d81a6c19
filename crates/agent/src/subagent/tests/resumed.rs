//! Subagents that are resumed with their parent, from journals of their own.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};

use super::*;
use crate::SessionId;
use crate::protocol::{InputKind, Limits, OutcomeStatus, SubagentOrigin, SubagentStatus};
use crate::record::{Barrier as RecordBarrier, Journal, Record, RecordEntry, RecordHeader, SubagentJournals};

/// Journals of a tree of sessions, as JSON lines in memory.
#[derive(Clone, Debug, Default)]
struct Journals(Arc<Mutex<HashMap<SessionId, Vec<u8>>>>, Arc<Mutex<Vec<SyncedEntries>>>);

/// Inputs of a session that passed a barrier with the disk together.
type SyncedEntries = (SessionId, Vec<String>);

#[derive(Debug)]
struct KeptJournal {
    id: SessionId,
    all: Journals,
}

impl Journals {
    fn journal(&self, id: &SessionId) -> KeptJournal {
        KeptJournal { id: id.clone(), all: self.clone() }
    }

    fn record(&self, id: &SessionId) -> Option<Record> {
        self.0.lock().unwrap().get(id).map(|text| Record::read(text.as_slice()).unwrap())
    }

    fn write(&self, id: &SessionId, value: &impl serde::Serialize) {
        let mut all = self.0.lock().unwrap();
        let text = all.entry(id.clone()).or_default();
        serde_json::to_writer(&mut *text, value).unwrap();
        text.push(b'\n');
    }
}

#[async_trait]
impl Journal for KeptJournal {
    fn begin(&mut self, header: &RecordHeader) -> io::Result<()> {
        self.all.write(&self.id, header);
        Ok(())
    }

    async fn append(&mut self, entries: &[Arc<RecordEntry>], barrier: RecordBarrier) -> io::Result<()> {
        if barrier == RecordBarrier::Synced {
            let name = |entry: &Arc<RecordEntry>| {
                let value = serde_json::to_value(entry.as_ref()).unwrap();
                value["input"].as_str().unwrap().to_owned()
            };
            let names = entries.iter().map(name).collect();
            self.all.1.lock().unwrap().push((self.id.clone(), names));
        }
        entries.iter().for_each(|entry| self.all.write(&self.id, entry.as_ref()));
        Ok(())
    }

    fn subagents(&self) -> Option<Arc<dyn SubagentJournals>> {
        Some(Arc::new(self.all.clone()))
    }
}

#[async_trait]
impl SubagentJournals for Journals {
    async fn create(&self, origin: &SubagentOrigin) -> io::Result<Box<dyn Journal>> {
        Ok(Box::new(self.journal(&origin.session_id)))
    }

    async fn open(&self, origin: &SubagentOrigin) -> io::Result<Option<(Record, Box<dyn Journal>)>> {
        let journal = || Box::new(self.journal(&origin.session_id)) as Box<dyn Journal>;
        Ok(self.record(&origin.session_id).map(|record| (record, journal())))
    }
}

/// A journaled session with these models, in the profile of Anthropic.
fn begun(models: ModelsByTask, journals: &Journals) -> Harness {
    of(ProviderProfile::anthropic("claude-opus-4-6"), models, |builder| {
        let id = SessionId::new("root");
        builder.with_id(id.clone()).journal(journals.journal(&id))
    })
}

/// The same session in another process.
fn resumed(models: ModelsByTask, journals: &Journals) -> Harness {
    of(ProviderProfile::anthropic("claude-opus-4-6"), models, |builder| again(builder, journals))
}

fn again(builder: SessionBuilder, journals: &Journals) -> SessionBuilder {
    let id = SessionId::new("root");
    builder.resume(journals.record(&id).unwrap()).journal(journals.journal(&id))
}

fn of(
    profile: ProviderProfile,
    models: ModelsByTask,
    change: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Harness {
    // Under a limit, subagents ask for their budget.
    let budget = Limits::default().with_tokens(5_000_000).with_tool_calls(1_000);
    let config = SessionConfig::default().with_max_subagent_depth(2).with_budget(budget);
    Harness::of(profile, models, config, change)
}

async fn outcome(harness: &mut Harness) -> String {
    let run = harness.session.resumed().unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs(20), run).await.unwrap().unwrap();
    assert_eq!((outcome.status, outcome.error), (OutcomeStatus::Completed, None));
    outcome.text
}

/// Runs until the subagents make a call, and lets the process die.
async fn die_at_work(harness: Harness, working: usize) {
    let mut events = harness.session.tree_events();
    harness.session.submit("go").detach();
    let is_call = |event: &SessionEvent| {
        event.depth > 0
            && matches!(&event.kind, EventKind::ToolCallStart { tool_name, .. } if tool_name != "spawn_agent")
    };
    for _ in 0..working {
        read_until(&mut events, is_call).await;
    }
    drop(harness);
}

#[tokio::test]
async fn running_and_idle_subagents_go_on_with_their_parent() {
    let journals = Journals::default();
    let parent = model()
        .message(calls(&[spawn("Answer."), spawn("Sleep.")]))
        .message(calls(&[wait("agent_1")]))
        .message(calls(&[wait("agent_2")]));
    let models = ModelsByTask::new(parent)
        .subagent("Answer.", model().answer("It is 42."))
        .subagent("Sleep.", model().message(sleep_call()));
    die_at_work(begun(models, &journals), 1).await;

    // The parent may have died before or after it waited for the first one.
    let asked = journals.record(&SessionId::new("root")).unwrap().replay().unwrap().requests.len();
    let waits = if asked < 3 { vec![calls(&[wait("agent_2")])] } else { Vec::new() };
    let parent = waits.into_iter().fold(model(), FakeAdapter::message);
    let parent = parent
        .message(calls(&[("send_input", json!({ "agent_id": "agent_1", "message": "Sure?" }))]))
        .message(calls(&[wait("agent_1")]))
        .message(calls(&[spawn("New.")]))
        .answer("I know.");
    let models = ModelsByTask::new(parent)
        .subagent("Answer.", model().answer("Sure."))
        .subagent("Sleep.", model().answer("I slept."))
        .subagent("New.", model().answer("new"));
    let mut after = resumed(models, &journals);
    assert_eq!(outcome(&mut after).await, "I know.");
    let results = after.results();
    let has = |text: &str| results.iter().any(|result| result.contains(text));
    assert!(has("I slept.") && has("Sure.") && has("agent_id: agent_3"), "{results:#?}");
    // The second message continues the first conversation.
    let texts: Vec<String> =
        after.models.requests("Answer.")[0].messages.iter().map(|message| message.text()).collect();
    assert_eq!(texts[1..], ["Answer.", "It is 42.", "Sure?"]);
    // The interrupted call of the other one is answered, not repeated.
    let sleep = &after.models.requests("Sleep.")[0];
    assert!(sleep.messages.last().unwrap().results().next().unwrap().text().starts_with("Interrupted"));
}

/// `Task` spawns and waits in one call, which finds its subagent again.
#[tokio::test]
async fn a_call_attaches_to_the_subagent_that_it_had_spawned() {
    let journals = Journals::default();
    let profile =
        || ProviderProfile::anthropic("claude-opus-4-6").with_toolset(crate::profile::Toolset::Native);
    let task = |prompt: &str| {
        let arguments = json!({ "description": "x", "prompt": prompt, "subagent_type": "general-purpose" });
        calls(&[("Task", arguments)])
    };
    let sleep = calls(&[("Bash", json!({ "command": "sleep 1000", "timeout": 600_000 }))]);
    let models =
        ModelsByTask::new(model().message(task("Sleep."))).subagent("Sleep.", model().message(sleep));
    let before = of(profile(), models, |builder| {
        let id = SessionId::new("root");
        builder.with_id(id.clone()).journal(journals.journal(&id))
    });
    die_at_work(before, 1).await;

    let models =
        ModelsByTask::new(model().answer("done")).subagent("Sleep.", model().answer("I slept, then woke."));
    let mut after = of(profile(), models, |builder| again(builder, &journals));
    assert_eq!(outcome(&mut after).await, "done");
    let results = after.results();
    assert_eq!(results, ["agentId: agent_1 (for resume)\n\nI slept, then woke."]);
    assert_eq!(after.models.requests("Sleep.").len(), 1);
    let spawned = journals.record(&SessionId::new("root")).unwrap().replay().unwrap().events;
    let spawned = spawned.iter().filter(|event| matches!(event.kind, EventKind::SubagentSpawned { .. }));
    assert_eq!(spawned.count(), 1);
}

#[tokio::test]
async fn subagents_of_subagents_go_on_and_nothing_is_counted_twice() {
    let journals = Journals::default();
    let parent = model().message(calls(&[spawn("Middle.")])).message(calls(&[wait("agent_1")]));
    let middle = model().message(calls(&[spawn("Low.")])).message(calls(&[wait("agent_1")]));
    let models =
        ModelsByTask::new(parent).subagent("Middle.", middle).subagent("Low.", model().message(sleep_call()));
    let mut harness = Some(begun(models, &journals));
    {
        let session = &harness.as_ref().unwrap().session;
        let mut events = session.tree_events();
        session.submit("go").detach();
        read_until(&mut events, |event| event.depth == 2 && kind(event) == "TOOL_CALL_START").await;
    }
    drop(harness.take());

    let models = ModelsByTask::new(model().answer("top"))
        .subagent("Middle.", model().answer("mid"))
        .subagent("Low.", model().answer("low"));
    let mut after = resumed(models, &journals);
    // The interrupted waits of both are repeated, since they only look.
    assert_eq!(outcome(&mut after).await, "top");
    after.session.close().await;
    let ids: Vec<SessionId> = journals.0.lock().unwrap().keys().cloned().collect();
    let records: Vec<Record> = ids.iter().map(|id| journals.record(id).unwrap()).collect();
    let used = records.iter().flat_map(|record| &record.entries).filter_map(|entry| {
        let InputKind::ModelReplied { response, .. } = &entry.input.kind else { return None };
        Some(response.usage.input_tokens + response.usage.output_tokens)
    });
    let root = journals.record(&SessionId::new("root")).unwrap().replay().unwrap();
    assert_eq!((records.len(), root.spent.tokens()), (3, used.sum::<u64>()));
}

#[tokio::test]
async fn a_subagent_without_a_journal_is_lost() {
    let journals = Journals::default();
    let parent = model().message(calls(&[spawn("Sleep.")])).message(calls(&[wait("agent_1")]));
    let models = ModelsByTask::new(parent).subagent("Sleep.", model().message(sleep_call()));
    die_at_work(begun(models, &journals), 1).await;
    let root = SessionId::new("root");
    // A journal whose inputs lead to other requests than the recorded ones is not that of this version.
    for (id, text) in journals.0.lock().unwrap().iter_mut() {
        if *id != root {
            *text = String::from_utf8_lossy(text).replace("Sleep.", "Sleeps.").into_bytes();
        }
    }
    let models = ModelsByTask::new(model().answer("done")).subagent("Sleep", model().answer("I slept."));
    let mut after = resumed(models, &journals);
    assert_eq!(outcome(&mut after).await, "done");
    let results = after.results();
    assert!(
        results.last().unwrap().contains("the program that ran it ended, and the agent with it"),
        "{results:?}"
    );
}

#[tokio::test]
async fn a_suspended_session_keeps_its_unfinished_subagents() {
    let journals = Journals::default();
    let parent = model()
        .message(calls(&[spawn("Answer."), spawn("Sleep.")]))
        .message(calls(&[wait("agent_1")]))
        .message(calls(&[wait("agent_2")]));
    let models = ModelsByTask::new(parent)
        .subagent("Answer.", model().answer("It is 42."))
        .subagent("Sleep.", model().message(sleep_call()));
    let before = begun(models, &journals);
    let mut events = before.session.tree_events();
    let run = before.session.submit("go");
    let is_last_wait = |event: &SessionEvent| matches!(&event.kind, EventKind::ToolCallStart { arguments, .. } if arguments["agent_id"] == "agent_2");
    read_until(&mut events, is_last_wait).await;
    before.session.suspend().await;
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);

    let parent = model()
        .message(calls(&[wait("agent_1")]))
        .message(calls(&[("send_input", json!({ "agent_id": "agent_2", "message": "Awake?" }))]))
        .message(calls(&[wait("agent_2")]))
        .answer("I know.");
    let models = ModelsByTask::new(parent).subagent("Sleep.", model().answer("Yes."));
    let after = resumed(models, &journals);
    assert_eq!(after.session.submit("Go on.").await.unwrap().text, "I know.");
    let results = after.results();
    let [.., first, _, second] = &results[..] else { unreachable!() };
    assert_eq!(first, "success: true\nturns_used: 1\noutput:\nIt is 42.", "it was closed with its result");
    assert_eq!(second, "success: true\nturns_used: 2\noutput:\nYes.");
    let status: Vec<SubagentStatus> =
        after.session.subagents().iter().map(crate::subagent::SubagentHandle::status).collect();
    assert_eq!(status, [SubagentStatus::Completed, SubagentStatus::Completed]);
}

/// Whenever the process dies, the subagent does its work once, and its parent gets the result.
#[tokio::test]
async fn a_tree_survives_a_cut_at_any_input() {
    let journals = Journals::default();
    let script = || {
        let parent =
            model().message(calls(&[spawn("Answer.")])).message(calls(&[wait("agent_1")])).answer("done");
        ModelsByTask::new(parent).subagent("Answer.", model().answer("It is 42."))
    };
    let whole = begun(script(), &journals);
    whole.session.submit("go").await.unwrap();
    drop(whole);
    let root = SessionId::new("root");
    let record = journals.record(&root).unwrap();
    let all = journals.0.lock().unwrap().clone();
    let submitted = 2;
    for cut in submitted..record.entries.len() {
        let cut_record = record.before(cut);
        let mut text = Vec::new();
        cut_record.write(&mut text).unwrap();
        let spawned =
            cut_record.entries.iter().any(|entry| matches!(entry.input.kind, InputKind::ChildSpawned { .. }));
        let mut kept = all.clone();
        // Nothing of a subagent exists before it is on its parent's record.
        kept.retain(|id, _| *id == root || spawned);
        kept.insert(root.clone(), text);
        let journals = Journals(Arc::new(Mutex::new(kept)), Arc::default());
        let answered =
            cut_record.replay().unwrap().history.iter().filter(|turn| turn.is_complete_response()).count();
        let mut rest = [calls(&[spawn("Answer.")]), calls(&[wait("agent_1")]), Message::assistant("done")]
            .into_iter()
            .skip(answered)
            .fold(model(), |model, message| model.message(message));
        if answered == 3 {
            rest = rest.answer("unused");
        }
        let models = ModelsByTask::new(rest).subagent("Answer.", model().answer("It is 42."));
        let mut after = resumed(models, &journals);
        if let Some(run) = after.session.resumed() {
            let outcome = tokio::time::timeout(Duration::from_secs(20), run).await.unwrap().unwrap();
            assert_eq!(outcome.text, "done", "cut before input {cut}: {:?}", after.results());
            assert!(
                after.results()[1].contains("It is 42."),
                "cut before input {cut}: {:?}",
                after.results()
            );
        }
    }
}

#[tokio::test]
async fn an_abandoned_session_records_nothing_more_of_its_subagents() {
    let journals = Journals::default();
    let parent = model().message(calls(&[spawn("Sleep.")])).message(calls(&[wait("agent_1")]));
    let models = ModelsByTask::new(parent).subagent("Sleep.", model().message(sleep_call()));
    let before = begun(models, &journals);
    let mut events = before.session.tree_events();
    let run = before.session.submit("go");
    let sleeps =
        |event: &SessionEvent| event.depth == 1 && matches!(&event.kind, EventKind::ToolCallStart { .. });
    let (mut is_asleep, mut is_waiting) = (false, false);
    while !(is_asleep && is_waiting) {
        let event = events.next().await.unwrap();
        is_asleep |= sleeps(&event);
        is_waiting |= event.depth == 0
            && matches!(&event.kind, EventKind::ToolCallStart { arguments, .. } if arguments["agent_id"] == "agent_1");
    }
    let handle = before.session.handle();
    let recorded = journals.0.lock().unwrap().clone();
    handle.abandon().unwrap();
    assert!(run.await.is_err());
    before.session.close().await;
    assert_eq!(*journals.0.lock().unwrap(), recorded);
}

/// Gate with a grant, which the record of a subagent contains.
#[derive(Debug)]
struct Granted;

#[async_trait]
impl Gate for Granted {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        Verdict::ALLOW
    }

    fn authority(&self) -> Option<Value> {
        Some(json!({ "id": "g" }))
    }
}

/// The authority of a subagent is on record, and reaches the disk with its task: nothing happens in between.
#[tokio::test]
async fn authority_of_a_subagent_is_synced_with_its_task() {
    let journals = Journals::default();
    let parent = model().message(calls(&[spawn("Answer.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let models = ModelsByTask::new(parent).subagent("Answer.", model().answer("It is 42."));
    let harness = of(ProviderProfile::anthropic("claude-opus-4-6"), models, |builder| {
        let id = SessionId::new("root");
        builder.with_id(id.clone()).journal(journals.journal(&id)).gate(Granted)
    });
    harness.session.submit("go").await.unwrap();
    let synced = journals.1.lock().unwrap().clone();
    let (child, first) = synced.iter().find(|(id, _)| *id != SessionId::new("root")).unwrap();
    assert_eq!(first[0], "submit", "{synced:?}");
    let record = journals.record(child).unwrap();
    let names: Vec<_> = record.entries.iter().map(|entry| &entry.input.kind).take(3).collect();
    assert!(
        matches!(
            names[..],
            [InputKind::Opened { .. }, InputKind::PolicyChanged { .. }, InputKind::Submit { .. }]
        ),
        "{names:?}"
    );
}
