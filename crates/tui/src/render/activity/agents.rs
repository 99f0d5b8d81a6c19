//! Tree of the subagents, with the state of each.

use std::time::Duration;

use pintle_agent::{EventKind, SessionEvent, SessionId, SubagentStatus};

use super::{ActivityLine, RunningCall};
use crate::render::line::Face;
use crate::render::summary;

/// Maximum number of subagents shown. Working subagents come first.
const MAX_SHOWN: usize = 8;

/// Subagents in the order of the tree: each one precedes the subagents that it has started.
#[derive(Debug, Default)]
pub(super) struct Agents {
    agents: Vec<Agent>,
}

#[derive(Debug)]
struct Agent {
    session: SessionId,
    name: String,
    task: String,
    /// Depth of the parent session.
    depth: u32,
    state: AgentState,
    /// Time at which the state started.
    since: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgentState {
    Working,
    /// Has ended its work and waits for more input.
    Answered,
    Failed,
    Closed(SubagentStatus),
}

impl Agents {
    /// Processes an event of the session or of a subagent.
    pub(super) fn event(&mut self, event: &SessionEvent, now: Duration) {
        if let EventKind::SubagentSpawned { agent_id, child, task } = &event.kind {
            self.add(event, agent_id, child, task, now);
        } else if let EventKind::SubagentEnded { child, status, .. } = &event.kind {
            self.set(child, AgentState::Closed(*status), now);
        } else if event.depth == 0 {
            if let EventKind::UserInput { .. } | EventKind::ProcessingEnd { .. } = &event.kind {
                self.agents.retain(|agent| agent.state == AgentState::Working);
            } else if let EventKind::SessionEnd { .. } = &event.kind {
                self.agents.clear();
            }
        } else if let EventKind::UserInput { .. } | EventKind::RequestPrepared { .. } = &event.kind {
            self.set(&event.session_id, AgentState::Working, now);
        } else if let EventKind::Error { .. } = &event.kind {
            self.set(&event.session_id, AgentState::Failed, now);
        } else if let EventKind::ProcessingEnd { .. } | EventKind::SessionEnd { .. } = &event.kind {
            self.set_if_working(&event.session_id, AgentState::Answered, now);
        }
    }

    fn add(&mut self, event: &SessionEvent, agent_id: &str, child: &SessionId, task: &str, now: Duration) {
        let parent = self.agents.iter().position(|agent| agent.session == event.session_id);
        let behind = parent.map_or(0, |parent| parent + 1);
        // Insert after all descendants of the parent.
        let is_below = |agent: &&Agent| agent.depth >= event.depth;
        let place = behind + self.agents.iter().skip(behind).take_while(is_below).count();
        let agent = Agent {
            session: child.clone(),
            name: summary::one_line(agent_id, summary::MAX_CHARS),
            task: summary::one_line(task, summary::MAX_CHARS),
            depth: event.depth,
            state: AgentState::Working,
            since: now,
        };
        self.agents.insert(place, agent);
    }

    fn set(&mut self, session: &SessionId, state: AgentState, now: Duration) {
        let agent = self.agents.iter_mut().find(|agent| agent.session == *session);
        if let Some(agent) = agent.filter(|agent| agent.state != state) {
            (agent.state, agent.since) = (state, now);
        }
    }

    fn set_if_working(&mut self, session: &SessionId, state: AgentState, now: Duration) {
        let agent = self.agents.iter().find(|agent| agent.session == *session);
        if agent.is_some_and(|agent| agent.state == AgentState::Working) {
            self.set(session, state, now);
        }
    }

    /// Returns whether any subagent is working.
    pub(super) fn is_busy(&self) -> bool {
        self.agents.iter().any(|agent| agent.state == AgentState::Working)
    }

    /// Returns whether the tree contains a subagent with this session.
    pub(super) fn contains(&self, session: &SessionId) -> bool {
        self.agents.iter().any(|agent| agent.session == *session)
    }

    /// Returns a line for each subagent, with its newest call.
    pub(super) fn lines(&self, calls: &[RunningCall], now: Duration) -> Vec<ActivityLine> {
        let mut shown: Vec<&Agent> = self.agents.iter().collect();
        if shown.len() > MAX_SHOWN {
            shown.retain(|agent| agent.state == AgentState::Working);
            shown.truncate(MAX_SHOWN);
        }
        let mut lines: Vec<ActivityLine> = shown.iter().map(|agent| agent.line(calls, now)).collect();
        let more = self.agents.len() - shown.len();
        if more > 0 {
            let more = format!("… {}", summary::plural(more as u64, "more subagent"));
            lines.push(ActivityLine::separated([(Face::DIM, more)]));
        }
        lines
    }
}

impl Agent {
    fn line(&self, calls: &[RunningCall], now: Duration) -> ActivityLine {
        let indent = "  ".repeat(usize::try_from(self.depth).unwrap_or_default());
        let name = (Face::DIM, self.name.clone());
        let (face, mark, state) = match self.state {
            AgentState::Working => return self.at_work(calls, now).indented(&indent),
            AgentState::Answered => (Face::SUCCESS, "✓", "answered"),
            AgentState::Failed | AgentState::Closed(SubagentStatus::Failed) => (Face::FAILURE, "✗", "failed"),
            AgentState::Closed(SubagentStatus::Completed) => (Face::SUCCESS, "✓", "completed"),
            AgentState::Closed(SubagentStatus::Running | _) => (Face::BOLD, "•", "closed"),
        };
        let mark = (face, mark.to_owned());
        let parts = [mark, name, (Face::PLAIN, state.to_owned()), (Face::DIM, self.task.clone())];
        ActivityLine::separated(parts).indented(&indent)
    }

    /// Returns the line of a working subagent: its newest running call, or its task.
    fn at_work(&self, calls: &[RunningCall], now: Duration) -> ActivityLine {
        let name = (Face::DIM, self.name.clone());
        let mut calls = calls.iter().filter(|call| call.session == self.session);
        let Some(newest) = calls.next_back() else {
            return ActivityLine::new(now, self.since, [name, (Face::PLAIN, self.task.clone())]);
        };
        let tool = (Face::BOLD, newest.tool_name.clone());
        let more = match calls.count() {
            0 => String::new(),
            more => format!("and {more} more"),
        };
        let parts = [name, tool, (Face::PLAIN, newest.subject.clone()), (Face::DIM, more)];
        ActivityLine::new(now, newest.since, parts)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::render::activity::Activity;
    use crate::render::live_region::TerminalSize;

    #[derive(Default)]
    struct Tree {
        activity: Activity,
    }

    impl Tree {
        /// Takes an event of a session, at its depth.
        fn event(&mut self, session: &str, depth: u32, kind: &str, data: &Value) -> &mut Self {
            let record = json!({
                "seq": 0, "timestamp": "2026-01-02T03:04:05.000Z", "session_id": session, "depth": depth,
                "kind": kind, "data": data,
            });
            let event: SessionEvent = serde_json::from_value(record).unwrap();
            self.activity.event(&event, (depth > 0).then_some(session), Duration::ZERO);
            self
        }

        fn spawns(&mut self, parent: &str, depth: u32, child: &str) -> &mut Self {
            let data =
                json!({"agent_id": format!("agent_{child}"), "child": child, "task": format!("Do {child}.")});
            self.event(parent, depth, "SUBAGENT_SPAWNED", &data)
        }

        fn calls(&mut self, session: &str, depth: u32, call_id: &str, command: &str) -> &mut Self {
            let data = json!({"call_id": call_id, "tool_name": "shell", "arguments": {"command": command}});
            self.event(session, depth, "TOOL_CALL_START", &data)
        }

        fn shown(&self) -> String {
            let size = TerminalSize { columns: 60, rows: 24 };
            let lines = self.activity.lines(Duration::from_millis(2_000), size);
            lines.iter().map(|line| line.text() + "\n").collect()
        }
    }

    #[test]
    fn subagents_are_shown_as_a_tree_with_their_states() {
        let mut tree = Tree::default();
        tree.spawns("s", 0, "a").spawns("s", 0, "b").spawns("a", 1, "c").spawns("a", 1, "d");
        tree.calls("b", 1, "1", "make").calls("b", 1, "2", "ls").calls("d", 2, "1", "cargo test");
        insta::assert_snapshot!(tree.shown(), @"
        ⠋ agent_a Do a. 2 s
          ⠋ agent_c Do c. 2 s
          ⠋ agent_d shell cargo test 2 s
        ⠋ agent_b shell ls and 1 more 2 s
        ");
        let ended = json!({"agent_id": "agent_d", "child": "d", "status": "FAILED", "turns_used": 1});
        tree.event("c", 2, "PROCESSING_END", &json!({"state": "IDLE"}));
        tree.event("a", 1, "SUBAGENT_ENDED", &ended);
        tree.event(
            "b",
            1,
            "ERROR",
            &json!({"error": {"kind": "server", "message": "down", "retry": "never"}}),
        );
        tree.event("b", 1, "PROCESSING_END", &json!({"state": "IDLE"}));
        insta::assert_snapshot!(tree.shown(), @"
        ⠋ agent_a Do a. 2 s
          ✓ agent_c answered Do c.
          ✗ agent_d failed Do d.
        ✗ agent_b failed Do b.
        ");
        tree.event("c", 2, "USER_INPUT", &json!({"content": "more"}));
        assert!(tree.shown().contains("  ⠋ agent_c Do c."), "{}", tree.shown());
        tree.event("s", 0, "PROCESSING_END", &json!({"state": "IDLE"}));
        insta::assert_snapshot!(tree.shown(), @"
        ⠋ agent_a Do a. 2 s
          ⠋ agent_c Do c. 2 s
        ");
    }

    #[test]
    fn subagents_that_work_are_shown_first() {
        let mut tree = Tree::default();
        for child in 0..MAX_SHOWN + 4 {
            tree.spawns("s", 0, &child.to_string());
        }
        for child in 0..3 {
            tree.event(&child.to_string(), 1, "PROCESSING_END", &json!({"state": "IDLE"}));
        }
        let shown = tree.shown();
        assert_eq!(shown.lines().count(), MAX_SHOWN + 1, "{shown}");
        assert!(!shown.contains("answered") && shown.ends_with("… 4 more subagents\n"), "{shown}");
    }

    #[test]
    fn nothing_is_shown_when_all_have_ended() {
        let mut tree = Tree::default();
        tree.spawns("s", 0, "a").event("a", 1, "PROCESSING_END", &json!({"state": "IDLE"}));
        assert!(!tree.activity.is_busy());
        assert_eq!(tree.shown(), "");
    }
}
