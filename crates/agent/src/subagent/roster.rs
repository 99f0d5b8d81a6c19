//! The subagents of one session: between its driver and its tools.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pintle_tools::{ToolError, ToolErrorKind};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::origin::Lineage;
use super::report::Report;
use super::tool::Order;
use super::worker::{Desk, Worker};
use super::{Blueprint, PastSubagent};
use crate::profile::ProviderProfile;
use crate::protocol::{
    InputKind, SessionId, Spent, SubagentLimits, SubagentOrigin, SubagentStatus, agent_name, agent_number,
};

/// Closed subagents whose results are kept.
const MAX_CLOSED: usize = 64;

/// The smallest window, in tokens, in which the tools leave room for the work.
const SMALLEST_WINDOW: u64 = 16_384;

/// Messages that may wait for one subagent.
const MAX_MESSAGES: usize = 64;

/// The driver's hold of its subagents. Dropping it ends them all at once; [`Subagents::close`] does so in order.
#[derive(Debug)]
pub(crate) struct Subagents {
    roster: Arc<Roster>,
    told: watch::Receiver<u64>,
    /// How much of the news was taken.
    taken: u64,
}

/// What the tools of a session see of its subagents.
#[derive(Debug)]
pub(crate) struct Roster {
    session: SessionId,
    lineage: Lineage,
    limits: SubagentLimits,
    state: Mutex<State>,
    /// Told whenever there is news for the driver; counts them.
    news: watch::Sender<u64>,
    /// How much of the news the turn machine has.
    known: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    agents: Vec<Agent>,
    /// The number of the newest name.
    drawn: u64,
    /// Names up to this number stand in a history that comes from another session.
    inherited: u64,
    /// What the driver has drawn for calls that are about to spawn, by call id.
    orders: HashMap<String, (String, Blueprint)>,
    news: VecDeque<InputKind>,
    tasks: JoinSet<()>,
    is_closed: bool,
}

/// One subagent, as its parent's tools know it.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) desk: Arc<watch::Sender<Desk>>,
    closing: CancellationToken,
}

impl Agent {
    /// How things stand.
    pub(super) fn report(&self) -> Report {
        self.desk.borrow().report.clone()
    }

    fn is_running(&self) -> bool {
        self.desk.borrow().report.status == SubagentStatus::Running
    }

    fn is_closed(&self) -> bool {
        self.desk.borrow().is_closed
    }

    /// Waits until it does not run.
    pub(super) async fn rest(&self) -> Report {
        let mut desk = self.desk.subscribe();
        match desk.wait_for(|desk| desk.report.status != SubagentStatus::Running).await {
            Ok(desk) => desk.report.clone(),
            // Its sender is held here.
            Err(_) => self.report(),
        }
    }

    /// Puts a message before it; with `interrupt` it drops what it does first.
    pub(super) fn tell(&self, message: String, interrupt: bool) -> Result<(), ToolError> {
        let mut refused = None;
        self.desk.send_if_modified(|desk| {
            refused = if desk.is_closed || self.closing.is_cancelled() {
                Some(format!("{} is closed", self.name))
            } else if desk.messages.len() >= MAX_MESSAGES {
                Some(format!("{MAX_MESSAGES} messages wait for {} already", self.name))
            } else {
                desk.interrupt |= interrupt && desk.report.status == SubagentStatus::Running;
                desk.messages.push_back(message);
                desk.report.status = SubagentStatus::Running;
                None
            };
            refused.is_none()
        });
        refused.map_or(Ok(()), |message| Err(ToolError::new(ToolErrorKind::Failed, message)))
    }

    /// Stops what it does and takes away what it was to do next.
    fn interrupt(&self) {
        self.desk.send_if_modified(|desk| {
            let runs = desk.report.status == SubagentStatus::Running;
            desk.interrupt |= runs;
            if runs {
                desk.messages.clear();
            }
            runs
        });
    }

    /// Closes it and waits for the end.
    pub(super) async fn close(&self) -> Report {
        self.closing.cancel();
        let mut desk = self.desk.subscribe();
        match desk.wait_for(|desk| desk.is_closed).await {
            Ok(desk) => desk.report.clone(),
            Err(_) => self.report(),
        }
    }
}

impl Subagents {
    pub(crate) fn new(session: SessionId, lineage: Lineage, limits: SubagentLimits) -> Self {
        let (news, told) = watch::channel(0);
        let roster =
            Roster { session, lineage, limits, state: Mutex::default(), news, known: watch::Sender::new(0) };
        Self { roster: Arc::new(roster), told, taken: 0 }
    }

    /// The profile with the tools for subagents, if the session may have any. A tool of the host's that has the name of
    /// one of them stays.
    pub(crate) fn equip(&self, profile: &ProviderProfile) -> ProviderProfile {
        let mut equipped = profile.clone();
        let Some(tools) = profile.subagent_tools else { return equipped };
        let too_deep = self.roster.lineage.depth() >= self.roster.limits.max_depth;
        if too_deep || profile.context_window_size < SMALLEST_WINDOW {
            return equipped;
        }
        tools.register(&mut equipped.tool_registry, &self.roster);
        equipped
    }

    /// Draws a name for the subagent of a call that is about to run. The order of the calls decides, not that in which
    /// they come to the point.
    pub(crate) fn order(&self, call_id: &str, blueprint: Blueprint) {
        let mut state = self.roster.lock();
        state.drawn += 1;
        let name = agent_name(state.drawn);
        state.orders.insert(call_id.to_owned(), (name, blueprint));
    }

    /// Goes on with the names after these, which the agents of another session have.
    pub(crate) fn inherit(&self, named: u64) {
        let mut state = self.roster.lock();
        (state.drawn, state.inherited) = (named, named);
    }

    /// Goes on with the names after those of a record, whose agents are gone and can be asked after.
    pub(crate) fn restore(&self, past: &[PastSubagent], named: u64) {
        let mut state = self.roster.lock();
        let gone = |past: &PastSubagent| {
            let closing = CancellationToken::new();
            closing.cancel();
            Agent { name: past.name.clone(), desk: past.desk(), closing }
        };
        state.agents = past.iter().map(gone).collect();
        state.drawn = named;
    }

    /// Forgets what was drawn for calls that are over.
    pub(crate) fn forget_orders(&self) {
        self.roster.lock().orders.clear();
    }

    /// Waits for news. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        // The sender lives in the roster that this holds.
        let _ = self.told.changed().await;
    }

    /// What the turn machine must know, in order.
    pub(crate) fn news(&mut self) -> VecDeque<InputKind> {
        let mut state = self.roster.lock();
        // Under the lock, under which a spawned subagent is told of, so that none counts as taken that is not.
        self.taken = *self.told.borrow_and_update();
        std::mem::take(&mut state.news)
    }

    /// Whether there may be news.
    pub(crate) fn has_news(&self) -> bool {
        *self.told.borrow() != self.taken
    }

    /// Says that the machine knows what [`Subagents::news`] gave.
    pub(crate) fn known(&self) {
        self.roster.known.send_replace(self.taken);
    }

    /// Has every subagent stop what it does.
    pub(crate) fn interrupt(&self) {
        let agents = self.roster.lock().agents.clone();
        agents.iter().for_each(Agent::interrupt);
    }

    /// Closes every subagent, all at once, and waits for the last.
    pub(crate) async fn close(&self) {
        let mut tasks = self.roster.shut();
        while tasks.join_next().await.is_some() {}
    }
}

impl Drop for Subagents {
    fn drop(&mut self) {
        // Tools that still run hold the roster; the tasks must not wait for them.
        drop(self.roster.shut());
    }
}

impl Roster {
    /// Begins a subagent and gives its name.
    pub(super) async fn spawn(self: &Arc<Self>, call_id: &str, order: Order) -> Result<Agent, ToolError> {
        if order.task.trim().is_empty() {
            return Err(ToolError::new(
                ToolErrorKind::InvalidArguments,
                "the task is empty; say what the subagent should do",
            ));
        }
        let drawn = self.lock().orders.remove(call_id);
        let (name, blueprint) = drawn.ok_or_else(|| failed("no subagent can be spawned here"))?;
        let blueprint = blueprint.adapted(&order).await?;
        let mut state = self.lock();
        self.make_room(&mut state)?;
        let origin = SubagentOrigin {
            agent_id: name.clone(),
            session_id: SessionId::generate(),
            parent: self.session.clone(),
            depth: self.lineage.depth() + 1,
        };
        let above = Above { roster: Arc::downgrade(self), agent: name.clone() };
        let spawned = InputKind::ChildSpawned {
            agent: name.clone(),
            session: origin.session_id.clone(),
            task: order.task.clone(),
        };
        state.news.push_back(spawned);
        let number = self.tell();
        let agent = Agent {
            name,
            desk: Arc::new(watch::Sender::new(Desk::with(order.task))),
            closing: CancellationToken::new(),
        };
        let worker = Worker::new(
            blueprint,
            Lineage {
                tree: Arc::clone(&self.lineage.tree),
                origin: Some(origin),
                above: Some(above.clone()),
            },
            above,
            Arc::clone(&agent.desk),
            agent.closing.clone(),
        );
        let mut known = self.known.subscribe();
        state.tasks.spawn(async move {
            // The parent's log tells of the subagent before the subagent tells of itself.
            tokio::select! {
                biased;
                () = worker.closing() => {}
                _ = known.wait_for(|known| *known >= number) => {}
            }
            worker.run().await;
        });
        state.agents.push(agent.clone());
        Ok(agent)
    }

    /// A place for one more: closed ones are forgotten in time, and one that has finished gives way.
    fn make_room(&self, state: &mut State) -> Result<(), ToolError> {
        if state.is_closed {
            return Err(failed("the session is closing"));
        }
        while state.tasks.try_join_next().is_some() {}
        let closed = state.agents.iter().filter(|agent| agent.is_closed()).count();
        let mut superfluous = closed.saturating_sub(MAX_CLOSED);
        state.agents.retain(|agent| {
            let stays = superfluous == 0 || !agent.is_closed();
            superfluous -= usize::from(!stays);
            stays
        });
        let is_open = |agent: &&Agent| !agent.closing.is_cancelled() && !agent.is_closed();
        let open: Vec<&Agent> = state.agents.iter().filter(is_open).collect();
        if open.len() < self.limits.max_open {
            return Ok(());
        }
        let finished = open.iter().find(|agent| !agent.is_running());
        let finished = finished.ok_or_else(|| {
            failed(format!(
                "{} subagents run already, which is the most at a time; wait for one, or close one",
                open.len()
            ))
        })?;
        finished.closing.cancel();
        Ok(())
    }

    /// The subagent of this name.
    pub(super) fn agent(&self, name: &str) -> Result<Agent, ToolError> {
        let state = self.lock();
        let found = state.agents.iter().find(|agent| agent.name == name.trim());
        found.cloned().ok_or_else(|| {
            if agent_number(name).is_some_and(|number| (1..=state.inherited).contains(&number)) {
                let message = format!(
                    "{} belongs to the session from which this one was forked, and cannot be reached from here",
                    name.trim()
                );
                return ToolError::new(ToolErrorKind::NotFound, message);
            }
            let known: Vec<String> = state.agents.iter().map(described).collect();
            let known = match known.as_slice() {
                [] => "none has been spawned".to_owned(),
                known => format!("there are: {}", known.join(", ")),
            };
            ToolError::new(ToolErrorKind::NotFound, format!("there is no subagent {name:?}; {known}"))
        })
    }

    /// Takes no more, and hands over the tasks of those that are there, which were told to end.
    fn shut(&self) -> JoinSet<()> {
        let mut state = self.lock();
        state.is_closed = true;
        state.agents.iter().for_each(|agent| agent.closing.cancel());
        std::mem::take(&mut state.tasks)
    }

    fn tell(&self) -> u64 {
        let mut number = 0;
        self.news.send_modify(|news| {
            *news += 1;
            number = *news;
        });
        number
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn described(agent: &Agent) -> String {
    let status = if agent.is_closed() { "closed".to_owned() } else { agent.report().status.to_string() };
    format!("{} ({status})", agent.name)
}

fn failed(message: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorKind::Failed, message)
}

/// The way from a subagent to the session that spawned it.
#[derive(Clone, Debug)]
pub(crate) struct Above {
    /// Not held: a parent that is gone needs to know nothing.
    roster: Weak<Roster>,
    agent: String,
}

impl Above {
    /// Tells what was spent.
    pub(crate) fn spent(&self, more: Spent) {
        self.with(|state| {
            if let Some(InputKind::ChildSpent { agent, spent }) = state.news.back_mut()
                && *agent == self.agent
            {
                *spent += more;
            } else {
                state.news.push_back(InputKind::ChildSpent { agent: self.agent.clone(), spent: more });
            }
        });
    }

    /// Tells that the subagent is closed.
    pub(super) fn ended(&self, status: SubagentStatus, turns_used: u64) {
        let agent = self.agent.clone();
        self.with(|state| state.news.push_back(InputKind::ChildEnded { agent, status, turns_used }));
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        if let Some(roster) = self.roster.upgrade() {
            change(&mut roster.lock());
            roster.tell();
        }
    }
}
