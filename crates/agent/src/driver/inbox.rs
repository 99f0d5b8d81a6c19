//! Inbox of the driver: commands of the embedding application and reports of the session's tasks.

use tokio::sync::mpsc;

use super::{Report, SentCommand};

/// Message to the driver.
#[derive(Debug)]
pub(super) enum Message {
    /// Command; `None` once all handles of the session are dropped.
    Command(Option<SentCommand>),
    /// Report of a task.
    Report(Report),
}

/// Alternates between commands and reports, so that neither can starve the other.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// Whether the last message was a command.
    report_is_next: bool,
    ignores_commands: bool,
}

impl Inbox {
    /// Returns only reports from now on.
    pub(super) fn ignore_commands(&mut self) {
        self.ignores_commands = true;
    }

    /// Returns the next command or report. Cancel safe.
    pub(super) async fn next(
        &mut self,
        commands: &mut mpsc::Receiver<SentCommand>,
        reports: &mut mpsc::Receiver<Report>,
    ) -> Message {
        let message = if self.report_is_next {
            tokio::select! {
                biased;
                Some(report) = reports.recv() => Message::Report(report),
                command = commands.recv(), if !self.ignores_commands => Message::Command(command),
                // The driver owns a sender of reports.
                else => std::future::pending().await,
            }
        } else {
            tokio::select! {
                biased;
                command = commands.recv(), if !self.ignores_commands => Message::Command(command),
                Some(report) = reports.recv() => Message::Report(report),
                else => std::future::pending().await,
            }
        };
        self.report_is_next = matches!(message, Message::Command(_));
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Command;
    use crate::protocol::InputKind;

    /// Order in which this many waiting commands and reports are received: `c` or `r` for each.
    async fn order(commands: usize, reports: usize) -> String {
        let (command_sender, mut command_receiver) = mpsc::channel(8);
        let (report_sender, mut report_receiver) = mpsc::channel(8);
        for _ in 0..commands {
            let command = SentCommand { command: Command::Interrupt, by: None };
            command_sender.try_send(command).unwrap();
        }
        for _ in 0..reports {
            report_sender.try_send(Report::Input(Box::new(InputKind::CleanedUp))).unwrap();
        }
        let (mut inbox, mut order) = (Inbox::default(), String::new());
        for _ in 0..commands + reports {
            order.push(match inbox.next(&mut command_receiver, &mut report_receiver).await {
                Message::Command(Some(_)) => 'c',
                Message::Report(_) => 'r',
                Message::Command(None) => '-',
            });
        }
        order
    }

    #[tokio::test]
    async fn commands_and_reports_alternate_without_waiting() {
        let cases = [(3, 3, "crcrcr"), (4, 1, "crccc"), (1, 4, "crrrr"), (0, 2, "rr"), (2, 0, "cc")];
        for (commands, reports, expected) in cases {
            assert_eq!(order(commands, reports).await, expected);
        }
    }

    #[tokio::test]
    async fn dropped_senders_are_reported() {
        let (sender, mut commands) = mpsc::channel(1);
        let (_reports, mut report_receiver) = mpsc::channel(1);
        drop(sender);
        let message = Inbox::default().next(&mut commands, &mut report_receiver).await;
        assert!(matches!(message, Message::Command(None)), "{message:?}");
    }
}
