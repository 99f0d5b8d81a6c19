//! The terminal as a conversation driver uses it: it decodes input, draws the conversation, and recovers after another
//! program had the screen.

mod pasted;
mod stopped;

use std::time::Duration;

use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use tokio::time::Instant;

use super::attention::Attention;
use super::clipboard;
use super::conversation::{Conversation, Effect, FRAME};
use super::device::Device;
use super::external_editor;
use super::keys::{Background, Decoder, ESCAPE_DELAY, Input};
use super::lines::LineReader;
use super::pager::Pager;
use super::painter::{Painter, Region, Screen};
use crate::console::{self, Console, modes};
use crate::interrupt::Interrupts;
use crate::render::StyledLine;

/// Typed keys or lines.
#[derive(Debug)]
pub(super) enum TypedInput {
    Inputs(Vec<Input>),
    /// In plain mode.
    Lines(Vec<String>),
}

/// Conversation on a terminal.
#[derive(Debug)]
pub(super) struct Display {
    pub(super) conversation: Conversation,
    painter: Painter,
    console: Console,
    decoder: Decoder,
    /// Replaces the decoder in plain mode.
    lines: LineReader,
    attention: Attention,
    began: Instant,
    /// Time of the next drawing, if one is due.
    draws_at: Option<Instant>,
    /// Time at which an open escape sequence ends. Other events do not postpone it.
    escape_at: Option<Instant>,
    /// Open while the user looks through the conversation.
    pager: Option<Pager>,
    /// Text for the clipboard, copied with the next drawing.
    clipboard: Option<String>,
    /// Time of the newest piece of an incomplete paste, and whether its hint was shown.
    paste: Option<(Instant, bool)>,
    /// Time at which the terminal was last taken back.
    came_back: Option<Instant>,
}

impl Display {
    pub(super) fn new(conversation: Conversation, screen: Screen, attention: Attention) -> Self {
        let began = Instant::now();
        Self {
            conversation,
            painter: Painter::new(screen),
            console: Console::new(),
            decoder: Decoder::default(),
            lines: LineReader::default(),
            attention,
            began,
            draws_at: Some(began),
            escape_at: None,
            pager: None,
            clipboard: None,
            paste: None,
            came_back: None,
        }
    }

    /// Writes to a buffer from now on, which is returned.
    #[cfg(test)]
    pub(super) fn capture(&mut self) -> std::sync::Arc<std::sync::Mutex<Vec<u8>>> {
        let written = std::sync::Arc::default();
        self.console = Console::captured(std::sync::Arc::clone(&written));
        written
    }

    /// Sends the initial query to the terminal.
    pub(super) async fn ask(&mut self) -> Result<(), Failure> {
        self.console.write(self.attention.question()).await
    }

    /// Returns the time since the conversation started on this display.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Decodes typed bytes.
    pub(super) fn typed(&mut self, piece: &[u8]) -> TypedInput {
        self.attention.typed(self.elapsed());
        if self.conversation.is_plain() {
            return TypedInput::Lines(self.lines.push(piece));
        }
        let inputs = self.decode(piece);
        self.escape_at = self.decoder.is_within_sequence().then(|| Instant::now() + ESCAPE_DELAY);
        TypedInput::Inputs(inputs)
    }

    /// Returns the time at which an open escape sequence becomes a key.
    pub(super) fn escape_at(&self) -> Option<Instant> {
        self.escape_at
    }

    /// Ends an open escape sequence and returns its keys.
    pub(super) fn flush_keys(&mut self) -> Vec<Input> {
        self.escape_at = None;
        self.decoder.flush()
    }

    /// Handles an input and returns the effects.
    pub(super) async fn input(&mut self, input: Input) -> Result<Vec<Effect>, Failure> {
        if let Input::Background(background) = input {
            self.set_background(background);
            return Ok(Vec::new());
        }
        let Some(pager) = &mut self.pager else {
            return Ok(self.conversation.input(input, self.began.elapsed()));
        };
        if !pager.input(&input) {
            self.close_pager().await?;
        }
        Ok(Vec::new())
    }

    /// Handles a line in plain mode.
    pub(super) fn line(&mut self, line: &str) -> Vec<Effect> {
        self.conversation.line(line, self.elapsed())
    }

    /// Handles Ctrl+C that arrived as a signal.
    pub(super) fn interrupt_or_leave(&mut self) -> Vec<Effect> {
        self.conversation.interrupt_or_leave(self.elapsed())
    }

    pub(super) fn set_background(&mut self, background: Background) {
        self.painter.set_background(background);
    }

    /// Copies a text to the clipboard with the next drawing.
    pub(super) fn copy(&mut self, text: String) {
        self.clipboard = Some(text);
    }

    /// Shows a hint for a short time.
    pub(super) fn hint(&mut self, hint: impl Into<String>) {
        self.conversation.hint(hint, self.began.elapsed());
    }

    /// Opens a text in the user's editor, which uses the terminal meanwhile.
    pub(super) async fn edit(
        &mut self,
        text: &str,
        process_env: &ProcessEnv,
        device: &mut Device,
    ) -> Result<(), Failure> {
        self.clear().await?;
        let mut edited = Ok(String::new());
        device.suspend(|| edited = external_editor::edit(text, process_env))?;
        match edited {
            Ok(edited) => self.conversation.set_text(&edited),
            Err(failure) => self.hint(failure.message()),
        }
        self.come_back().await
    }

    /// Shows lines on the alternate screen until the user closes the pager.
    pub(super) async fn look(&mut self, lines: impl FnOnce(usize) -> Vec<StyledLine>) -> Result<(), Failure> {
        let size = console::size();
        self.pager = Some(Pager::new(lines(size.columns.saturating_sub(1).max(1)), size));
        self.console.write(modes::show_other_screen(true)).await
    }

    /// Returns to the conversation. The window size may have changed.
    pub(super) async fn close_pager(&mut self) -> Result<(), Failure> {
        if self.pager.take().is_none() {
            return Ok(());
        }
        self.console.write(modes::show_other_screen(false)).await?;
        self.resize().await
    }

    pub(super) async fn resize(&mut self) -> Result<(), Failure> {
        let size = console::size();
        if let Some(pager) = &mut self.pager {
            pager.resize(size);
            return self.draw().await;
        }
        let erased = self.painter.resize(size);
        self.conversation.resize(size);
        self.console.write(&erased).await?;
        self.draw().await
    }

    /// Erases the region. The next drawing draws it again.
    pub(super) async fn clear(&mut self) -> Result<(), Failure> {
        let erased = self.painter.erase();
        self.console.write(&erased).await
    }

    pub(super) fn draw_soon(&mut self) {
        self.draws_at.get_or_insert_with(|| Instant::now() + FRAME);
    }

    /// Returns the time of the next drawing, if a change is due.
    pub(super) fn next_drawing(&self) -> Option<Instant> {
        let moves = self.conversation.changes_in(self.elapsed()).map(|time| Instant::now() + time);
        self.draws_at.into_iter().chain(moves).min()
    }

    pub(super) async fn draw(&mut self) -> Result<(), Failure> {
        self.draws_at = None;
        self.survive_panic()?;
        if let Some(pager) = &self.pager {
            let rows: Vec<String> =
                pager.visible_rows().iter().map(|row| row.to_terminal(self.painter.depth())).collect();
            return self.console.write(&format!("\x1b[H{}\x1b[K", rows.join("\x1b[K\r\n"))).await;
        }
        let (lines, region) = self.conversation.frame(self.elapsed());
        let mut output = self.painter.paint(&lines, &region);
        if let Some(text) = self.clipboard.take() {
            output.push_str(&clipboard::put(&text));
        }
        output.push_str(&self.attention.update(self.conversation.session_activity(), self.elapsed()));
        self.console.write(&output).await
    }

    /// Prints the remaining lines and erases the region.
    pub(super) async fn finish(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        let (lines, _) = self.conversation.frame(self.elapsed());
        let last = self.painter.paint(&lines, &Region::default()) + &self.painter.erase();
        let written = self.console.write(&last);
        if interrupts.is_interrupted() {
            // Do not wait for a terminal that hangs.
            return tokio::time::timeout(modes::HANG_TIME, written).await.unwrap_or(Ok(()));
        }
        written.await
    }
}
