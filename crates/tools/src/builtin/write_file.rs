//! `write_file`: a whole file at once.

use std::path::{Path, PathBuf};

use pintle_env::EnvError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::diff::file_change;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::tool::{ChangeKind, Effect, FileChange, Tool, ToolOutput};

/// Creates or replaces a file (loop specification, section 3.3).
///
/// Parents are created; the content is written as it is given, without a look at the line ends of what was there.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteFile(());

/// The arguments of `write_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WriteFileInput {
    /// The absolute path of the file.
    pub file_path: String,
    /// The whole content of the file.
    pub content: String,
}

impl WriteFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for WriteFile {
    type Input = WriteFileInput;

    fn name(&self) -> &str {
        "write_file"
    }

    fn description(&self) -> &str {
        include_str!("write_file.md").trim_end()
    }

    fn effect(&self) -> Effect {
        Effect::Write
    }

    fn repeatable(&self) -> bool {
        // The same content is there after the second time as after the first.
        true
    }

    fn writes(&self, input: &WriteFileInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    fn rehearsable(&self) -> bool {
        true
    }

    async fn call(&self, input: WriteFileInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let WriteFileInput { file_path, content } = input;
        let change = write_file(&file_path, &content, cx).await?;
        let done = if change.kind == ChangeKind::Added { "created" } else { "overwrote an existing file" };
        let message = format!("Wrote {} bytes to {file_path} ({done})", content.len());
        Ok(ToolOutput::new(message).with_change(change))
    }
}

/// Writes a whole file. Tools that call it what they like share it.
pub(crate) async fn write_file(
    file_path: &str,
    content: &str,
    cx: &ToolContext,
) -> Result<FileChange, ToolError> {
    let path = Path::new(file_path);
    let old = match cx.env.read(path, None).await {
        Ok(bytes) => Some(bytes),
        Err(EnvError::NotFound { .. }) => None,
        // Too long to hold: a zero byte stands for it, so that no diff is made.
        Err(EnvError::TooLarge { .. }) => Some(vec![0]),
        Err(error) => return Err(error.into()),
    };
    cx.env.write(path, content.as_bytes()).await?;
    Ok(file_change(file_path, old, content.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::workbench::Workbench;

    #[tokio::test]
    async fn a_file_is_created_with_its_parents_and_replaced_whole() {
        let bench = Workbench::new();
        let made = bench.execute(WriteFile::new(), r#"{"file_path": "a/b/c.txt", "content": "é\n"}"#).await;
        assert_eq!(made.result.text(), "Wrote 3 bytes to a/b/c.txt (created)");
        assert_eq!(bench.text("a/b/c.txt"), "é\n");
        assert_eq!((made.changes.len(), &made.changes[0].kind), (1, &ChangeKind::Added));

        let replaced = bench.execute(WriteFile::new(), r#"{"file_path": "a/b/c.txt", "content": "x"}"#).await;
        assert_eq!(replaced.result.text(), "Wrote 1 bytes to a/b/c.txt (overwrote an existing file)");
        assert_eq!(bench.text("a/b/c.txt"), "x");
        assert_eq!(replaced.changes[0].kind, ChangeKind::Modified);
        insta::assert_snapshot!(replaced.changes[0].diff, @r"
        --- a/a/b/c.txt
        +++ b/a/b/c.txt
        @@ -1 +1 @@
        -é
        +x
        \ No newline at end of file
        ");
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_said() {
        let bench = Workbench::new();
        bench.write("dir/file", "");
        for (path, expected) in [
            ("dir", "DIR/dir is a directory, expected a file"),
            ("dir/file/below", "DIR/dir/file/below is not a directory"),
        ] {
            let arguments = format!(r#"{{"file_path": "{path}", "content": ""}}"#);
            assert_eq!(
                bench.call(WriteFile::new(), &arguments).await,
                format!("error: Tool error (write_file): {expected}")
            );
        }
    }
}
