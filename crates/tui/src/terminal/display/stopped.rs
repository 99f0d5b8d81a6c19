//! Stops the process, and resumes after the shell or another program had the terminal.

use std::time::Duration;

use pintle_host::failure::{Failure, OrFailure as _};
use tokio::time::Instant;

use super::Display;
use crate::console::modes;
use crate::terminal::device::{self, Device};

/// Maximum delay of the continuation signal for which the terminal was already taken back.
const REPORT_TIME: Duration = Duration::from_millis(100);

impl Display {
    /// Stops this process until the shell continues it.
    pub(in crate::terminal) async fn stop(&mut self, device: &mut Device) -> Result<(), Failure> {
        if !device::has_shell() {
            self.hint("not stopped: there is no shell to go back to");
            return self.draw().await;
        }
        self.close_pager().await?;
        self.clear().await?;
        device.suspend(device::stop_job)?;
        self.come_back().await
    }

    /// Resumes after another program had the terminal.
    pub(super) async fn come_back(&mut self) -> Result<(), Failure> {
        self.came_back = Some(Instant::now());
        self.draw_below().await
    }

    /// Redraws below the output of another program. The window size may have changed.
    async fn draw_below(&mut self) -> Result<(), Failure> {
        self.painter.forget();
        self.attention.forget();
        self.resize().await
    }

    /// Resumes after a stop that could not be caught. The shell has set its own modes since then.
    pub(in crate::terminal) async fn continued(&mut self, at: Instant) -> Result<(), Failure> {
        if self.came_back.is_some_and(|came_back| at <= came_back + REPORT_TIME) {
            return Ok(());
        }
        modes::reenter().or_failed("cannot use the terminal")?;
        if device::has_shell() {
            return self.draw_below().await;
        }
        // No other program has written.
        self.clear().await?;
        self.resize().await
    }

    /// Takes the terminal back after a panic that did not end the conversation. The panic hook has restored the previous
    /// modes to print its report.
    pub(super) fn survive_panic(&mut self) -> Result<(), Failure> {
        if modes::were_left_by_panic() {
            modes::enter().or_failed("cannot use the terminal")?;
            self.painter.forget();
        }
        Ok(())
    }
}
