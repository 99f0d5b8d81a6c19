//! The tools of Claude Code 2.1: `Read`, `Edit`, `Write`, `Bash`, `Grep`, `Glob` and `TodoWrite`.

mod bash;
mod edit;
mod glob;
mod grep;
mod read;
mod todo_write;
mod write;

pub use self::bash::{Bash, BashInput};
pub use self::edit::{Edit, EditInput};
pub use self::glob::{Glob, GlobInput};
pub use self::grep::{Grep, GrepInput, GrepOutputMode};
pub use self::read::{Read, ReadInput};
pub use self::todo_write::{Todo, TodoStatus, TodoWrite, TodoWriteInput};
pub use self::write::{Write, WriteInput};
