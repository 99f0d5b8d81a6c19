//! Stops, and goes on when the shell or somebody else has had the terminal.

use std::time::Duration;

use tokio::time::Instant;

use super::Display;
use crate::console::modes;
use crate::failure::{Failure, OrFailure as _};
use crate::terminal::device::{self, Device};

/// How long after the terminal was taken back a continuation may be reported that was the reason for it.
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

    /// Goes on after something else has had the terminal.
    pub(super) async fn come_back(&mut self) -> Result<(), Failure> {
        self.came_back = Some(Instant::now());
        self.draw_below().await
    }

    /// Draws anew below what something else has written, in a window that may have another size by now.
    async fn draw_below(&mut self) -> Result<(), Failure> {
        self.painter.forget();
        self.attention.forget();
        self.resize().await
    }

    /// Goes on after a stop that could not be caught: the shell has set its own modes since.
    pub(in crate::terminal) async fn continued(&mut self, at: Instant) -> Result<(), Failure> {
        if self.came_back.is_some_and(|came_back| at <= came_back + REPORT_TIME) {
            return Ok(());
        }
        modes::enter_again().or_failed("cannot use the terminal")?;
        if device::has_shell() {
            return self.draw_below().await;
        }
        // Nothing else has written.
        self.clear().await?;
        self.resize().await
    }

    /// Takes the terminal back after a panic that did not end the conversation: its report was printed as it would be
    /// without one.
    pub(super) fn survive_panic(&mut self) -> Result<(), Failure> {
        if modes::were_left_by_panic() {
            modes::enter().or_failed("cannot use the terminal")?;
            self.painter.forget();
        }
        Ok(())
    }
}
