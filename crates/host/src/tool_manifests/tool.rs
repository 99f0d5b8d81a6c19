//! A tool that a manifest declares.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{ExecRequest, ExecutionEnvironment, shell_word};
use pintle_llm::ToolDefinition;
use pintle_tools::builtin::run_command;
use pintle_tools::{
    DefinitionError, DynTool, Effect, ToolContext, ToolError, ToolErrorKind, ToolInput, ToolOutput,
    TruncationRule,
};
use serde_json::{Map, Value};

use super::directory::LoadedManifest;
use super::manifest::ToolManifest;
use super::template::{self, Template};

/// Tool that runs the program of a manifest in the environment of the session.
pub(crate) struct ManifestTool {
    loaded: LoadedManifest,
    /// The declared effect if the environment enforces it, and otherwise [`Effect::Execute`].
    effect: Effect,
    /// Environment that reads the files of the manifest, without the limits on file tools.
    files: Arc<dyn ExecutionEnvironment>,
}

/// Arguments of a call as the words of a command line.
struct Invocation {
    words: Vec<String>,
}

impl ManifestTool {
    pub(crate) fn new(loaded: LoadedManifest, effect: Effect, files: Arc<dyn ExecutionEnvironment>) -> Self {
        Self { loaded, effect, files }
    }

    fn manifest(&self) -> &ToolManifest {
        &self.loaded.manifest
    }
}

#[async_trait]
impl DynTool for ManifestTool {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        Ok(self.manifest().definition.clone())
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    fn truncation(&self) -> Option<TruncationRule> {
        let limits = self.manifest().limits;
        let mut rule = TruncationRule::of_kind(&self.manifest().definition.name);
        rule.chars = limits.output_chars.unwrap_or(rule.chars);
        rule.lines = limits.output_lines.or(rule.lines);
        Some(rule)
    }

    fn parse(&self, arguments: &Value) -> Result<ToolInput, ToolError> {
        let none = Map::new();
        let arguments = arguments.as_object().unwrap_or(&none);
        let manifest = self.manifest();
        let words =
            template::expand_all(&manifest.arguments, arguments).map_err(ToolError::invalid_arguments)?;
        let input = ToolInput::new(Invocation { words });
        let input = input.with_reads(paths(&manifest.reads, arguments)?);
        let input = input.with_writes(paths(&manifest.writes, arguments)?);
        let hosts = (!manifest.hosts.is_empty()).then(|| manifest.hosts.clone());
        Ok(input.with_hosts(hosts))
    }

    async fn call_parsed(&self, input: ToolInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Invocation { words } = input.into_value()?;
        let manifest = self.manifest();
        if let Some(changed) = self.loaded.programs.changed(self.files.as_ref()).await {
            let message = format!(
                "{} has changed since the session started, so the tool does not run; tell the user",
                changed.display()
            );
            return Err(ToolError::new(ToolErrorKind::Denied, message));
        }
        let mut request = ExecRequest::new(command_line(&manifest.program, &words));
        request = request.with_timeout(manifest.timeout.unwrap_or(cx.timeouts.default));
        for (name, value) in &manifest.environment {
            request = request.with_env(name, value);
        }
        if matches!(manifest.effect, Effect::Read | Effect::Network) {
            request = request.read_only();
        }
        run_command(request, cx).await
    }

    async fn call_json(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.call_parsed(self.parse(&arguments)?, cx).await
    }
}

/// Returns the line with which the shell of an environment replaces itself by the program. Each word is quoted, so that the
/// shell interprets none of them.
fn command_line(program: &str, words: &[String]) -> String {
    let mut line = format!("exec {}", shell_word(program));
    for word in words {
        line.push(' ');
        line.push_str(&shell_word(word));
    }
    line
}

/// Returns the paths of a call. A path whose argument is missing is left out.
fn paths(templates: &[Template], arguments: &Map<String, Value>) -> Result<Vec<PathBuf>, ToolError> {
    let words: Vec<String> =
        templates.iter().filter_map(|template| template.expand(arguments)).flatten().collect();
    if words.iter().any(|word| word.is_empty() || word.contains('\0')) {
        return Err(ToolError::invalid_arguments("found an empty path or a zero byte, expected a path"));
    }
    Ok(words.into_iter().map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pintle_env::LocalEnvironment;
    use serde_json::json;

    use super::super::directory::ToolDirectory;
    use super::*;

    const MANIFEST: &str = r#"
        name = "show"
        description = "Shows words."
        program = "./show.sh"
        arguments = ["{words}", ["--depth", "{depth}"]]
        effect = "write"
        reads = ["{words}"]
        writes = ["{out}", "log"]
        timeout = "5s"
        limits = { output_lines = 3 }
        environment = { GREETING = "hello $HOME" }
        [parameters]
        type = "object"
        [parameters.properties]
        words = { type = "array", items = { type = "string" } }
        depth = { type = "integer" }
        out = { type = "string" }
    "#;

    fn local(directory: &Path) -> Arc<dyn ExecutionEnvironment> {
        Arc::new(
            LocalEnvironment::with_host_env(directory, [("PATH".into(), "/usr/bin:/bin".into())]).unwrap(),
        )
    }

    #[expect(clippy::disallowed_methods, reason = "the test writes the files of a user")]
    async fn tool(directory: &Path, script: &str) -> ManifestTool {
        std::fs::write(directory.join("show.toml"), MANIFEST).unwrap();
        let program = directory.join("show.sh");
        std::fs::write(&program, script).unwrap();
        let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let files = local(directory);
        let mut loaded = ToolDirectory::read(directory, None, files.as_ref()).await;
        assert_eq!(loaded.problems, []);
        ManifestTool::new(loaded.tools.remove(0), Effect::Write, files)
    }

    #[tokio::test]
    async fn a_call_runs_the_program_with_its_words_and_variables() {
        let directory = tempfile::tempdir().unwrap();
        let script = "#!/bin/sh\nprintf '<%s>' \"$GREETING\" \"$@\"\n";
        let tool = tool(directory.path(), script).await;
        let cx = ToolContext::new(local(directory.path()), "1");
        let arguments = json!({"words": ["a b", "$(id)", "'; ls"], "depth": 2});
        let output = tool.call_json(arguments, &cx).await.unwrap();
        let text = String::from_utf8(output.text.read_at(0, 1_000).unwrap()).unwrap();
        assert!(text.starts_with("<hello $HOME><a b><$(id)><'; ls><--depth><2>"), "{text}");
        assert_eq!((output.exit_code, output.is_error), (Some(0), false));
        assert_eq!(tool.truncation().unwrap().lines, Some(3));
    }

    #[tokio::test]
    async fn a_call_names_its_paths_and_refuses_options() {
        let directory = tempfile::tempdir().unwrap();
        let tool = tool(directory.path(), "#!/bin/sh\n").await;
        let input = format!("{:?}", tool.parse(&json!({"words": ["a", "b"], "out": "c"})).unwrap());
        assert!(
            input.contains(r#"reads: ["a", "b"]"#) && input.contains(r#"writes: ["c", "log"]"#),
            "{input}"
        );
        for arguments in [json!({"words": ["-x"]}), json!({"words": [""]})] {
            let refused = tool.parse(&arguments).unwrap_err();
            assert_eq!(refused.kind(), ToolErrorKind::InvalidArguments, "{arguments}");
        }
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the test changes the file of a user")]
    async fn a_changed_program_does_not_run() {
        let directory = tempfile::tempdir().unwrap();
        let tool = tool(directory.path(), "#!/bin/sh\ntouch made\n").await;
        std::fs::write(directory.path().join("show.sh"), "#!/bin/sh\ntouch made # changed\n").unwrap();
        let cx = ToolContext::new(local(directory.path()), "1");
        let refused = tool.call_json(json!({"words": []}), &cx).await.unwrap_err();
        assert_eq!(refused.kind(), ToolErrorKind::Denied);
        assert!(refused.for_model().contains("show.sh has changed"), "{refused}");
        assert!(!directory.path().join("made").exists());
    }
}
