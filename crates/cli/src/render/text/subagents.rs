//! What subagents do, between the lines of the session itself: whole lines, each with the name of who it is about.

use pintle_agent::{EventKind, SessionEvent};

use super::super::agents::{below, call_key_of};
use super::{Block, Detail, Highlight, LINE, TextView, summary};

impl TextView {
    /// What an event of a subagent adds. It never stands within a text that the model still writes.
    pub(super) fn of_agent(&mut self, agent: String, event: &SessionEvent) -> String {
        // A question cannot wait, and what is asked must stand before it.
        let is_question = matches!(event.kind, EventKind::ApprovalRequested { .. });
        if self.is_streaming() && !is_question {
            self.later.push((agent, event.clone()));
            return String::new();
        }
        self.agents_lines(&agent, event)
    }

    /// What had to wait for the end of a text.
    pub(super) fn waited(&mut self) -> String {
        if self.is_streaming() {
            return String::new();
        }
        let later = std::mem::take(&mut self.later);
        later.iter().map(|(agent, event)| self.agents_lines(agent, event)).collect()
    }

    /// That a subagent of `parent` begins or ends; nothing for other events.
    pub(super) fn about_agents(&mut self, parent: Option<&str>, kind: &EventKind) -> String {
        if let EventKind::SubagentSpawned { agent_id, task, .. } = kind {
            self.note(&below(parent, agent_id), &format!("begins: {task}"))
        } else if let EventKind::SubagentEnded { agent_id, status, turns_used, .. } = kind {
            let answers = summary::plural(*turns_used, "answer");
            self.note(&below(parent, agent_id), &format!("{status}, {answers}"))
        } else {
            String::new()
        }
    }

    fn is_streaming(&self) -> bool {
        matches!(self.last, Block::Text | Block::Reasoning)
    }

    fn agents_lines(&mut self, agent: &str, event: &SessionEvent) -> String {
        if let EventKind::ToolCallStart { call_id, arguments, .. } = &event.kind {
            self.calls.insert(call_key_of(event, call_id), summary::arguments(arguments));
            String::new()
        } else if let EventKind::ToolCallEnd { call_id, .. } = &event.kind {
            let subject = self.calls.remove(&call_key_of(event, call_id)).unwrap_or_default();
            let agent = self.style.highlight(Highlight::Faint, &format!("[{}]", summary::one_line(agent, LINE)));
            self.call_lines(&format!("{agent} "), &subject, &event.kind)
        } else if let EventKind::AssistantTextEnd { text, .. } = &event.kind {
            if text.trim().is_empty() { String::new() } else { self.note(agent, text) }
        } else if let EventKind::ApprovalRequested { tool_name, reason, .. } = &event.kind {
            self.note(agent, &format!("{tool_name} waits for a decision: {reason}"))
        } else if let EventKind::SteeringInjected { content } = &event.kind {
            self.note(agent, &format!("is told: {content}"))
        } else if let EventKind::LoopDetection { message }
        | EventKind::HistoryRepaired { message }
        | EventKind::Warning { message } = &event.kind
        {
            self.note(agent, message)
        } else if let EventKind::Error { error } = &event.kind {
            self.note(agent, &format!("error: {error}"))
        } else if let EventKind::ModelResponse { .. } = &event.kind
            && self.detail == Detail::Verbose
        {
            let answer = self.verbose(&event.kind);
            answer.replacen("[answer]", &format!("[{agent} answer]"), 1)
        } else {
            self.about_agents(Some(agent), &event.kind)
        }
    }
}
