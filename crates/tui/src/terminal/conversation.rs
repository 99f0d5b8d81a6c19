//! State of the conversation. Pure: keys, events and time go in, lines to print, the live region and effects come out.

mod attachments;
mod more_commands;
mod plain;
mod region;
mod server_questions;

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{ApprovalRequest, EventKind, SessionEvent};
use pintle_host::prompt_commands::{PromptCall, PromptCommand};
use pintle_host::slash_commands::CommandInvocation;
use pintle_host::user_commands::UserCommand;
use pintle_tools::ToolErrorKind;

use self::plain::Plain;
use super::approvals::{self, Approvals, RequestDecision};
use super::attention::SessionActivity;
use super::completion::{self, Files, Kind, Menu};
use super::editor::{Editor, EditorKeyEffect};
use super::history::History;
use super::images::{OutgoingMessage, PastedImages, dropped_paths};
use super::keys::{Input, Key, KeyCode, MAX_PASTE, Paste};
use super::memory::MemoryFile;
use super::painter::Region;
use super::questions::Questions;
use super::search::{Search, SearchKeyEffect};
use super::status::StatusLine;
use crate::render::{Activity, Face, StyledLine, TICK, TerminalSize, Transcript, count, plural};

/// How long a hint is shown, and a first Ctrl+C counts.
const HINT_TIME: Duration = Duration::from_secs(3);

/// Inputs that end the conversation, as they end a shell.
const LEAVING: [&str; 2] = ["exit", "quit"];

/// Minimum time between two redraws of streamed text.
pub(crate) const FRAME: Duration = Duration::from_millis(33);

/// Action for the driver.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Send this message. It steers a running turn, and otherwise starts one.
    Say(OutgoingMessage),
    /// Queue this message for the end of the turn.
    FollowUp(OutgoingMessage),
    /// Interrupt the turn.
    Interrupt,
    Decide(RequestDecision),
    Call(CommandInvocation),
    /// Get this prompt from its server, and send it as a message.
    CallPrompt(PromptCall),
    /// Add this to the input history.
    Remember(String),
    /// List the files for completion.
    ListFiles,
    /// Run this command of the user in the environment of the tools.
    Run(String),
    /// Add this line to a file of instructions.
    Memorize(MemoryFile, String),
    /// Attach the images at these paths, or else insert the paste as text.
    TakeDropped {
        paths: Vec<String>,
        paste: String,
    },
    /// Attach the image on the clipboard.
    TakeClipboard,
    /// Open this text in the user's editor.
    Edit(String),
    /// Stop the process, as Ctrl+Z does elsewhere.
    Stop,
    /// Redraw the screen.
    Redraw,
    /// Show the whole conversation in the pager.
    Look,
    Leave,
}

/// Conversation of one session.
#[derive(Debug)]
pub(crate) struct Conversation {
    size: TerminalSize,
    transcript: Transcript,
    activity: Activity,
    editor: Editor,
    history: History,
    approvals: Approvals,
    questions: Questions,
    files: Files,
    menu: Option<Menu>,
    search: Option<Search>,
    /// Files of instructions of the project, with their sizes in bytes.
    instructions: Vec<(String, usize)>,
    /// Commands of the user.
    user_commands: Vec<UserCommand>,
    /// Prompts of MCP servers.
    prompts: Vec<PromptCommand>,
    /// Names and meanings of the user's commands and of the prompts.
    more_commands: Vec<(String, String)>,
    /// Line for a file of instructions, until the file is chosen.
    memory: Option<String>,
    /// Images that inputs may name.
    pasted: PastedImages,
    /// Outputs of the user's commands, for the next message.
    outputs: Vec<String>,
    /// Texts of queued messages.
    queued: Vec<String>,
    pub(crate) status: StatusLine,
    /// Hint and the time at which it disappears.
    hint: Option<(String, Duration)>,
    /// Whether a turn is running.
    is_running: bool,
    /// Whether the user has interrupted the turn, and the screen does not show it yet.
    interrupt_unreported: bool,
    /// Time until which another Ctrl+C leaves.
    leaving: Option<Duration>,
    /// Present in plain mode, which has no region.
    plain: Option<Plain>,
}

impl Conversation {
    /// Creates a conversation without events, with an input history.
    pub(crate) fn new(size: TerminalSize, history: History, status: StatusLine) -> Self {
        Self {
            size,
            transcript: Transcript::new(region::columns(size)),
            activity: Activity::default(),
            editor: Editor::default(),
            history,
            approvals: Approvals::default(),
            questions: Questions::default(),
            files: Files::default(),
            menu: None,
            search: None,
            instructions: Vec::new(),
            user_commands: Vec::new(),
            prompts: Vec::new(),
            more_commands: Vec::new(),
            memory: None,
            pasted: PastedImages::default(),
            outputs: Vec::new(),
            queued: Vec::new(),
            status,
            hint: None,
            is_running: false,
            interrupt_unreported: false,
            leaving: None,
            plain: None,
        }
    }

    /// Resets the transcript, because all events follow again. Text that is being written stays.
    pub(crate) fn reset_transcript(&mut self) {
        self.transcript = match self.is_plain() {
            true => Transcript::plain(),
            false => Transcript::new(region::columns(self.size)),
        };
        self.activity = Activity::default();
        (self.is_running, self.interrupt_unreported) = (false, false);
    }

    /// Handles a change of the window size.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.size = size;
        self.transcript.resize(region::columns(size));
    }

    /// Processes an event of the session or of a subagent.
    pub(crate) fn event(&mut self, event: &SessionEvent, now: Duration) {
        let subagent = self.transcript.subagent_of(event);
        if event.depth > 0 || !self.is_known(&event.kind) {
            self.transcript.event(event, subagent.as_deref());
        }
        self.activity.event(event, subagent.as_deref(), now);
        self.state_event(event);
        if event.depth == 0 {
            self.tell_interrupt(&event.kind);
        }
        if event.depth == 0 && matches!(event.kind, EventKind::ProcessingEnd { .. }) {
            self.say_ready();
        }
    }

    /// Prints that the turn was interrupted, unless a text or a call that was cut off shows it.
    fn tell_interrupt(&mut self, kind: &EventKind) {
        if let EventKind::AssistantTextEnd { interrupted: true, .. }
        | EventKind::ToolCallEnd { error: Some(ToolErrorKind::Cancelled), .. } = kind
        {
            self.interrupt_unreported = false;
        } else if let EventKind::ProcessingEnd { .. } = kind
            && std::mem::take(&mut self.interrupt_unreported)
        {
            self.transcript.note("interrupted", "before the model had answered");
        }
    }

    /// Applies a past event without rendering it.
    pub(crate) fn earlier_event(&mut self, event: &SessionEvent, now: Duration) {
        let subagent = self.transcript.subagent_of(event);
        self.activity.event(event, subagent.as_deref(), now);
        self.activity.forget_compaction();
        self.state_event(event);
    }

    fn state_event(&mut self, event: &SessionEvent) {
        if event.depth > 0 {
            return;
        }
        match &event.kind {
            EventKind::UserInput { .. } => self.is_running = true,
            EventKind::ProcessingEnd { .. } | EventKind::SessionEnd { .. } => {
                self.is_running = false;
                // No call waits for their answers any more.
                self.questions = Questions::default();
            }
            EventKind::ProjectLoaded(project) => {
                let documents = project.documents.iter();
                self.instructions =
                    documents.map(|document| (document.path.clone(), document.bytes)).collect();
            }
            EventKind::ContextUsage { window, used, .. } => self.status.context = Some((*used, *window)),
            EventKind::ModelResponse { usage, .. } => {
                if let Some((used, _)) = &mut self.status.context {
                    *used = usage.input_tokens + usage.output_tokens;
                }
            }
            EventKind::PolicyChanged(change) => {
                if let Some(mode) = &change.mode {
                    self.status.mode.clone_from(mode);
                }
            }
            EventKind::SessionStart { .. } | _ => {}
        }
    }

    /// Sets the calls that wait for approval. Details that do not fit the region are printed in full, because the user must
    /// be able to see them before deciding.
    pub(crate) fn set_approvals(&mut self, pending: Vec<Arc<ApprovalRequest>>) {
        let is_writing = !self.editor.is_empty() || self.questions.is_focused();
        let new = self.approvals.set(pending, is_writing);
        if self.is_plain() {
            return self.ask();
        }
        for request in new {
            let columns = region::columns(self.size);
            if let Some(rows) = approvals::long_details(&request, columns, region::most_details(self.size)) {
                self.transcript.rows(rows);
            }
        }
    }

    /// Sets the files for completion.
    pub(crate) fn set_files(&mut self, files: Vec<String>) {
        self.files = Files::Known(files);
        self.menu = Menu::complete(&self.editor.before_cursor(), &self.files, &self.more_commands);
    }

    /// Returns the files of instructions of the project, with their sizes in bytes.
    pub(crate) fn instructions(&self) -> &[(String, usize)] {
        &self.instructions
    }

    /// Replaces the text in the editor.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.menu = None;
        self.history.leave();
        self.editor.set(text);
    }

    /// Prints the reason why a turn failed.
    pub(crate) fn failed(&mut self, message: &str) {
        self.transcript.failure(message);
    }

    /// Prints a labelled line.
    pub(crate) fn note(&mut self, label: &str, text: &str) {
        self.transcript.note(label, text);
    }

    /// Prints lines, such as the result of a command.
    pub(crate) fn answer(&mut self, lines: impl IntoIterator<Item = StyledLine>) {
        for line in lines {
            self.transcript.line(&line);
        }
    }

    /// Puts back a text that could not be sent, before the text written since then.
    pub(crate) fn restore(&mut self, text: &str) {
        if self.is_plain() {
            return self.forget(text);
        }
        let since = self.editor.take();
        let between = if since.is_empty() { "" } else { "\n" };
        self.editor.set(&format!("{text}{between}{since}"));
    }

    /// Shows a hint for a while.
    pub(crate) fn hint(&mut self, text: impl Into<String>, now: Duration) {
        if self.is_plain() {
            return self.transcript.note("pintle", &text.into());
        }
        self.hint = Some((text.into(), now + HINT_TIME));
    }

    /// Handles input from the terminal.
    pub(crate) fn input(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        match input {
            Input::Key(key) => self.key(key, now),
            // The painter handles it.
            Input::Background(_) => Vec::new(),
            Input::Paste(paste) if paste.dropped > 0 => {
                let size = plural((paste.text.len() + paste.dropped) as u64, "byte");
                let limit = count(MAX_PASTE as u64);
                self.hint(format!("not pasted: {size}, at most {limit}; name a file instead"), now);
                Vec::new()
            }
            Input::Paste(Paste { text, .. }) | Input::Burst(text) if self.approvals.is_focused() => {
                self.approvals.paste(&text);
                Vec::new()
            }
            Input::Paste(Paste { text, .. }) | Input::Burst(text) if self.questions.is_focused() => {
                self.questions.paste(&text);
                Vec::new()
            }
            Input::Paste(Paste { text, .. }) => match dropped_paths(&text) {
                Some(paths) => vec![Effect::TakeDropped { paths, paste: text }],
                None => {
                    self.paste(&text);
                    self.complete()
                }
            },
            Input::Burst(text) if self.editor.bytes() + text.len() > MAX_PASTE => {
                self.refuse_more(now);
                Vec::new()
            }
            Input::Burst(text) => {
                self.history.leave();
                self.editor.burst(&text);
                self.complete()
            }
        }
    }

    fn refuse_more(&mut self, now: Duration) {
        let limit = plural(MAX_PASTE as u64, "byte");
        self.hint(format!("the input is full ({limit}); save the text and name the file"), now);
    }

    fn key(&mut self, key: Key, now: Duration) -> Vec<Effect> {
        if key != Key::ctrl('c') {
            self.leaving = None;
        }
        if let Some(search) = &mut self.search {
            match search.key(key, &self.history) {
                SearchKeyEffect::On => {}
                SearchKeyEffect::Left => self.search = None,
                SearchKeyEffect::Taken(found) => {
                    self.search = None;
                    if !found.is_empty() {
                        self.editor.set(&found);
                    }
                }
            }
            return Vec::new();
        }
        match key {
            key if key == Key::ctrl('c') => return self.clear_or_leave(now),
            key if key == Key::ctrl('z') => return vec![Effect::Stop],
            key if key == Key::ctrl('l') => return vec![Effect::Redraw],
            key if key == Key::ctrl('t') => return vec![Effect::Look],
            key if key == Key::ctrl('g') => return vec![Effect::Edit(self.editor.text())],
            key if key == Key::alt('a') => {
                self.turn_focus();
                return Vec::new();
            }
            _ => {}
        }
        if let Some(line) = self.memory.take() {
            return self.memorize(line, key);
        }
        if key == Key::ctrl('d') && self.leaves_at_ctrl_d() {
            return vec![Effect::Leave];
        }
        let columns = region::editor_columns(self.size);
        if self.approvals.is_focused() {
            if key == Key::plain(KeyCode::Escape) && self.approvals.is_deciding() {
                return self.interrupt();
            }
            return self.approvals.key(key, columns).map(Effect::Decide).into_iter().collect();
        }
        if self.questions.is_focused() {
            if let Some(told) = self.questions.key(key, columns) {
                self.transcript.line(&told);
            }
            return Vec::new();
        }
        if key == Key::ctrl('v') {
            return vec![Effect::TakeClipboard];
        }
        if key == Key::ctrl('r') {
            (self.search, self.menu) = (Some(Search::default()), None);
            return Vec::new();
        }
        if let Some(effects) = self.menu_key(key) {
            return effects;
        }
        let Key { code, modifiers } = key;
        if code == KeyCode::Escape {
            self.interrupt()
        } else if code == KeyCode::Enter && modifiers.alt {
            self.follow_up()
        } else if code == KeyCode::Enter && !modifiers.shift {
            self.enter(now)
        } else if code == KeyCode::Tab && !modifiers.shift && self.is_running {
            self.follow_up()
        } else if matches!(code, KeyCode::Char(_)) && self.editor.is_full() && key == Key::plain(code) {
            self.refuse_more(now);
            Vec::new()
        } else {
            self.edit(key, columns);
            self.complete()
        }
    }

    /// Handles a key for the menu. Returns `None` if the key is for the editor.
    fn menu_key(&mut self, key: Key) -> Option<Vec<Effect>> {
        let menu = self.menu.as_mut()?;
        match key {
            Key { code: KeyCode::Up, .. } => menu.select(false),
            Key { code: KeyCode::Down, .. } => menu.select(true),
            key if key == Key::plain(KeyCode::Escape) => self.menu = None,
            key if key == Key::plain(KeyCode::Tab)
                || key == Key::plain(KeyCode::Enter) && menu.kind() == Kind::File =>
            {
                if let Some((length, text)) = menu.accept() {
                    self.editor.replace_before_cursor(length, &text);
                }
                self.menu = None;
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Shows the choices for the word before the cursor.
    fn complete(&mut self) -> Vec<Effect> {
        let before = self.editor.before_cursor();
        self.menu = Menu::complete(&before, &self.files, &self.more_commands);
        if !completion::names_file(&before) {
            // The next name is completed from a new list of files.
            if self.files != Files::Asked {
                self.files = Files::Unknown;
            }
        } else if self.files == Files::Unknown {
            self.files = Files::Asked;
            return vec![Effect::ListFiles];
        }
        Vec::new()
    }

    /// Handles the key that selects the file for a line of instructions.
    fn memorize(&mut self, line: String, key: Key) -> Vec<Effect> {
        let file = match key {
            Key { code: KeyCode::Char(character), .. } if key == Key::plain(key.code) => {
                MemoryFile::by_name(character.encode_utf8(&mut [0; 4]))
            }
            _ => None,
        };
        match file {
            Some(file) => vec![Effect::Memorize(file, line)],
            None => {
                self.restore(&format!("# {line}"));
                Vec::new()
            }
        }
    }

    fn edit(&mut self, key: Key, columns: usize) {
        match self.editor.key(key, columns) {
            EditorKeyEffect::Above => {
                let written = self.editor.text();
                if let Some(entry) = self.history.back(&written) {
                    let entry = entry.to_owned();
                    self.editor.set(&entry);
                }
            }
            EditorKeyEffect::Below => {
                if let Some(entry) = self.history.forward() {
                    let entry = entry.to_owned();
                    self.editor.set(&entry);
                }
            }
            EditorKeyEffect::Yes => {
                if matches!(key.code, KeyCode::Char(_) | KeyCode::Backspace | KeyCode::Delete) {
                    self.history.leave();
                }
            }
            EditorKeyEffect::No => {}
        }
    }

    fn clear_or_leave(&mut self, now: Duration) -> Vec<Effect> {
        if !self.editor.is_empty() && !self.approvals.is_focused() && !self.questions.is_focused() {
            self.editor.clear();
            self.menu = None;
            self.hint("cleared; Ctrl+_ brings it back", now);
            return Vec::new();
        }
        if self.leaving.is_some_and(|until| now <= until) {
            return vec![Effect::Leave];
        }
        self.leaving = Some(now + HINT_TIME);
        let also = if self.is_running { "; Esc interrupts the turn" } else { "" };
        self.hint(format!("press Ctrl+C again to leave{also}"), now);
        Vec::new()
    }

    /// Returns whether Ctrl+D leaves: no text is written that it could delete from.
    fn leaves_at_ctrl_d(&self) -> bool {
        self.editor.is_empty() && !self.approvals.is_writing() && !self.questions.is_writing()
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        self.hint = None;
        self.interrupt_unreported |= self.is_running;
        if self.can_interrupt() { vec![Effect::Interrupt] } else { Vec::new() }
    }

    /// Returns whether a turn or a compaction between turns is running.
    fn can_interrupt(&self) -> bool {
        self.is_running || self.is_compacting_between_turns()
    }

    /// Returns whether a compaction is running that belongs to no turn. No turn ends with it.
    pub(crate) fn is_compacting_between_turns(&self) -> bool {
        !self.is_running && self.activity.is_compacting_between_turns()
    }

    /// Takes the text from the editor, unless it is blank.
    fn take(&mut self) -> Option<String> {
        self.menu = None;
        if self.editor.text().trim().is_empty() {
            return None;
        }
        let text = self.editor.take();
        self.history.add(text.clone());
        Some(text)
    }

    /// Replaces the start of a command with its name, if only one command starts like this.
    fn complete_command(&mut self) {
        let only = self.menu.as_ref().filter(|menu| menu.is_only_command()).and_then(Menu::accept);
        if let Some((length, name)) = only
            && self.editor.before_cursor() == self.editor.text()
        {
            self.editor.replace_before_cursor(length, name.trim_end());
            self.menu = None;
        }
    }

    fn enter(&mut self, now: Duration) -> Vec<Effect> {
        self.complete_command();
        let written = self.editor.text();
        if LEAVING.iter().any(|word| written.trim().eq_ignore_ascii_case(word)) {
            self.take();
            return vec![Effect::Leave];
        }
        if written.trim_start().starts_with('/') && !written.trim().contains('\n') {
            match CommandInvocation::parse(&written) {
                Ok(called) => {
                    self.menu = None;
                    let text = self.editor.take();
                    self.history.add(text.clone());
                    return vec![Effect::Remember(text), Effect::Call(called)];
                }
                Err(problem) => {
                    if let Some(effects) = self.user_command(&written) {
                        return effects;
                    }
                    if let Some(effects) = self.prompt(&written, now) {
                        return effects;
                    }
                    // Paths start with a slash, too.
                    if !written.trim().get(1..).is_some_and(|rest| rest.contains('/')) {
                        self.hint(problem, now);
                        return Vec::new();
                    }
                }
            }
        }
        if let Some(line) = written.trim().strip_prefix("# ").filter(|line| !line.contains('\n')) {
            self.memory = Some(line.trim().to_owned());
            self.editor.clear();
            self.menu = None;
            return vec![Effect::Remember(written)];
        }
        let Some(text) = self.take() else { return Vec::new() };
        let effect = match text.trim().strip_prefix('!').map(str::trim) {
            Some("") => {
                self.hint("expected a command behind the exclamation mark", now);
                self.editor.set(&text);
                return Vec::new();
            }
            Some(command) => Effect::Run(command.to_owned()),
            None => Effect::Say(self.compose_message(&text)),
        };
        vec![Effect::Remember(text), effect]
    }

    fn follow_up(&mut self) -> Vec<Effect> {
        let is_running = self.is_running;
        let Some(text) = self.take() else { return Vec::new() };
        let said = self.compose_message(&text);
        let said = if is_running { Effect::FollowUp(said) } else { Effect::Say(said) };
        vec![Effect::Remember(text), said]
    }

    /// Returns the activity of the session.
    pub(crate) fn session_activity(&self) -> SessionActivity {
        SessionActivity { is_running: self.is_running, waiting: self.approvals.len() + self.questions.len() }
    }

    /// Returns the time until the region changes without input, or `None` if it does not change.
    pub(crate) fn changes_in(&self, now: Duration) -> Option<Duration> {
        let hint = self.hint.as_ref().map(|(_, until)| until.saturating_sub(now));
        let activity = (self.activity.is_busy() && !self.is_plain()).then_some(TICK);
        hint.into_iter().chain(activity).min()
    }

    /// Returns the lines to print and the region below them.
    pub(crate) fn frame(&mut self, now: Duration) -> (Vec<StyledLine>, Region) {
        if self.hint.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.hint = None;
        }
        let region = if self.is_plain() { Region::default() } else { self.region(now) };
        (self.transcript.take(), region)
    }

    /// Returns the current hint about keys.
    fn hint_line(&self) -> Option<StyledLine> {
        let text = match &self.hint {
            Some((text, _)) => text.as_str(),
            None if self.memory.is_some() => "add to: p instructions of the project · u yours · Esc back",
            None if self.approvals.is_focused() || self.questions.is_focused() => return None,
            None if self.is_running && !self.editor.is_empty() => {
                "Enter steers the turn · Tab queues for its end · Esc interrupts"
            }
            None if self.can_interrupt() => "Esc interrupts",
            None => return None,
        };
        Some(StyledLine::new(text, Face::DIM))
    }
}

#[cfg(test)]
mod tests;
