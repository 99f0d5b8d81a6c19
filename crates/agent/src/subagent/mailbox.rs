//! The mailbox between a subagent's worker and the senders of its messages.

use std::collections::VecDeque;

use super::report::{INTERRUPTED, Report};
use crate::error::SessionError;
use crate::protocol::SubagentStatus;

/// Maximum number of messages in a mailbox.
pub(super) const MAX_MESSAGES: usize = 64;

/// Messages that a subagent has not received yet, and its latest report.
#[derive(Debug)]
pub(super) struct Mailbox {
    /// Oldest first.
    messages: VecDeque<String>,
    /// Whether to interrupt the current run.
    interrupt: bool,
    /// Once set, no message is accepted and the report is final.
    is_closed: bool,
    /// Whether this process releases the subagent, which stays open.
    is_suspended: bool,
    report: Report,
}

/// One item of a mailbox, for the worker.
#[derive(Debug)]
pub(super) enum Delivery {
    Interrupt,
    Message(String),
}

impl Mailbox {
    /// Creates the mailbox of a subagent with its task as the first message.
    pub(super) fn new(task: String) -> Self {
        Self {
            messages: VecDeque::from([task]),
            interrupt: false,
            is_closed: false,
            is_suspended: false,
            report: Report::running(),
        }
    }

    /// Creates the mailbox of a subagent that is being resumed.
    pub(super) fn resuming() -> Self {
        Self { messages: VecDeque::new(), ..Self::new(String::new()) }
    }

    /// Puts the task before all messages, for a subagent that has not received it.
    pub(super) fn repeat_task(&mut self, task: String) {
        self.messages.push_front(task);
    }

    /// Marks the subagent as released by this process, unless it has finished its work.
    pub(super) fn suspend(&mut self) {
        self.is_suspended = self.report.status != SubagentStatus::Completed;
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Creates the mailbox of a subagent that has ended.
    pub(super) fn closed(report: Report) -> Self {
        Self { is_closed: true, report, ..Self::resuming() }
    }

    pub(super) fn report(&self) -> &Report {
        &self.report
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn is_running(&self) -> bool {
        self.report.status == SubagentStatus::Running
    }

    /// Adds a message. With `interrupt`, the current run is interrupted first.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] for a closed subagent, [`SessionError::Full`] for a full mailbox.
    pub(super) fn post(&mut self, message: String, interrupt: bool) -> Result<(), SessionError> {
        if self.is_closed {
            return Err(SessionError::Closed);
        }
        if self.messages.len() >= MAX_MESSAGES {
            return Err(SessionError::Full(MAX_MESSAGES));
        }
        self.interrupt |= interrupt && self.is_running();
        self.messages.push_back(message);
        self.report.status = SubagentStatus::Running;
        Ok(())
    }

    /// Requests an interrupt and discards unread messages. Returns whether the subagent was running.
    pub(super) fn interrupt(&mut self) -> bool {
        let running = self.is_running();
        if running {
            self.interrupt = true;
            self.messages.clear();
        }
        running
    }

    /// Takes the next item. An interrupt precedes all messages.
    pub(super) fn take(&mut self) -> Option<Delivery> {
        if std::mem::take(&mut self.interrupt) {
            return Some(Delivery::Interrupt);
        }
        self.messages.pop_front().map(Delivery::Message)
    }

    pub(super) fn set_report(&mut self, report: Report) {
        self.report = report;
    }

    /// Marks a subagent as interrupted that had not started on its messages.
    pub(super) fn interrupt_idle(&mut self) {
        if self.messages.is_empty() && self.is_running() {
            self.report = Report::failed(INTERRUPTED, String::new(), self.report.turns_used);
        }
    }

    /// Stores the report of a finished run. The subagent stays running while messages are left.
    pub(super) fn finish_run(&mut self, report: Report) {
        self.interrupt = false;
        self.report = report;
        if !self.messages.is_empty() {
            self.report.status = SubagentStatus::Running;
        }
    }

    /// Closes the mailbox with its final report.
    pub(super) fn close(&mut self, report: Report) {
        self.is_closed = true;
        self.report = report;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(turns_used: u64) -> Report {
        Report {
            status: SubagentStatus::Completed,
            output: "done".into(),
            reason: None,
            warning: None,
            turns_used,
        }
    }

    fn messages(mailbox: &mut Mailbox) -> Vec<String> {
        let taken = std::iter::from_fn(|| mailbox.take());
        taken
            .map(|delivery| match delivery {
                Delivery::Interrupt => "(interrupt)".to_owned(),
                Delivery::Message(message) => message,
            })
            .collect()
    }

    #[test]
    fn an_interrupt_precedes_unread_messages() {
        let mut mailbox = Mailbox::new("task".into());
        mailbox.post("more".into(), true).unwrap();
        assert_eq!(messages(&mut mailbox), ["(interrupt)", "task", "more"]);
    }

    #[test]
    fn an_idle_subagent_is_woken_and_not_interrupted() {
        let mut mailbox = Mailbox::new("task".into());
        messages(&mut mailbox);
        mailbox.finish_run(completed(1));
        assert!(!mailbox.is_running() && !mailbox.interrupt());
        mailbox.post("more".into(), true).unwrap();
        assert!(mailbox.is_running());
        assert_eq!(messages(&mut mailbox), ["more"]);
    }

    #[test]
    fn unread_messages_keep_it_running_after_a_run() {
        let mut mailbox = Mailbox::new("task".into());
        mailbox.finish_run(completed(1));
        assert!(mailbox.is_running());
        messages(&mut mailbox);
        mailbox.finish_run(completed(2));
        assert_eq!((mailbox.is_running(), mailbox.report().turns_used), (false, 2));
    }

    #[test]
    fn a_full_or_closed_mailbox_refuses_messages() {
        let mut mailbox = Mailbox::new("task".into());
        for _ in 1..MAX_MESSAGES {
            mailbox.post("more".into(), false).unwrap();
        }
        assert!(matches!(mailbox.post("one more".into(), false), Err(SessionError::Full(MAX_MESSAGES))));
        mailbox.close(completed(1));
        assert!(matches!(mailbox.post("late".into(), false), Err(SessionError::Closed)));
    }
}
