//! The command line, the stream and the control channel of Claude Code's `stream-json`, as
//! `@anthropic-ai/claude-agent-sdk` uses them.
//!
//! * [`StreamOptions::parse`] reads the command line.
//! * [`InputLines`] finds the lines of standard input, and [`IncomingLine::parse`] reads one of them.
//! * [`ControlChannel`] matches requests with answers, in both directions.
//! * A [`Formatter`] writes the lines of the runs.
//!
//! # Names of tools
//!
//! The SDK's users match on names of tools: in `allowedTools`, in matchers of hooks, in `canUseTool`. All output uses
//! Claude's names, and [`own_tool_names`] converts a name in the input to the names of the toolsets.
//!
//! | Claude | toolsets of the families |
//! |---|---|
//! | `Bash` | `Bash`, `shell`, `exec_command`, `run_shell_command`, `shell_start` |
//! | `TaskOutput`, formerly `BashOutput` | `TaskOutput`, `shell_read`, `shell_list`, `write_stdin`, `shell_write` |
//! | `TaskStop`, formerly `KillShell` | `TaskStop`, `shell_stop` |
//! | `Read` | `Read`, `read_file`, `read_many_files`, `view_image` |
//! | `Write` | `Write`, `write_file` |
//! | `Edit` | `Edit`, `edit_file`, `replace`, `apply_patch` |
//! | `NotebookEdit` | `NotebookEdit` |
//! | `Glob` | `Glob`, `glob` |
//! | `Grep` | `Grep`, `grep`, `search_file_content` |
//! | `LS` | `list_dir`, `list_directory` |
//! | `TodoWrite` | `TodoWrite`, `update_plan` |
//! | `WebFetch` | `WebFetch`, `web_fetch` |
//! | `WebSearch` | `WebSearch`, `web_search`, `google_web_search` |
//! | `AskUserQuestion` | `AskUserQuestion`, `ask_user`, `request_user_input` |
//! | `Agent`, formerly `Task` | `spawn_agent`, `invoke_agent`, `send_input`, `wait`, `close_agent` |
//! | `mcp__SERVER__TOOL`, any other name | the same |
//!
//! Arguments are not converted. The arguments of the native toolset are Claude's own. An application that needs them
//! for other models as well selects that toolset. A rule that denies `Edit` also applies to `Write` and `NotebookEdit`;
//! a rule that allows it does not.

mod control;
mod fields;
mod formatter;
mod hooks;
mod ids;
mod incoming;
mod info;
mod lines;
mod message;
mod mode;
mod options;
mod partial;
mod permission;
mod request;
mod result;
mod settings;
mod tool_names;
mod tool_rule;
mod usage;
mod user_line;

pub use control::{ControlChannel, ControlError, ControlEvent, ControlLimits, ControlStep, SentRequest};
pub use formatter::{Formatter, FormatterSettings};
pub use hooks::{HookAnswer, HookBase, HookMatcher, HookRegistration};
pub use incoming::{IncomingLine, RefusedRequest};
pub use info::{InitInfo, McpServerStatus};
pub use lines::{InputLines, LineError, MAX_LINE};
pub use mode::PermissionMode;
pub use options::{SettingSource, StreamOptions, Thinking};
pub use permission::{PermissionAnswer, PermissionRequest, PermissionUpdate};
pub use pintle_agent::HookEvent;
pub use request::{ContextUsage, HostRequest, InitializeAnswer, InitializeRequest, RewindAnswer};
pub use result::RunEnd;
pub use settings::ClaudeSettings;
pub use tool_names::{claude_tool_name, own_tool_names};
pub use tool_rule::{InvalidToolRule, RuleBehavior, ToolRule};
pub use user_line::UserLine;

#[cfg(test)]
mod tests;
