//! The canonical kinds of tools.

use std::fmt;

/// The kind of a tool, independent of its name: `shell`, `Bash` and `run_shell_command` are all [`ToolKind::Shell`].
///
/// These are the kinds of the loop specification, which determine the default output limits. A tool reports its kind as
/// text ([`Tool::kind`](crate::Tool::kind)), so that an application can define custom kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Reads a file.
    ReadFile,
    /// Reads several files.
    ReadManyFiles,
    /// Writes a whole file.
    WriteFile,
    /// Replaces text in a file.
    EditFile,
    /// Applies a patch.
    ApplyPatch,
    /// Runs a command.
    Shell,
    /// Searches the content of files.
    Grep,
    /// Finds files by name.
    Glob,
    /// Lists a directory.
    ListDir,
    /// Starts another agent.
    SpawnAgent,
}

impl ToolKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::ReadFile,
        Self::ReadManyFiles,
        Self::WriteFile,
        Self::EditFile,
        Self::ApplyPatch,
        Self::Shell,
        Self::Grep,
        Self::Glob,
        Self::ListDir,
        Self::SpawnAgent,
    ];

    /// Returns the name of this kind's tool in the loop specification.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::ReadManyFiles => "read_many_files",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::ApplyPatch => "apply_patch",
            Self::Shell => "shell",
            Self::Grep => "grep",
            Self::Glob => "glob",
            Self::ListDir => "list_dir",
            Self::SpawnAgent => "spawn_agent",
        }
    }

    /// Returns the kind of the built-in tool with this name, in any toolset; `None` for another name.
    #[must_use]
    pub fn of_tool(name: &str) -> Option<Self> {
        match name {
            "Read" => Some(Self::ReadFile),
            "Write" => Some(Self::WriteFile),
            "Edit" | "replace" => Some(Self::EditFile),
            "Bash" | "exec_command" | "run_shell_command" => Some(Self::Shell),
            "Grep" | "grep_search" | "search_file_content" => Some(Self::Grep),
            "Glob" => Some(Self::Glob),
            "list_directory" => Some(Self::ListDir),
            "Task" | "invoke_agent" => Some(Self::SpawnAgent),
            _ => Self::from_name(name),
        }
    }

    /// Returns the kind with this name; `None` for a custom one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for ToolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in ToolKind::ALL {
            assert_eq!(ToolKind::from_name(&kind.to_string()), Some(kind));
        }
        assert_eq!(ToolKind::from_name("Bash"), None);
    }
}
