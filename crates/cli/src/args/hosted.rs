//! Flags of commands whose clients say what to do.

use super::RunArgs;
use crate::failure::Failure;

impl RunArgs {
    /// Checks that no flag is given that is about one task, nor one of `also`. `message` is told the flag.
    ///
    /// # Errors
    ///
    /// A usage failure with the message.
    pub(crate) fn refuse_hosted(
        &self,
        also: &[(&str, bool)],
        message: impl FnOnce(&str) -> String,
    ) -> Result<(), Failure> {
        self.conversation.refuse()?;
        let session = &self.session;
        let flags = [
            ("prompt", !self.prompt.is_absent()),
            ("--continue, --resume and --fork", session.goes_on() || session.fork.is_some()),
            ("--no-session", session.no_session),
            ("--worktree", session.worktree.is_some()),
            ("--output-schema", self.output_schema.is_some()),
            ("--image", !self.image.is_empty()),
        ];
        let given = flags.iter().chain(also).find(|(_, is_given)| *is_given);
        given.map_or(Ok(()), |(flag, _)| Err(Failure::usage(message(flag))))
    }
}
