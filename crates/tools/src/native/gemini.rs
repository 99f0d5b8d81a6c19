//! The tools of gemini-cli 0.27: `read_file`, `write_file`, `replace`, `run_shell_command`, `search_file_content`,
//! `glob` and `list_directory`; and, if there are clients for them, `web_fetch` and `google_web_search`.

mod glob;
mod google_web_search;
mod list_directory;
mod read_file;
mod replace;
mod run_shell_command;
mod search_file_content;
mod web_fetch;
mod write_file;

pub use self::glob::{Glob, GlobInput};
pub use self::google_web_search::{GoogleWebSearch, GoogleWebSearchInput};
pub use self::list_directory::{ListDirectory, ListDirectoryInput};
pub use self::read_file::{ReadFile, ReadFileInput};
pub use self::replace::{Replace, ReplaceInput};
pub use self::run_shell_command::{RunShellCommand, RunShellCommandInput};
pub use self::search_file_content::{SearchFileContent, SearchFileContentInput};
pub use self::web_fetch::{WebFetch, WebFetchInput};
pub use self::write_file::{WriteFile, WriteFileInput};
