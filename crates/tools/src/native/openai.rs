//! The tools of codex 0.98: `exec_command`, `write_stdin`, `apply_patch` with free text, `view_image`, and, if there is
//! a user to answer, `request_user_input`. Its `update_plan` is the [built-in one](crate::builtin::UpdatePlan).

mod apply_patch;
mod exec_command;
mod request_user_input;
mod view_image;
mod write_stdin;

pub use self::apply_patch::{ApplyPatch, ApplyPatchInput};
pub use self::exec_command::{ExecCommand, ExecCommandInput};
pub use self::request_user_input::{InputOption, InputQuestion, RequestUserInput, RequestUserInputInput};
pub use self::view_image::{ViewImage, ViewImageInput};
pub use self::write_stdin::{WriteStdin, WriteStdinInput};
