//! The session as a conversation uses it: commands go in, and one stream of events comes out. One implementation has the
//! session in this process (`LocalPort`), another is a client of a server (`RemotePort`). Decision 0053 lists their
//! differences.

mod local;
#[cfg(feature = "client")]
mod remote;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use pintle_agent::{ApprovalRequest, Money, SessionEvent, Turn};
use pintle_host::failure::Failure;
use pintle_host::prompt_commands::{PromptCall, PromptCommand, PromptText};
use pintle_host::user_commands::UserCommand;

pub(super) use self::local::LocalPort;
pub use self::local::{ConversationContext, ReportConfiguration};
#[cfg(feature = "client")]
pub(super) use self::remote::RemotePort;
use super::approvals::RequestDecision;
use super::conversation_end::ConversationEnd;
use super::images::OutgoingMessage;
use super::memory::MemoryFile;
use crate::approve::Question;
use crate::render::StyledLine;

/// A session: [commands](Self::command) for it, and the stream of its [events](PortEvent).
///
/// The stream ends when the session can no longer be used.
#[async_trait]
pub(super) trait SessionPort: Stream<Item = PortEvent> + Send + Unpin {
    /// Returns the supported operations.
    fn capabilities(&self) -> &'static Capabilities;

    /// Returns the current state, as far as it is known.
    fn state(&self) -> PortState;

    /// Carries out a command. It starts when this is called or when the future is first polled, and messages keep the
    /// order in which the futures are first polled. If the future is dropped, the effect is unknown.
    fn command(&mut self, command: PortCommand) -> BoxFuture<'static, PortResult>;

    /// Ends the use of the session.
    ///
    /// The failure is silent if an event has reported it.
    async fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Reply to a command, or the reason why it was not carried out, for the user.
pub(super) type PortResult = Result<PortReply, String>;

/// Operation that a port may support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Start a turn with a message.
    Submit,
    /// Add a message to a running turn.
    Steer,
    /// Queue a message for the end of the turn.
    FollowUp,
    /// Decide on a call.
    Decide,
    /// Add rules with a decision.
    DecideWithRules,
    /// Interrupt the turn.
    Interrupt,
    /// Set the model.
    Model,
    /// Set the mode.
    Mode,
    /// Set the reasoning effort.
    Effort,
    /// Request a plan.
    Plan,
    /// Compact the conversation.
    Compact,
    /// Show the session and its settings.
    Status,
    /// Run a command of the user.
    Shell,
    /// List the files for completion.
    Files,
    /// Send images that the text names.
    NamedImages,
    /// Add a line to a file of instructions.
    Instructions,
    /// Read the whole conversation.
    History,
    /// List background commands and subagents.
    Background,
    /// List configuration, instruction files, rules and tools.
    Settings,
    /// Show the changes in the working directory.
    Changes,
    /// Write the conversation to a file.
    Export,
    /// Rewind turns and files.
    Rewind,
    /// List other sessions, and switch to one.
    Switch,
    /// Send the text of a command of the user.
    UserCommands,
    /// Send a prompt of an MCP server.
    ServerPrompts,
    /// Answer a question of an MCP server.
    ServerQuestions,
}

impl Operation {
    /// All operations.
    pub(super) const ALL: [Self; 26] = [
        Self::Submit,
        Self::Steer,
        Self::FollowUp,
        Self::Decide,
        Self::DecideWithRules,
        Self::Interrupt,
        Self::Model,
        Self::Mode,
        Self::Effort,
        Self::Plan,
        Self::Compact,
        Self::Status,
        Self::Shell,
        Self::Files,
        Self::NamedImages,
        Self::Instructions,
        Self::History,
        Self::Background,
        Self::Settings,
        Self::Changes,
        Self::Export,
        Self::Rewind,
        Self::Switch,
        Self::UserCommands,
        Self::ServerPrompts,
        Self::ServerQuestions,
    ];
}

/// Operations that a port supports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capabilities {
    pub(super) supported: &'static [Operation],
    /// Reason why the other operations are refused, after the name of the operation.
    pub(super) refusal: &'static str,
    /// Whether the session continues after the user has left.
    pub(super) outlives_terminal: bool,
}

impl Capabilities {
    /// Returns whether an operation is supported.
    pub(super) fn supports(&self, operation: Operation) -> bool {
        self.supported.contains(&operation)
    }

    /// Returns the message that something is refused.
    pub(super) fn refusal(&self, name: &str) -> String {
        format!("{name} {}", self.refusal)
    }
}

/// State that no event reports.
#[derive(Clone, Debug, Default)]
pub(super) struct PortState {
    /// Calls that wait for approval.
    pub(super) approvals: Vec<Arc<ApprovalRequest>>,
    /// Texts of accepted messages that are not part of the conversation, in the order in which they are handled.
    pub(super) queued: Vec<String>,
    /// Cost, if known.
    pub(super) cost: Option<Money>,
    /// Model of the next request. Empty if unknown.
    pub(super) model: String,
    pub(super) effort: Option<String>,
    /// Mode of the policy. Empty if unknown.
    pub(super) mode: String,
    /// Whether a turn or a compaction is running.
    pub(super) is_processing: bool,
}

/// Command to a session.
#[derive(Clone, Debug)]
pub(super) enum PortCommand {
    /// Send this message to a running turn, or start a turn with it. The reply is [`PortReply::Sent`].
    Submit(OutgoingMessage),
    /// Queue this message for the end of the turn. The reply is [`PortReply::Sent`].
    FollowUp(OutgoingMessage),
    /// Change to mode plan, and send this message if there is one.
    Plan(Option<OutgoingMessage>),
    Decide(RequestDecision),
    Interrupt,
    Compact,
    /// The reply is [`PortReply::ModelSet`].
    SetModel(String),
    SetMode(String),
    SetEffort(String),
    /// Run this command of the user. The reply is [`PortReply::Ran`].
    RunShell(String),
    /// The reply is [`PortReply::Files`].
    ListFiles,
    /// Add this line to a file of instructions.
    AddInstruction(MemoryFile, String),
    /// The reply is [`PortReply::UserCommands`].
    FindUserCommands,
    /// The reply is [`PortReply::Prompts`].
    ListPrompts,
    /// Read the tools and prompts of MCP servers again, between two turns. The reply is [`PortReply::Prompts`].
    RefreshServers,
    /// The reply is [`PortReply::Prompt`].
    GetPrompt(PromptCall),
    /// The reply is [`PortReply::History`].
    ReadHistory,
    /// The reply is [`PortReply::Lines`].
    Report(Report),
    /// Write the conversation to a new file with this name. An empty name is replaced with the id of the session.
    Export(String),
    Switch(Switch),
}

/// Report about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// Subagents.
    Agents,
    /// Changes in the working directory.
    Changes,
    /// Configuration and its sources.
    Configuration,
    /// Instruction files. The conversation knows the files of the project, with their sizes in bytes.
    Instructions { project: Vec<(String, usize)> },
    /// Background commands.
    Jobs,
    /// Rules of the policy.
    Rules,
    /// Other sessions of the directory.
    Sessions,
    /// The session, its directory and its sandbox.
    Status,
    /// Tools that the model has.
    Tools,
}

/// Switch to another session or to an earlier state of this one. The reply is [`PortReply::Next`], or lines for a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    /// To a new session.
    New,
    /// To a new session with this number of entries, as typed. All entries if it is empty.
    Fork(String),
    /// To before the newest input.
    Undo,
    /// To before an input: its number and an order, as typed. Without arguments, the inputs are listed.
    Rewind(String),
    /// To the session whose id starts with this prefix.
    Resume(String),
}

/// Reply to a command that was carried out.
#[derive(Clone, Debug)]
pub(super) enum PortReply {
    /// Nothing to show.
    Done,
    /// A message was accepted, and these images were not sent with it.
    Sent {
        left_out: Vec<String>,
    },
    /// The model was set, with the size of its context window if it is known.
    ModelSet {
        window: Option<u64>,
        lines: Vec<StyledLine>,
    },
    /// Lines for the user.
    Lines(Vec<StyledLine>),
    /// A command of the user has ended, with this status and output. The report contains restored and changed protected files.
    Ran {
        command: String,
        ended: String,
        output: String,
        report: Option<String>,
    },
    /// The files for completion.
    Files(Vec<String>),
    UserCommands(Vec<UserCommand>),
    Prompts(Vec<PromptCommand>),
    Prompt(PromptText),
    History(Vec<Turn>),
    /// The conversation ends, and this one follows.
    Next(ConversationEnd),
}

/// Event of a session or of the connection to it.
#[derive(Debug)]
#[cfg_attr(
    not(any(test, feature = "client")),
    expect(dead_code, reason = "only a session of a server has a connection")
)]
pub(super) enum PortEvent {
    /// New event of the session or of a subagent.
    Session(Box<SessionEvent>),
    /// Event that an earlier process has emitted.
    Earlier(Box<SessionEvent>),
    /// The turn failed for this reason.
    Failed(String),
    /// Notice for the user, with a label.
    Note { label: &'static str, text: String },
    /// A server asks the user.
    Question(Question),
    /// The [state](PortState) has changed without an event of the session.
    State,
    /// The connection was lost for this reason, and is being restored.
    Away(String),
    /// The connection is restored.
    Back,
    /// All events follow again, for this reason.
    Reset(String),
}

/// Returns a future of a command that has been carried out.
fn carried_out(result: PortResult) -> BoxFuture<'static, PortResult> {
    Box::pin(std::future::ready(result))
}
