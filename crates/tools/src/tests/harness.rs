//! Test harness that runs calls through the pipeline in a temporary directory.

use std::path::PathBuf;
use std::sync::Arc;

use pintle_env::LocalEnvironment;
use pintle_llm::ToolCall;
use tempfile::TempDir;

use crate::context::ToolContext;
use crate::pipeline::{Execution, JudgedCall, execute, prepare};
use crate::registry::ToolRegistry;
use crate::tool::DynTool;
use crate::truncate::TruncationLimits;

/// A temporary directory with a local environment in it.
pub(crate) struct Harness {
    directory: TempDir,
    pub(crate) env: Arc<LocalEnvironment>,
}

impl Harness {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Of the machine's environment, tests need only the directories of programs.
        let path = [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
        let env = LocalEnvironment::with_host_env(directory.path(), path).unwrap();
        Self { directory, env: Arc::new(env) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "fixtures are written before the environment is used")]
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "the test changes files without the environment")]
    pub(crate) fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "the test checks files without the environment")]
    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(name)).ok()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name).unwrap()).unwrap()
    }

    pub(crate) fn context(&self) -> ToolContext {
        ToolContext::new(self.env.clone(), "call_1")
    }

    /// Returns what the model reads of a call: `ok: ` or `error: `, and the text, with the directory as `DIR`.
    pub(crate) async fn call(&self, tool: impl DynTool, arguments: &str) -> String {
        let (is_error, text) = match self.prepare(tool, arguments).await {
            JudgedCall::Ready { call, .. } => {
                let result = execute(&call, &self.context(), &TruncationLimits::new()).await.result;
                (result.is_error, result.text())
            }
            JudgedCall::Refused { error, .. } => (true, error.for_model().to_owned()),
            asks @ JudgedCall::Ask { .. } => panic!("{arguments}: {asks:?}"),
        };
        format!("{}: {}", if is_error { "error" } else { "ok" }, self.mask(&text))
    }

    async fn prepare(&self, tool: impl DynTool, arguments: &str) -> JudgedCall {
        let mut registry = ToolRegistry::new();
        registry.register(tool).unwrap();
        let name = registry.names().next().unwrap().to_owned();
        let call = ToolCall::from_raw("call_1", name, arguments);
        prepare(&registry, &[], self.env.as_ref(), &call).await
    }

    /// Executes a call whose arguments must be valid.
    pub(crate) async fn execute(&self, tool: impl DynTool, arguments: &str) -> Execution {
        self.execute_in(&self.context(), tool, arguments).await
    }

    pub(crate) async fn execute_in(
        &self,
        cx: &ToolContext,
        tool: impl DynTool,
        arguments: &str,
    ) -> Execution {
        match self.prepare(tool, arguments).await {
            JudgedCall::Ready { call, .. } => execute(&call, cx, &TruncationLimits::new()).await,
            other @ (JudgedCall::Ask { .. } | JudgedCall::Refused { .. }) => {
                panic!("{arguments}: {other:?}")
            }
        }
    }

    pub(crate) fn mask(&self, text: &str) -> String {
        text.replace(self.directory.path().to_str().unwrap(), "DIR")
    }
}
