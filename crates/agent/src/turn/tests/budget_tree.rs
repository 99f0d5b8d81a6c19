//! Property of a tree of sessions: whatever its members do, and whenever they die, the providers never count more than the
//! root's limit.

use std::collections::VecDeque;

use pintle_test_conditions::cases;
use proptest::prelude::*;

use super::*;
use crate::protocol::{SessionId, SubagentSettings, SubagentStatus};

const AGENTS: [&str; 3] = ["one", "two", "three"];

/// Next step of a member of the tree.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Its model replies, with this share of the output that it may have.
    Reply(u64),
    /// Its model call breaks after this share.
    Break(u64),
    /// The same, and it is retried.
    Retry(u64),
    Interrupt,
    /// A run begins, unless one is under way.
    Submit,
    /// Its newest message to the parent arrives, and the answer to it.
    Deliver,
    End,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// Of the root, and of subagents after it.
    Deed(usize, Deed),
    /// All processes die and are resumed. Messages on their way are lost.
    Crash,
}

fn event() -> impl Strategy<Value = Event> {
    let share = 0_u64..=100;
    let deed = prop_oneof![
        6 => share.clone().prop_map(Deed::Reply),
        1 => share.clone().prop_map(Deed::Break),
        1 => share.prop_map(Deed::Retry),
        1 => Just(Deed::Interrupt),
        5 => Just(Deed::Submit),
        8 => Just(Deed::Deliver),
        1 => Just(Deed::End),
    ];
    prop_oneof![20 => (0_usize..4, deed).prop_map(|(member, deed)| Event::Deed(member, deed)), 1 => Just(Event::Crash)]
}

struct Member {
    harness: Harness,
    /// Requests whose attempts have ended.
    answered: usize,
    /// To its parent.
    messages: VecDeque<InputKind>,
    asked: Option<u64>,
    has_ended: bool,
}

impl Member {
    fn new(harness: Harness) -> Self {
        Self { harness, answered: 0, messages: VecDeque::new(), asked: None, has_ended: false }
    }

    /// Returns the most output of the attempt under way.
    fn attempt(&self) -> Option<u64> {
        let request = self.harness.requests.get(self.answered)?;
        matches!(self.harness.machine.phase, Phase::AwaitingModel(_))
            .then(|| request.max_tokens.unwrap_or(50))
    }

    fn load(&mut self) {
        if matches!(self.harness.machine.phase, Phase::LoadingContext { .. }) {
            let mut context = TurnContext::new("p", "m", "system", 10_000);
            context.max_tokens = Some(50);
            self.harness.load_this(context);
        }
    }

    /// Queues what a subagent tells its parent.
    fn report(&mut self, agent: &str) {
        let agent = agent.to_owned();
        let account = self.harness.machine.account();
        self.messages.push_back(InputKind::ChildAccount { agent: agent.clone(), account });
        if let Some((ask, has, wants)) = self.harness.asked
            && self.asked != Some(ask)
        {
            self.asked = Some(ask);
            self.messages.push_back(InputKind::ChildAsked { agent, ask, has, wants, unpriced: None });
        }
    }
}

/// The root and its subagents.
struct Tree {
    members: Vec<Member>,
    /// True counts of the providers.
    truth: u64,
}

impl Tree {
    fn new(limit: u64) -> Self {
        let budget = Limits::default().with_tokens(limit);
        let root = Harness::with(TurnLimits { budget, ..TurnLimits::default() });
        let mut tree = Self { members: vec![Member::new(root)], truth: 0 };
        for agent in AGENTS {
            tree.members[0].harness.tell(InputKind::ChildSpawned {
                agent: agent.into(),
                session: SessionId::new(agent),
                task: "look".into(),
                call_id: None,
                settings: SubagentSettings::default(),
            });
            let limits = tree.members[0].harness.machine.subagent_limits();
            let mut child = Harness::subagent(limits);
            child.is_stored = false;
            tree.members.push(Member::new(child));
        }
        tree.members[0].harness.is_stored = false;
        tree
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Crash => self.crash(),
            Event::Deed(index, Deed::Deliver) => self.deliver(index),
            Event::Deed(index, Deed::End) => self.end(index),
            Event::Deed(index, deed) => {
                let Some(member) = self.members.get_mut(index).filter(|member| !member.has_ended) else {
                    return;
                };
                self.truth += act(member, deed);
                if let Some(agent) = index.checked_sub(1).and_then(|index| AGENTS.get(index)) {
                    member.report(agent);
                }
            }
        }
    }

    fn deliver(&mut self, index: usize) {
        let Some(agent) = index.checked_sub(1).and_then(|index| AGENTS.get(index)) else { return };
        let Some(message) = self.members[index].messages.pop_front() else { return };
        let asked = match &message {
            InputKind::ChildAsked { ask, .. } => Some(*ask),
            _ => None,
        };
        self.members[0].harness.tell(message);
        if let (Some(ask), Some(slice)) = (asked, self.members[0].harness.granted.get(*agent).copied()) {
            let member = &mut self.members[index];
            member.harness.tell(InputKind::BudgetGranted { ask, slice, short: None, failure: None });
            member.load();
            member.report(agent);
        }
    }

    fn end(&mut self, index: usize) {
        let Some(agent) = index.checked_sub(1).and_then(|index| AGENTS.get(index)) else { return };
        let member = &mut self.members[index];
        // Everything that it does is stopped first.
        self.truth += act(member, Deed::Interrupt);
        member.report(agent);
        while !self.members[index].messages.is_empty() {
            self.deliver(index);
        }
        self.members[index].has_ended = true;
        self.members[0].harness.tell(InputKind::ChildEnded {
            agent: (*agent).into(),
            status: SubagentStatus::Completed,
            turns_used: 1,
            output: String::new(),
            reason: None,
            warning: None,
        });
    }

    fn crash(&mut self) {
        for (index, member) in
            self.members.iter_mut().enumerate().skip(1).filter(|(_, member)| !member.has_ended)
        {
            member.messages.clear();
            // Nobody saw how the attempt ended.
            self.truth += member.attempt().map_or(0, |most| 10 + most);
            member.answered = member.harness.requests.len();
            member.harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
            member.load();
            member.report(AGENTS[index - 1]);
        }
        let open = (1..self.members.len()).filter(|index| !self.members[*index].has_ended);
        let attached = open.map(|index| AGENTS[index - 1].to_owned()).collect();
        let root = &mut self.members[0];
        self.truth += root.attempt().map_or(0, |most| 10 + most);
        root.answered = root.harness.requests.len();
        root.harness.tell(InputKind::Resumed { attached, asks: None });
        root.load();
    }
}

/// Does something, and returns what the provider counts for it in truth.
fn act(member: &mut Member, deed: Deed) -> u64 {
    let attempt = member.attempt();
    let counted = |share: u64| 10 + attempt.unwrap_or(0) * share / 100;
    let spent = match (deed, attempt) {
        (Deed::Reply(share), Some(most)) => {
            member.answered += 1;
            let usage = Usage::new(10, most * share / 100);
            let response = Response::new("p", "m", Message::assistant("done")).with_usage(usage);
            let model_call = member.harness.model_call();
            member.harness.tell(InputKind::ModelReplied { model_call, response: Box::new(response) });
            counted(share)
        }
        (Deed::Break(share), Some(_)) => {
            member.answered += 1;
            member.harness.failed(ErrorKind::Stream, "");
            counted(share)
        }
        (Deed::Retry(share), Some(_)) => {
            let error = Error::new(ErrorKind::Stream, "x").info().clone();
            let (model_call, delay) = (member.harness.model_call(), Duration::ZERO);
            member.harness.wanted.clear();
            member.harness.tell(InputKind::ModelRetrying { model_call, attempt: 1, delay, error });
            if member.harness.wanted.iter().any(|wanted| wanted == "cancel model") {
                member.answered += 1;
                member.harness.failed(ErrorKind::Abort, "");
            }
            counted(share)
        }
        (Deed::Interrupt, _) => {
            member.harness.tell(InputKind::Interrupt);
            if attempt.is_some() {
                member.answered += 1;
                member.harness.failed(ErrorKind::Abort, "");
            }
            attempt.map_or(0, |_| counted(50))
        }
        (Deed::Submit, None) => {
            member.harness.submit("go");
            0
        }
        _ => 0,
    };
    member.load();
    spent
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(100, 300), ..ProptestConfig::default() })]

    #[test]
    fn tree_never_exceeds_the_limit_of_its_root(
        limit in 0_u64..1_500,
        events in proptest::collection::vec(event(), 1..120),
    ) {
        let mut tree = Tree::new(limit);
        for event in &events {
            tree.take(*event);
            let under_way: u64 =
                tree.members.iter().filter_map(Member::attempt).map(|most| 10 + most).sum();
            prop_assert!(tree.truth + under_way <= limit, "{} of {limit} after {event:?}", tree.truth + under_way);
        }
    }
}

/// The property is not empty: a limit is used to the end.
#[test]
fn tree_uses_what_it_has() {
    let mut tree = Tree::new(2_000);
    for _ in 0..40 {
        for member in 0..4 {
            for deed in [Deed::Submit, Deed::Deliver, Deed::Deliver, Deed::Reply(100), Deed::Deliver] {
                tree.take(Event::Deed(member, deed));
            }
        }
    }
    assert!(tree.truth > 1_800, "{}", tree.truth);
}
