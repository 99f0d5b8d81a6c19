//! Steps of random interleavings.

use pintle_llm::{ModelInfo, Money};
use proptest::prelude::*;

use super::super::*;
use crate::protocol::{Account, SessionId, SubagentSettings, SubagentStatus};

/// A random step. Its target is chosen from what is possible when it is taken.
#[derive(Clone, Debug)]
pub(in super::super) enum Step {
    /// The expected next step; the number selects one of several open calls.
    Proceed(usize),
    Submit,
    Steer,
    FollowUp,
    Compact,
    Rewind(usize),
    Interrupt,
    Abort,
    Close,
    /// The context changes: another model, profile, tool or document.
    Change,
    Effort,
    Limits(Box<TurnLimits>),
    /// The context is loaded, for one of two models.
    Load(bool),
    LoadFails(ErrorKind),
    LateLoad,
    Say(&'static str, Finish, Option<&'static str>),
    Call(usize, Finish),
    LateReply,
    Retry,
    Fail(ErrorKind),
    Prepare(usize, u8),
    Decide(usize, bool),
    Overdue(usize),
    OutOfTime,
    Start(usize),
    Declare(usize),
    Reconcile(usize, u8),
    Finish(usize),
    FailCall(usize, ToolErrorKind),
    Ask(usize),
    Lose(usize),
    Segment,
    Spawn,
    Spend(u64),
    /// The parent answers, with this much.
    Grant(u64),
    EndChild,
    Resume,
    CleanUp,
}

const KINDS: [ErrorKind; 16] = [
    ErrorKind::Authentication,
    ErrorKind::AccessDenied,
    ErrorKind::NotFound,
    ErrorKind::InvalidRequest,
    ErrorKind::RateLimit,
    ErrorKind::Server,
    ErrorKind::ContentFilter,
    ErrorKind::ContextLength,
    ErrorKind::QuotaExceeded,
    ErrorKind::RequestTimeout,
    ErrorKind::Abort,
    ErrorKind::Network,
    ErrorKind::Stream,
    ErrorKind::InvalidToolCall,
    ErrorKind::UnsupportedToolChoice,
    ErrorKind::Configuration,
];

pub(in super::super) fn step(limits: BoxedStrategy<TurnLimits>) -> BoxedStrategy<Step> {
    let on = (0_usize..12).prop_map(Step::Proceed);
    prop_oneof![12 => on, 3 => host(limits), 2 => model(), 3 => tools(), 1 => children()].boxed()
}

fn host(limits: BoxedStrategy<TurnLimits>) -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Submit),
        3 => Just(Step::Steer),
        2 => Just(Step::FollowUp),
        2 => Just(Step::Compact),
        2 => (0_usize..12).prop_map(Step::Rewind),
        2 => Just(Step::Interrupt),
        1 => prop_oneof![6 => Just(Step::Interrupt), 1 => Just(Step::Abort), 1 => Just(Step::Close)],
        2 => Just(Step::Change),
        1 => Just(Step::Effort),
        2 => limits.prop_map(|limits| Step::Limits(Box::new(limits))),
    ]
}

fn model() -> impl Strategy<Value = Step> {
    let text = prop_oneof![3 => Just("text"), 1 => Just(""), 1 => Just("really?")];
    let finish = prop_oneof![
        6 => Just((Finish::Stop, None)),
        1 => Just((Finish::Length, None)),
        1 => Just((Finish::ContentFilter, Some("refusal"))),
        1 => Just((Finish::Other, Some("pause_turn"))),
        1 => Just((Finish::Other, None)),
        1 => Just((Finish::Error, None)),
    ];
    let with_calls = prop_oneof![
        6 => Just(Finish::ToolCalls),
        1 => Just(Finish::Length),
        1 => Just(Finish::ContentFilter),
        1 => Just(Finish::Stop),
        1 => Just(Finish::Error),
    ];
    prop_oneof![
        12 => any::<bool>().prop_map(Step::Load),
        1 => Just(Step::LateLoad),
        1 => proptest::sample::select(&KINDS[..]).prop_map(Step::LoadFails),
        4 => (text, finish).prop_map(|(text, (finish, raw))| Step::Say(text, finish, raw)),
        10 => (1_usize..4, with_calls).prop_map(|(count, finish)| Step::Call(count, finish)),
        1 => Just(Step::LateReply),
        1 => Just(Step::Retry),
        2 => proptest::sample::select(&KINDS[..]).prop_map(Step::Fail),
        3 => Just(Step::Segment),
        1 => Just(Step::OutOfTime),
    ]
}

fn tools() -> impl Strategy<Value = Step> {
    let index = 0_usize..4;
    let error = prop_oneof![Just(ToolErrorKind::Failed), Just(ToolErrorKind::EnvironmentLost)];
    prop_oneof![
        10 => (index.clone(), 0_u8..7).prop_map(|(index, how)| Step::Prepare(index, how)),
        3 => (index.clone(), any::<bool>()).prop_map(|(index, yes)| Step::Decide(index, yes)),
        1 => index.clone().prop_map(Step::Overdue),
        8 => index.clone().prop_map(Step::Start),
        3 => index.clone().prop_map(Step::Declare),
        2 => (index.clone(), 0_u8..4).prop_map(|(index, how)| Step::Reconcile(index, how)),
        8 => index.clone().prop_map(Step::Finish),
        1 => (index.clone(), error).prop_map(|(index, error)| Step::FailCall(index, error)),
        1 => index.clone().prop_map(Step::Ask),
        2 => index.prop_map(Step::Lose),
        2 => Just(Step::CleanUp),
    ]
}

fn children() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Spawn),
        3 => (0_u64..30).prop_map(Step::Spend),
        2 => Just(Step::EndChild),
        1 => Just(Step::Resume),
    ]
}

/// Takes a step, like the driver would.
pub(in super::super) fn take(harness: &mut Harness, step: &Step) {
    match step {
        Step::Proceed(choice) => take(harness, &next(harness, *choice)),
        Step::Submit => {
            harness.runs += 1;
            harness.tell(InputKind::Submit {
                run: RunId(harness.runs),
                message: format!("input {}", harness.runs).into(),
            });
        }
        Step::Steer => {
            let message = UserMessage::from(format!("steer {}", harness.clock));
            let image = ImageData::data(vec![1], "image/png");
            let with_image = harness.clock % 2 == 0;
            let message = if with_image { message.with_image(image) } else { message };
            harness.tell(InputKind::Steer { message });
        }
        Step::FollowUp => {
            let text = format!("follow {}", harness.clock);
            harness.tell(InputKind::FollowUp { message: text.into() });
        }
        Step::Compact => harness.tell(InputKind::Compact),
        Step::Rewind(turns) => harness.tell(InputKind::Rewind { turns: *turns }),
        Step::Interrupt => harness.tell(InputKind::Interrupt),
        Step::Abort => harness.tell(InputKind::Abort),
        Step::Close => harness.tell(InputKind::Close),
        Step::Change => harness.tell(InputKind::Configure { change: Change::Context }),
        Step::Effort => {
            let change = Change::ReasoningEffort(Some(ReasoningEffort::High));
            harness.tell(InputKind::Configure { change });
        }
        Step::Limits(limits) => {
            let change = Change::Limits((**limits).clone());
            harness.tell(InputKind::Configure { change });
        }
        Step::Load(_) | Step::LoadFails(_) | Step::LateLoad => load(harness, step),
        Step::Say(..) | Step::Call(..) | Step::LateReply | Step::Retry | Step::Fail(_) | Step::Segment => {
            answer(harness, step);
        }
        Step::Prepare(index, how) => prepare(harness, *index, *how),
        Step::Decide(index, approved) => {
            let call = harness.key(*index);
            harness.tell(InputKind::ApprovalDecided { call, approved: *approved, reason: None, by: None });
        }
        Step::Overdue(index) => {
            let timer = Timer::Approval(harness.key(*index));
            harness.tell(InputKind::TimerFired { timer });
        }
        Step::OutOfTime => harness.tell(InputKind::TimerFired { timer: Timer::Run(RunId(harness.runs)) }),
        Step::Start(index) => harness.tell(InputKind::ToolStarted { call: harness.key(*index) }),
        Step::Declare(index) => harness.declare(*index),
        Step::Reconcile(index, how) => harness.reconciled(*index, reconciliation(*how)),
        Step::Finish(index) => harness.finish_started(*index, "result", None),
        Step::FailCall(index, error) => harness.finish_started(*index, "failed", Some(*error)),
        Step::Ask(index) => harness.ask(*index, "which?"),
        Step::Lose(index) => harness.tell(InputKind::ToolLost { call: harness.key(*index) }),
        Step::Spawn | Step::Spend(_) | Step::EndChild => child(harness, step),
        Step::Grant(amount) => {
            let Some((ask, has, wants)) = harness.asked else { return };
            let more = |has: Option<u64>, wants: Option<u64>| {
                has.map(|has| has.saturating_add(wants.unwrap_or(0).min(*amount)))
            };
            let slice = Limits {
                tokens: more(has.tokens, wants.tokens),
                cost: more(has.cost_micros(), wants.cost_micros().map(|micros| micros * 1_000_000))
                    .map(Money::from_micros),
                wall_time: None,
                tool_calls: more(has.tool_calls, wants.tool_calls),
            };
            harness.tell(InputKind::BudgetGranted { ask, slice, short: None, failure: None });
        }
        Step::Resume => {
            // Segments and subagents end with the process that had them open.
            harness.segment_is_open = false;
            harness.children.clear();
            harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
        }
        Step::CleanUp => {
            if matches!(harness.machine.phase, Phase::CleaningUp) {
                while !harness.children.is_empty() {
                    child(harness, &Step::EndChild);
                }
            }
            harness.tell(InputKind::CleanedUp);
        }
    }
}

/// Returns the expected next step.
fn next(harness: &Harness, choice: usize) -> Step {
    match &harness.machine.phase {
        Phase::Resting => Step::Submit,
        Phase::LoadingContext { .. } => Step::Load(true),
        Phase::AwaitingBudget => Step::Grant(u64::try_from(choice).unwrap_or(0) * 20),
        Phase::Compacting { .. } => Step::Say("summary", Finish::Stop, None),
        Phase::AwaitingModel(_) if choice.is_multiple_of(3) => Step::Say("text", Finish::Stop, None),
        Phase::AwaitingModel(_) => Step::Call(1 + choice % 3, Finish::ToolCalls),
        Phase::RunningTools(round) => {
            let stages = round.stages();
            let open: Vec<usize> = (0..stages.len()).filter(|index| stages[*index] != "done").collect();
            let index = open[choice % open.len()];
            match stages[index] {
                "preparing" => Step::Prepare(index, u8::try_from(choice).unwrap_or(0)),
                "asking" => Step::Decide(index, true),
                "starting" => Step::Start(index),
                "running" => Step::Finish(index),
                "reconciling" => Step::Reconcile(index, u8::try_from(choice % 4).unwrap_or(0)),
                // It waits for another call.
                _ => Step::Steer,
            }
        }
        Phase::CleaningUp => Step::CleanUp,
    }
}

fn reconciliation(how: u8) -> Reconciliation {
    let path = vec![PathBuf::from("/w/a")];
    match how {
        0 => Reconciliation::Done,
        1 => Reconciliation::Untouched,
        2 => Reconciliation::Conflict { done: Vec::new(), untouched: Vec::new(), changed: path },
        _ => Reconciliation::Unknown { reason: "it is gone".into() },
    }
}

fn load(harness: &mut Harness, step: &Step) {
    let newest = harness.machine.loads;
    let kind = match step {
        Step::LoadFails(kind) => {
            let error = Error::new(*kind, "x").info().clone();
            InputKind::ContextFailed { load: LoadId(newest), error }
        }
        Step::LateLoad => {
            let context = Box::new(TurnContext::new("late", "late", "late", 1));
            InputKind::ContextLoaded { load: LoadId(newest.saturating_sub(1)), context }
        }
        _ => {
            let model = if matches!(step, Step::Load(true)) { "m" } else { "n" };
            let mut context = TurnContext::new("p", model, format!("system of {model}"), 1_000);
            let mut pricing = ModelInfo::new("p", model, 1_000);
            pricing.input_cost_per_million = Some(1e6);
            pricing.output_cost_per_million = Some(1e6);
            context.pricing = Some(Box::new(pricing));
            InputKind::ContextLoaded { load: LoadId(newest), context: Box::new(context) }
        }
    };
    harness.tell(kind);
}

fn answer(harness: &mut Harness, step: &Step) {
    if matches!(step, Step::Segment) {
        if matches!(harness.machine.phase, Phase::AwaitingModel(_)) {
            segment(harness, !harness.segment_is_open);
        }
        return;
    }
    if harness.segment_is_open && !matches!(step, Step::LateReply) {
        segment(harness, false);
    }
    match step {
        Step::Say(text, finish, raw) => harness.reply_with(Message::assistant(*text), *finish, *raw),
        // The same ids are used again and again, as some models do.
        Step::Call(count, finish) => {
            let names = ["x", "", "x"].map(|id| (id, "tool"));
            harness.reply_with(calls(&names[..*count]), *finish, None);
        }
        Step::LateReply => {
            let late = ModelCallId(harness.machine.model_calls.wrapping_sub(1));
            let response = Box::new(Response::new("p", "m", Message::assistant("late")));
            harness.tell(InputKind::ModelReplied { model_call: late, response });
        }
        Step::Retry => harness.tell(InputKind::ModelRetrying {
            model_call: harness.model_call(),
            attempt: 1,
            delay: Duration::ZERO,
            error: Error::new(ErrorKind::Server, "x").info().clone(),
        }),
        Step::Fail(kind) => harness.failed(*kind, "partial"),
        _ => {}
    }
}

fn segment(harness: &mut Harness, opens: bool) {
    let (segment, kind) = (SegmentId(0), SegmentKind::Text);
    harness.segment_is_open = opens;
    harness.tell(if opens {
        InputKind::SegmentOpened { segment, kind }
    } else {
        InputKind::SegmentClosed { segment, kind, text: "t".into(), interrupted: false }
    });
}

fn prepare(harness: &mut Harness, index: usize, how: u8) {
    match how {
        0 | 1 => harness.asks(index),
        2 => harness.judged(
            harness.key(index),
            Preparation::Refused { error: ToolErrorKind::Denied, message: "no".into() },
        ),
        3 => harness.prepared(index, Effect::Write, &["/w/a"]),
        4 => harness.prepared(index, Effect::Execute, &[]),
        _ => harness.prepared(index, Effect::Read, &[]),
    }
}

fn child(harness: &mut Harness, step: &Step) {
    match step {
        Step::Spawn => {
            if harness.machine.state() == SessionState::Closed {
                return;
            }
            let agent = format!("agent {}", harness.clock);
            harness.children.push(agent.clone());
            let session = SessionId::new(agent.clone());
            harness.tell(InputKind::ChildSpawned {
                agent,
                session,
                task: "look".into(),
                call_id: None,
                settings: SubagentSettings::default(),
            });
        }
        Step::Spend(tokens) => {
            let Some(agent) = harness.children.last().cloned() else { return };
            // It asks before it spends, and spends no more than it gets.
            let limited = harness.granted.get(&agent).copied().unwrap_or_default();
            let spent = harness.spent_by.get(&agent).copied().unwrap_or_default();
            let wants = Limits::default()
                .with_tokens(*tokens)
                .with_cost(Money::from_micros(*tokens))
                .with_tool_calls(1);
            let has = limited;
            harness.tell(InputKind::ChildAsked { agent: agent.clone(), ask: 1, has, wants, unpriced: None });
            let Some(slice) = harness.granted.get(&agent).copied() else { return };
            let left = slice.remaining(&spent);
            let tokens = left.tokens.unwrap_or(*tokens).min(*tokens);
            let now = BudgetUsage {
                input_tokens: tokens,
                output_tokens: 0,
                cost: Some(left.cost.unwrap_or(Money::from_micros(tokens)).min(Money::from_micros(tokens))),
                tool_calls: left.tool_calls.unwrap_or(1).min(1),
            };
            let spent = spent.and(now);
            harness.spent_by.insert(agent.clone(), spent);
            let account = Account { spent, rests: tokens % 5 == 0, ..Account::default() };
            if account.rests {
                harness.granted.insert(agent.clone(), slice.exactly(&spent));
            }
            harness.tell(InputKind::ChildAccount { agent, account });
        }
        _ => {
            let Some(agent) = harness.children.pop() else { return };
            let status = SubagentStatus::Completed;
            harness.tell(InputKind::ChildEnded {
                agent,
                status,
                turns_used: 1,
                output: String::new(),
                reason: None,
                warning: None,
            });
        }
    }
}
