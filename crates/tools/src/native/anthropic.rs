//! The tools of Claude Code 2.1: `Read`, `Edit`, `Write`, `NotebookEdit`, `Bash` with `TaskOutput` and `TaskStop`,
//! `Grep`, `Glob`, `TodoWrite`; and, if the application supports them, `WebFetch`, `WebSearch` and `AskUserQuestion`.

mod ask_user_question;
mod bash;
mod edit;
mod glob;
mod grep;
mod notebook_edit;
mod read;
mod task_id;
mod task_output;
mod task_stop;
mod todo_write;
mod web_fetch;
mod web_search;
mod write;

pub use self::ask_user_question::{AskUserQuestion, AskUserQuestionInput, QuestionOption, UserQuestion};
pub use self::bash::{Bash, BashInput};
pub use self::edit::{Edit, EditInput};
pub use self::glob::{Glob, GlobInput};
pub use self::grep::{Grep, GrepInput, GrepOutputMode};
pub use self::notebook_edit::{CellKind, NotebookEdit, NotebookEditInput, NotebookEditMode};
pub use self::read::{Read, ReadInput};
pub use self::task_output::{TaskOutput, TaskOutputInput};
pub use self::task_stop::{TaskStop, TaskStopInput};
pub use self::todo_write::{Todo, TodoStatus, TodoWrite, TodoWriteInput};
pub use self::web_fetch::{WebFetch, WebFetchInput};
pub use self::web_search::{WebSearch, WebSearchInput};
pub use self::write::{Write, WriteInput};
