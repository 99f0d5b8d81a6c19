//! Whatever happens in whatever order, the next request is well formed and no event is out of place.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// One thing that may happen; what it applies to is drawn from what is possible then.
#[derive(Clone, Debug)]
enum Step {
    Submit,
    Steer,
    FollowUp,
    Interrupt,
    Abort,
    Close,
    Change,
    Load,
    Say(bool),
    Call(usize, Finish),
    Fail(ErrorKind),
    Prepare(usize, u8),
    Decide(usize, bool),
    Start(usize),
    Finish(usize),
    Lose(usize),
    Segment(bool),
    CleanUp,
}

fn step() -> impl Strategy<Value = Step> {
    let finish = prop_oneof![
        4 => Just(Finish::ToolCalls),
        1 => Just(Finish::Length),
        1 => Just(Finish::ContentFilter),
        1 => Just(Finish::Stop),
    ];
    let kind = prop_oneof![
        3 => Just(ErrorKind::Server),
        1 => Just(ErrorKind::Authentication),
        2 => Just(ErrorKind::Abort),
        1 => Just(ErrorKind::ContextLength),
    ];
    prop_oneof![
        4 => Just(Step::Submit),
        2 => Just(Step::Steer),
        1 => Just(Step::FollowUp),
        1 => Just(Step::Interrupt),
        1 => prop_oneof![4 => Just(Step::Interrupt), 1 => Just(Step::Abort), 1 => Just(Step::Close)],
        1 => Just(Step::Change),
        6 => Just(Step::Load),
        3 => any::<bool>().prop_map(Step::Say),
        6 => (1_usize..4, finish).prop_map(|(count, finish)| Step::Call(count, finish)),
        1 => kind.prop_map(Step::Fail),
        8 => (0_usize..4, 0_u8..6).prop_map(|(index, how)| Step::Prepare(index, how)),
        3 => (0_usize..4, any::<bool>()).prop_map(|(index, yes)| Step::Decide(index, yes)),
        8 => (0_usize..4).prop_map(Step::Start),
        8 => (0_usize..4).prop_map(Step::Finish),
        2 => (0_usize..4).prop_map(Step::Lose),
        2 => any::<bool>().prop_map(Step::Segment),
        4 => Just(Step::CleanUp),
    ]
}

fn take(bench: &mut Bench, step: &Step) {
    match step {
        Step::Submit => {
            bench.runs += 1;
            bench.tell(InputKind::Submit { run: RunId(bench.runs), text: format!("input {}", bench.runs) });
        }
        Step::Steer => bench.tell(InputKind::Steer { text: "steer".into() }),
        Step::FollowUp => bench.tell(InputKind::FollowUp { text: "follow".into() }),
        Step::Interrupt => bench.tell(InputKind::Interrupt),
        Step::Abort => bench.tell(InputKind::Abort),
        Step::Close => bench.tell(InputKind::Close),
        Step::Change => bench.tell(InputKind::Configure { change: Change::Context }),
        Step::Load => bench.load(),
        Step::Say(something) => bench.say(if *something { "text" } else { "" }),
        // The ids come again and again, as some models make them.
        Step::Call(count, finish) => {
            let names = ["x", "y", "x"].map(|id| (id, "tool"));
            bench.reply_with(calls(&names[..*count]), *finish, None);
        }
        Step::Fail(kind) => bench.failed(*kind, "partial"),
        Step::Prepare(index, how) => match how {
            0 => bench.asks(*index),
            1 => bench.tell(InputKind::CallPrepared {
                call: bench.key(*index),
                preparation: Preparation::Refused { error: ToolErrorKind::Denied, message: "no".into() },
            }),
            2 => bench.prepared(*index, Effect::Write, &["/w/a"]),
            3 => bench.prepared(*index, Effect::Execute, &[]),
            _ => bench.prepared(*index, Effect::Read, &[]),
        },
        Step::Decide(index, approved) => {
            let call = bench.key(*index);
            bench.tell(InputKind::ApprovalDecided { call, approved: *approved, reason: None });
        }
        Step::Start(index) => bench.tell(InputKind::ToolStarted { call: bench.key(*index) }),
        Step::Finish(index) => bench.finish_started(*index, "result", None),
        Step::Lose(index) => bench.tell(InputKind::ToolLost { call: bench.key(*index) }),
        Step::Segment(true) => {
            bench.tell(InputKind::SegmentOpened { segment: SegmentId(0), kind: SegmentKind::Text });
        }
        Step::Segment(false) => bench.tell(InputKind::SegmentClosed {
            segment: SegmentId(0),
            kind: SegmentKind::Text,
            text: String::new(),
            interrupted: false,
        }),
        Step::CleanUp => bench.tell(InputKind::CleanedUp),
    }
}

/// Every call has one result, in order, in the message that follows; every id is used once.
fn well_formed(request: &Request) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    let mut messages = request.messages.iter().peekable();
    if messages.next().is_none_or(|first| first.role != Role::System) {
        return Err("the system prompt is not first".into());
    }
    while let Some(message) = messages.next() {
        if message.content.is_empty() {
            return Err("an empty message".into());
        }
        let calls: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        if calls.iter().any(|id| !ids.insert(*id)) {
            return Err(format!("an id came twice: {calls:?}"));
        }
        match message.role {
            Role::Assistant if !calls.is_empty() => {
                let results: Vec<&str> = messages
                    .next()
                    .filter(|next| next.role == Role::Tool)
                    .map(|next| next.results().map(|result| result.tool_call_id.as_str()).collect())
                    .unwrap_or_default();
                if results != calls {
                    return Err(format!("calls {calls:?} are answered by {results:?}"));
                }
            }
            Role::Tool => return Err("results without calls".into()),
            Role::Assistant | Role::User => {}
            Role::System | Role::Developer => return Err("instructions in the middle".into()),
        }
    }
    Ok(())
}

/// Starts and ends pair, and nothing stands outside the session's bracket.
fn in_place(events: &[EventKind]) -> Result<(), String> {
    let mut open = BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        if let EventKind::ToolCallStart { call_id, .. } = event
            && !open.insert(call_id.clone())
        {
            return Err(format!("{call_id} started twice"));
        }
        if let EventKind::ToolCallEnd { call_id, .. } = event
            && !open.remove(call_id)
        {
            return Err(format!("{call_id} ended without a start"));
        }
        if matches!(event, EventKind::SessionStart { .. }) != (index == 0) {
            return Err("SESSION_START must be first, and only there".into());
        }
        if matches!(event, EventKind::SessionEnd { .. }) && index + 1 != events.len() {
            return Err("something follows SESSION_END".into());
        }
        if matches!(event, EventKind::ProcessingEnd { .. }) && !open.is_empty() {
            return Err(format!("processing ended with open calls: {open:?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_interleaving_keeps_requests_and_events_well_formed(steps in proptest::collection::vec(step(), 1..80)) {
        let mut bench = Bench::new();
        for step in &steps {
            take(&mut bench, step);
            // A run that is over is over once.
            prop_assert!(bench.outcomes.len() as u64 <= bench.runs);
        }
        for request in &bench.requests {
            prop_assert_eq!(well_formed(request), Ok(()));
        }
        prop_assert_eq!(in_place(&bench.events), Ok(()));
        let steered = steps.iter().filter(|step| matches!(step, Step::Steer)).count();
        let injected = bench.events.iter().filter(|event| matches!(event, EventKind::SteeringInjected { .. })).count();
        prop_assert!(injected <= steered, "nothing is delivered twice");
    }

    #[test]
    fn the_same_inputs_give_the_same_actions(steps in proptest::collection::vec(step(), 1..40)) {
        let run = || {
            let mut bench = Bench::new();
            steps.iter().for_each(|step| take(&mut bench, step));
            (bench.requests, bench.events, bench.outcomes, bench.wanted)
        };
        prop_assert_eq!(run(), run());
    }

    /// However a session got to where it is, it can be brought to an end.
    #[test]
    fn abort_always_comes_to_an_end(steps in proptest::collection::vec(step(), 0..60)) {
        let mut bench = Bench::new();
        steps.iter().for_each(|step| take(&mut bench, step));
        bench.tell(InputKind::Abort);
        bench.failed(ErrorKind::Abort, "");
        for index in 0..4 {
            bench.tell(InputKind::ToolLost { call: bench.key(index) });
        }
        bench.tell(InputKind::CleanedUp);
        prop_assert_eq!(bench.machine.state(), SessionState::Closed);
        prop_assert_eq!(bench.outcomes.len() as u64, bench.runs, "every run has its outcome");
        prop_assert_eq!(in_place(&bench.events), Ok(()));
    }
}
