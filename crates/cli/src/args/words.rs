//! Words of the command line of this process.

use std::ffi::OsString;
use std::sync::Arc;

/// Words of the command line of this process, which are read once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandWords {
    /// The words of the caller.
    pub(crate) passed: Arc<[OsString]>,
    /// The words with the command's own flags in place of the flags of other agents, and with the subcommand of a conversation
    /// if the caller omitted it.
    pub(crate) own: Arc<[OsString]>,
}
