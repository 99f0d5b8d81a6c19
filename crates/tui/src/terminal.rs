//! The conversation in a terminal.
//!
//! It is inline: finished output is printed once into the terminal's own scrollback. Below it, a small region shows the
//! current activity, the editor and the status line. The display logic is pure: its inputs are keys, events and time, and
//! its outputs are lines and effects.

mod approvals;
mod attention;
mod clipboard;
mod completion;
mod conversation;
mod conversation_end;
mod device;
mod display;
mod driver;
mod editor;
mod external_editor;
mod history;
mod history_file;
mod history_lines;
mod images;
mod keys;
mod lines;
mod memory;
mod pager;
mod painter;
mod port;
mod presentation;
mod questions;
mod search;
mod status;
mod stored_session;

use std::path::Path;

use pintle_agent::{Run, Session, Turn, TurnKind};
#[cfg(feature = "client")]
use pintle_client::{Client, SessionInfo};
use pintle_host::boxed_future::box_future;
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::sanitize;

use self::attention::Attention;
use self::conversation::Conversation;
pub use self::conversation_end::{ConversationEnd, ConversationSettings};
pub use self::device::Device;
use self::driver::Driver;
use self::history::History;
pub use self::history_file::HistoryFile;
use self::painter::Screen;
#[cfg(feature = "client")]
use self::port::RemotePort;
pub use self::port::{ConversationContext, ReportConfiguration};
use self::port::{LocalPort, PortState, SessionPort};
pub use self::presentation::{NotifyChoice, PresentationChoice, ThemeChoice, TitleChoice};
use self::status::StatusLine;
pub use self::stored_session::StoredSession;
use crate::console;
use crate::interrupt::Interrupts;
use crate::render::{Depth, Face, StyledLine, plural};

/// Environment of a session of a server, in the status line.
#[cfg(feature = "client")]
const SERVER: &str = "server";

/// Maximum number of lines of an earlier conversation shown when it is resumed.
const RECAP: usize = 60;

/// Session to converse in.
#[derive(Debug)]
pub struct ConversationStart {
    /// Use of the terminal.
    pub presentation: PresentationChoice,
    /// The session.
    pub session: Session,
    /// First input of the user, if any.
    pub prompt: Option<String>,
    /// Turn that an earlier process left unfinished.
    pub unfinished: Option<Run>,
    /// Whether the session can be resumed after this process exits.
    pub is_stored: bool,
    /// Reasoning effort of the session, if it is set.
    pub effort: Option<String>,
    /// Report of a rewind that preceded this conversation.
    pub notes: Vec<String>,
    /// Input that is not sent yet.
    pub draft: Option<String>,
    /// File of the input history, if it is kept.
    pub history: Option<HistoryFile>,
    /// Terminal of the previous conversation, if any.
    pub device: Option<Device>,
}

/// First output and input of a conversation.
#[derive(Debug, Default)]
struct InitialScreen {
    status: StatusLine,
    /// Lines before those of the conversation.
    lines: Vec<StyledLine>,
    draft: Option<String>,
    prompt: Option<String>,
    /// Whether no turn is running.
    is_ready: bool,
    history: Option<HistoryFile>,
}

/// Terminal in the modes of a conversation.
#[derive(Debug)]
struct EnteredTerminal {
    device: Device,
    screen: Screen,
    attention: Attention,
}

/// Checks that there is a terminal to converse in.
///
/// Fails without one, and for choices that contradict each other.
pub fn require(process_env: &ProcessEnv, presentation: PresentationChoice) -> Result<(), Failure> {
    attention::check(presentation)?;
    let hint = "`pintle run` does a task without one";
    if !device::is_terminal() {
        return Err(
            Failure::usage("a conversation needs a terminal at standard input and output").with_hint(hint)
        );
    }
    if !presentation.plain && !console::style(process_env).moves {
        let hint = "`pintle --plain` converses in lines; `pintle run` does a task without a terminal";
        return Err(
            Failure::usage("a conversation needs a terminal that can move its cursor").with_hint(hint)
        );
    }
    Ok(())
}

/// Runs the conversation until the user leaves or switches to another session, and closes or suspends the session. Returns
/// the terminal, which keeps the input that was typed meanwhile for the next conversation.
///
/// Fails if the terminal cannot be used or the session fails. If the future is dropped, the session is aborted and the
/// terminal is restored.
pub async fn converse(
    start: ConversationStart,
    context: ConversationContext<'_>,
    process_env: &ProcessEnv,
    interrupts: &Interrupts,
) -> Result<(ConversationEnd, Device), Failure> {
    let ConversationStart {
        presentation,
        session,
        prompt,
        unfinished,
        is_stored,
        effort,
        notes,
        draft,
        history,
        device,
    } = start;
    let entered = enter(presentation, context.directory, process_env, device)?;
    let lines = if notes.is_empty() {
        recap(&session.history(), entered.screen.size.columns.saturating_sub(1).max(1))
    } else {
        notes.iter().map(|note| StyledLine::new(sanitize(note), Face::DIM)).collect()
    };
    let is_ready = prompt.is_none() && unfinished.is_none();
    let environment = context.environment.clone();
    let window = context.model.profile().context_window_size;
    let port = LocalPort::new(session, context, unfinished, effort, is_stored);
    let status = StatusLine { context: Some((0, window)), ..status(port.state(), environment) };
    let initial = InitialScreen { status, lines, draft, prompt, is_ready, history };
    box_future(|| drive(Box::new(port), initial, entered, process_env, interrupts)).await
}

/// Runs the conversation in a session of a server until the user leaves. The session continues on the server, also if the
/// future is dropped.
///
/// Fails if the terminal cannot be used or the server refuses the session.
#[cfg(feature = "client")]
pub async fn attach(
    client: Client,
    session: &SessionInfo,
    presentation: PresentationChoice,
    process_env: &ProcessEnv,
    interrupts: &Interrupts,
) -> Result<(), Failure> {
    let directory = session.directory.clone().unwrap_or_default();
    let entered = enter(presentation, Path::new(&directory), process_env, None)?;
    let port = RemotePort::new(client, session);
    let initial =
        InitialScreen { status: status(port.state(), SERVER.to_owned()), ..InitialScreen::default() };
    box_future(|| drive(Box::new(port), initial, entered, process_env, interrupts)).await?;
    Ok(())
}

/// Runs the conversation over a port, and closes the port. Returns the terminal, as [`converse`] does.
async fn drive<'a>(
    port: Box<dyn SessionPort + 'a>,
    initial: InitialScreen,
    entered: EnteredTerminal,
    process_env: &'a ProcessEnv,
    interrupts: &Interrupts,
) -> Result<(ConversationEnd, Device), Failure> {
    let InitialScreen { status, lines, draft, prompt, is_ready, history } = initial;
    let EnteredTerminal { mut device, screen, attention } = entered;
    let before = history.as_ref().map(HistoryFile::read).unwrap_or_default();
    let mut conversation = match screen.moves {
        true => Conversation::new(screen.size, History::new(before), status),
        false => Conversation::in_lines(screen.size, History::new(before), status),
    };
    conversation.answer(lines);
    if let Some(draft) = &draft {
        conversation.restore(draft);
    }
    if is_ready {
        conversation.say_ready();
    }
    let mut driver = Driver::new(port, conversation, screen, attention, history, process_env);
    let left = box_future(|| driver.run(&mut device, prompt, interrupts)).await;
    let closed = driver.into_port().close().await;
    let next = left?;
    closed?;
    Ok((next, device))
}

/// Enters the modes of a conversation, unless a previous conversation has done so.
fn enter(
    presentation: PresentationChoice,
    directory: &Path,
    process_env: &ProcessEnv,
    device: Option<Device>,
) -> Result<EnteredTerminal, Failure> {
    let depth = depth(presentation.theme, process_env);
    // Call this before the terminal is entered, because it decides whether the title is saved.
    let attention = attention(presentation, directory, process_env, depth);
    let device = match device {
        Some(device) => device,
        None if presentation.plain => Device::lines()?,
        None => {
            console::modes::restore_on_panic();
            Device::enter()?
        }
    };
    let size = console::size();
    let screen = Screen { size, depth, reflows: reflows(process_env), moves: !presentation.plain };
    Ok(EnteredTerminal { device, screen, attention })
}

/// Returns the status line of a session in this environment.
fn status(state: PortState, environment: String) -> StatusLine {
    let PortState { model, effort, mode, .. } = state;
    StatusLine { model, effort, mode, environment, ..StatusLine::default() }
}

/// Returns the end of a history: the newest input of the user and the text after it, limited to `RECAP` lines.
fn recap(history: &[Turn], columns: usize) -> Vec<StyledLine> {
    let is_input = |turn: &Turn| matches!(turn.kind, TurnKind::User);
    let Some(from) = history.iter().rposition(is_input) else { return Vec::new() };
    let messages = plural(history.len() as u64, "message");
    let mut lines = vec![StyledLine::new(
        format!("continued after {messages}, of which these are the newest"),
        Face::DIM,
    )];
    let mut newest = history_lines::render_messages(history.get(from..).unwrap_or_default(), columns);
    newest.pop();
    let first = newest.len().saturating_sub(RECAP);
    if first > 0 {
        lines.push(StyledLine::new("…", Face::DIM));
    }
    lines.extend(newest.into_iter().skip(first));
    lines
}

/// Returns the supported colours, on the background that the user names.
fn depth(theme: ThemeChoice, process_env: &ProcessEnv) -> Depth {
    match theme {
        _ if !console::style(process_env).colour => Depth::Monochrome,
        ThemeChoice::Auto => Depth::Sixteen,
        ThemeChoice::Dark => Depth::OnDark,
        ThemeChoice::Light => Depth::OnLight,
    }
}

/// Returns the writer of titles and notifications. With a title, entering the terminal modes saves the previous title.
fn attention(
    presentation: PresentationChoice,
    directory: &Path,
    process_env: &ProcessEnv,
    depth: Depth,
) -> Attention {
    let has_title = attention::has_title(presentation, process_env);
    if has_title {
        console::modes::save_title();
    }
    let name = directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy();
    let asks = depth == Depth::Sixteen && attention::can_ask(presentation, process_env);
    Attention::new(presentation.notify, has_title.then_some(&name)).asking_background(asks)
}

/// Returns whether the terminal reflows rows when its width changes. The few terminals that do not are known by name.
fn reflows(process_env: &ProcessEnv) -> bool {
    let term = process_env.variable("TERM").unwrap_or_default();
    let is_xterm = term.starts_with("xterm") && process_env.variable("XTERM_VERSION").is_some();
    let is_screen = term.starts_with("screen") && process_env.variable("TMUX").is_none();
    !(is_xterm || is_screen || term.starts_with("linux") || term.starts_with("vt"))
}
