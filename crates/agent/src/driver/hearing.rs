//! Whom the driver listens to: the host, and the tasks that it has started.

use tokio::sync::mpsc;

use super::{Command, Report};

/// One thing that the driver is told.
#[derive(Debug)]
pub(super) enum Heard {
    /// By the host; `None` if nobody can reach the session any more.
    Command(Option<Command>),
    /// By a task.
    Report(Report),
}

/// Commands and reports are heard in turns, so that neither of them, however many, holds up the others for ever.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// The last was a command.
    report_is_next: bool,
}

impl Hearing {
    /// The next command or report. Cancel safe.
    pub(super) async fn next(
        &mut self,
        commands: &mut mpsc::Receiver<Command>,
        reports: &mut mpsc::Receiver<Report>,
    ) -> Heard {
        let heard = if self.report_is_next {
            tokio::select! {
                biased;
                Some(report) = reports.recv() => Heard::Report(report),
                command = commands.recv() => Heard::Command(command),
            }
        } else {
            tokio::select! {
                biased;
                command = commands.recv() => Heard::Command(command),
                Some(report) = reports.recv() => Heard::Report(report),
            }
        };
        self.report_is_next = matches!(heard, Heard::Command(_));
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::InputKind;

    /// What is heard of so many commands and reports that wait, in a word.
    async fn heard(commands: usize, reports: usize) -> String {
        let (to_commands, mut inbox) = mpsc::channel(8);
        let (to_reports, mut reported) = mpsc::channel(8);
        for _ in 0..commands {
            to_commands.try_send(Command::Interrupt).unwrap();
        }
        for _ in 0..reports {
            to_reports.try_send(Report::Input(Box::new(InputKind::CleanedUp))).unwrap();
        }
        let (mut hearing, mut word) = (Hearing::default(), String::new());
        for _ in 0..commands + reports {
            word.push(match hearing.next(&mut inbox, &mut reported).await {
                Heard::Command(Some(_)) => 'c',
                Heard::Report(_) => 'r',
                Heard::Command(None) => '-',
            });
        }
        word
    }

    #[tokio::test]
    async fn commands_and_reports_take_turns_and_neither_waits_for_one_that_does_not_come() {
        let rows = [(3, 3, "crcrcr"), (4, 1, "crccc"), (1, 4, "crrrr"), (0, 2, "rr"), (2, 0, "cc")];
        for (commands, reports, expected) in rows {
            assert_eq!(heard(commands, reports).await, expected);
        }
    }

    #[tokio::test]
    async fn that_nobody_can_reach_the_session_is_heard_too() {
        let (sender, mut commands) = mpsc::channel(1);
        let (_reports, mut reported) = mpsc::channel(1);
        drop(sender);
        let heard = Hearing::default().next(&mut commands, &mut reported).await;
        assert!(matches!(heard, Heard::Command(None)), "{heard:?}");
    }
}
