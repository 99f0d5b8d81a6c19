//! The conversation as a client of a server: input goes to the server, and output comes from the events of the session
//! there. Leaving the conversation does not change the session.

mod approvals;
mod commands;
mod driver;
mod outbox;
mod texts;

use std::path::Path;

use pintle_client::SessionInfo;

use self::driver::Attached;
use super::conversation::Conversation;
use super::device::Device;
use super::history::History;
use super::painter::Screen;
use super::status::Status;
use crate::args::ConversationArgs;
use crate::console;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::process_env::ProcessEnv;
use crate::remote::Remote;

/// Environment shown in the status line.
const ENVIRONMENT: &str = "server";

/// Runs the conversation until the user leaves.
pub(crate) async fn converse(
    remote: &Remote,
    session: &SessionInfo,
    flags: &ConversationArgs,
    process_env: &ProcessEnv,
    interrupts: &Interrupts,
) -> Result<(), Failure> {
    let directory = session.directory.clone().unwrap_or_default();
    let depth = super::depth(flags, process_env);
    // Call this before the terminal is entered, because it decides whether the title is saved.
    let attention = super::attention(flags, Path::new(&directory), process_env, depth);
    let mut device = if flags.plain {
        Device::lines()?
    } else {
        console::modes::restore_on_panic();
        Device::enter()?
    };
    let size = console::size();
    let status = Status { environment: ENVIRONMENT.to_owned(), ..Status::default() };
    let history = History::new(Vec::new());
    let conversation = match flags.plain {
        true => Conversation::in_lines(size, history, status),
        false => Conversation::new(size, history, status),
    };
    let screen = Screen { size, depth, reflows: super::reflows(process_env), moves: !flags.plain };
    let mut attached = Attached::new(remote, session, conversation, screen, attention, process_env);
    attached.run(&mut device, interrupts).await
}
