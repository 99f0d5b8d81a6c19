//! The tools for commands in the background.

mod list;
mod read;
mod start;
mod stop;
mod write;

pub use self::list::{ShellList, ShellListInput};
pub(crate) use self::read::follow;
pub use self::read::{ShellRead, ShellReadInput};
pub(crate) use self::start::NOT_STARTED;
pub use self::start::{ShellStart, ShellStartInput};
pub(crate) use self::stop::stop;
pub use self::stop::{ShellStop, ShellStopInput};
pub use self::write::{ShellWrite, ShellWriteInput};
use crate::error::DefinitionError;
use crate::registry::ToolRegistry;

/// Registers `shell_start`, `shell_read`, `shell_write`, `shell_stop` and `shell_list`.
///
/// They use the [`BackgroundCommands`](crate::builtin::BackgroundCommands) of their call's context. All calls of a
/// session must share these.
///
/// # Errors
///
/// Errors of [`ToolRegistry::register_static`]. They are not expected, since tests verify the definitions.
pub fn register_background(registry: &mut ToolRegistry) -> Result<(), DefinitionError> {
    registry.register_static(ShellStart::new())?;
    registry.register_static(ShellRead::new())?;
    registry.register_static(ShellWrite::new())?;
    registry.register_static(ShellStop::new())?;
    registry.register_static(ShellList::new())
}

#[cfg(test)]
mod tests;
