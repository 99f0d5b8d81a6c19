//! The conversation as a client of a server: what is typed goes to the server, and what is shown comes from the events of the
//! session there. Leaving leaves the session as it is.

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

/// Place of the tools in the line of status.
const ENVIRONMENT: &str = "server";

/// Converses until the user leaves.
pub(crate) async fn converse(
    remote: &Remote,
    session: &SessionInfo,
    flags: &ConversationArgs,
    process_env: &ProcessEnv,
    interrupts: &Interrupts,
) -> Result<(), Failure> {
    let directory = session.directory.clone().unwrap_or_default();
    let depth = super::depth(flags, process_env);
    // Says whether the title is saved when the terminal is entered.
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
