//! Events of subagents in a transcript: complete lines, prefixed with the name of the subagent.

use pintle_agent::{EventKind, SessionEvent};

use super::super::subagent_names::{call_key_of, qualified_name};
use super::{Block, Detail, Face, MAX_LINE_CHARS, TextView, plan, summary};

impl TextView {
    /// Returns the output for an event of a subagent, which is deferred while the session streams text.
    pub(super) fn subagent_event(&mut self, agent: String, event: &SessionEvent) -> String {
        // A question cannot be deferred, and its request must precede it.
        let is_question = matches!(event.kind, EventKind::ApprovalRequested { .. });
        if self.is_streaming() && !is_question {
            self.deferred.push((agent, event.clone()));
            return String::new();
        }
        self.subagent_lines(&agent, event)
    }

    /// Returns deferred output, unless the session is streaming text.
    pub(super) fn flush_deferred(&mut self) -> String {
        if self.is_streaming() {
            return String::new();
        }
        let deferred = std::mem::take(&mut self.deferred);
        deferred.iter().map(|(agent, event)| self.subagent_lines(agent, event)).collect()
    }

    /// Returns the line for the start or the end of a subagent of `parent`, or nothing for other events.
    pub(super) fn subagent_lifecycle(&mut self, parent: Option<&str>, kind: &EventKind) -> String {
        if let EventKind::SubagentSpawned { agent_id, task, .. } = kind {
            self.note(&qualified_name(parent, agent_id), &format!("started: {task}"))
        } else if let EventKind::SubagentEnded { agent_id, status, turns_used, .. } = kind {
            let responses = summary::plural(*turns_used, "response");
            self.note(&qualified_name(parent, agent_id), &format!("{status}, {responses}"))
        } else {
            String::new()
        }
    }

    fn is_streaming(&self) -> bool {
        matches!(self.last, Block::Text | Block::Reasoning)
    }

    fn subagent_lines(&mut self, agent: &str, event: &SessionEvent) -> String {
        if let EventKind::ToolCallStart { call_id, tool_name, arguments, .. } = &event.kind {
            self.calls.insert(call_key_of(event, call_id), plan::subject(tool_name, arguments));
            String::new()
        } else if let EventKind::ToolCallEnd { call_id, .. } = &event.kind {
            let subject = self.calls.remove(&call_key_of(event, call_id)).unwrap_or_default();
            let agent = format!("[{}]", summary::one_line(agent, MAX_LINE_CHARS));
            let agent = self.style.paint(&agent, Face::DIM);
            self.call_lines(&format!("{agent} "), &subject, &event.kind)
        } else if let EventKind::AssistantTextEnd { text, .. } = &event.kind {
            if text.trim().is_empty() { String::new() } else { self.note(agent, text) }
        } else if let EventKind::ApprovalRequested { tool_name, reason, .. } = &event.kind {
            self.note(agent, &format!("{tool_name} needs approval: {reason}"))
        } else if let EventKind::SteeringInjected { content, .. } = &event.kind {
            self.note(agent, &format!("steered: {content}"))
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
            let line = self.verbose(&event.kind);
            line.replacen("[response]", &format!("[{agent} response]"), 1)
        } else {
            self.subagent_lifecycle(Some(agent), &event.kind)
        }
    }
}
