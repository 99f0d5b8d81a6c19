//! Profiles with a toolset: the names of their tools, and sessions with them.

use std::path::Path;
use std::sync::Arc;

use pintle_agent::{Outcome, OutcomeStatus, ProviderProfile, Session, SessionBuilder, SessionEvent, Toolset};
use pintle_env::LocalEnvironment;
use pintle_testkit::{Call, Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions};
use serde_json::{Value, json};

use crate::events::CheckedEvents;
use crate::harness::{KEY, client, profile};

/// A profile and a toolset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestProfile {
    /// Dialect of the server, and profile of the session.
    pub(crate) dialect: Dialect,
    pub(crate) toolset: Toolset,
    /// Profile whose tools are used: its own, unless an application combines them.
    tools_of: Dialect,
}

/// Result of playing a script.
pub(crate) struct ScriptRun {
    pub(crate) events: Vec<SessionEvent>,
    pub(crate) requests: Vec<RecordedRequest>,
}

impl TestProfile {
    pub(crate) const fn spec(dialect: Dialect) -> Self {
        Self { dialect, toolset: Toolset::Spec, tools_of: dialect }
    }

    pub(crate) const fn native(dialect: Dialect) -> Self {
        Self { dialect, toolset: Toolset::Native, tools_of: dialect }
    }

    /// Uses the tools in the profile of another dialect.
    pub(crate) const fn used_by(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// Returns the number of a profile with its own tools, below 8.
    pub(crate) fn number(self) -> usize {
        2 * self.dialect as usize + usize::from(self.toolset == Toolset::Native)
    }

    /// Returns the tool that changes files.
    pub(crate) fn editing_tool(self) -> &'static str {
        match (self.tools_of, self.toolset) {
            (Dialect::OpenAiResponses, _) => "apply_patch",
            (Dialect::AnthropicMessages, Toolset::Native) => "Edit",
            (Dialect::Gemini, Toolset::Native) => "replace",
            (Dialect::AnthropicMessages | Dialect::Gemini | Dialect::ChatCompletions, _) => "edit_file",
        }
    }

    /// Returns whether that tool takes patches rather than text replacements.
    pub(crate) fn patches(self) -> bool {
        self.editing_tool() == "apply_patch"
    }

    pub(crate) fn patch(self, patch: &str) -> Call {
        match (self.toolset, self.dialect) {
            (Toolset::Spec, _) => Call::new("apply_patch", json!({ "patch": patch })),
            (_, Dialect::OpenAiResponses) => Call::freeform("apply_patch", patch),
            // Other dialects have no free-form tools; there the patch is an argument.
            _ => Call::new("apply_patch", json!({ "input": patch })),
        }
    }

    pub(crate) fn edit(self, path: &str, old: &str, new: &str) -> Call {
        let mut arguments = json!({ "file_path": path, "old_string": old, "new_string": new });
        if self.tools_of == Dialect::Gemini {
            arguments["instruction"] = json!("Mend the bug, so that the program's tests pass.");
        }
        Call::new(self.editing_tool(), arguments)
    }

    pub(crate) fn write(self, path: &str, content: &str) -> Call {
        let tool = match (self.tools_of, self.toolset) {
            (Dialect::AnthropicMessages, Toolset::Native) => "Write",
            _ => "write_file",
        };
        Call::new(tool, json!({ "file_path": path, "content": content }))
    }

    pub(crate) fn run(self, command: &str) -> Call {
        match (self.tools_of, self.toolset) {
            (Dialect::OpenAiResponses, Toolset::Native) => {
                Call::new("exec_command", json!({ "cmd": command }))
            }
            (Dialect::AnthropicMessages, Toolset::Native) => Call::new("Bash", json!({ "command": command })),
            (Dialect::Gemini, Toolset::Native) => {
                Call::new("run_shell_command", json!({ "command": command }))
            }
            _ => Call::new("shell", json!({ "command": command })),
        }
    }

    /// Plays a script in a directory: a whole session over HTTP that completes, and whose requests violate no rule.
    pub(crate) async fn play(
        self,
        directory: &Path,
        mut script: Script,
        change: impl FnOnce(SessionBuilder, Arc<LocalEnvironment>) -> SessionBuilder,
    ) -> ScriptRun {
        for turn in &mut script.turns {
            turn.only = Some(vec![self.dialect]);
        }
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(directory, std::env::vars_os()).unwrap());
        let mut own: ProviderProfile = profile(self.dialect).with_toolset(self.toolset);
        if self.tools_of != self.dialect {
            own.tool_registry = profile(self.tools_of).with_toolset(self.toolset).tool_registry;
        }
        let builder = Session::builder(client(&server, self.dialect, KEY), own, env.clone());
        let session = change(builder, env).build().unwrap();
        let _checked = CheckedEvents::of(&session);
        let mut run = session.submit("Mend the program.");
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        let Outcome { status, error, .. } =
            run.await.or_else(pintle_agent::RunError::into_outcome).expect("the session lives");
        assert_eq!(status, OutcomeStatus::Completed, "{self:?}: {error:?}");
        session.close().await;
        assert!(server.finished(self.dialect), "{self:?}: the script has turns left");
        let requests = server.requests();
        server.shutdown().await;
        for request in &requests {
            assert_eq!(request.violations, [], "{self:?}: {}", request.body);
        }
        ScriptRun { events, requests }
    }
}

impl ScriptRun {
    /// Returns the results of all calls as the model sees them, in order.
    pub(crate) fn results(&self) -> Vec<String> {
        results(self.requests.last().expect("a session makes requests"))
    }
}

/// Returns the results of all calls in a request, in order.
pub(crate) fn results(request: &RecordedRequest) -> Vec<String> {
    let body = &request.body;
    match request.dialect.expect("the path is that of a dialect") {
        Dialect::OpenAiResponses => each(&body["input"]).filter_map(|item| text(&item["output"])).collect(),
        Dialect::AnthropicMessages => each(&body["messages"])
            .flat_map(|message| each(&message["content"]))
            .filter(|block| block["type"] == "tool_result")
            .filter_map(|block| text(&block["content"]))
            .collect(),
        Dialect::Gemini => each(&body["contents"])
            .flat_map(|content| each(&content["parts"]))
            .filter_map(|part| part["functionResponse"]["response"].as_object())
            .filter_map(|response| response.values().find_map(text))
            .collect(),
        Dialect::ChatCompletions => each(&body["messages"])
            .filter(|message| message["role"] == "tool")
            .filter_map(|message| text(&message["content"]))
            .collect(),
    }
}

/// Returns the name and description of each tool that a request offers, in order.
pub(crate) fn offered(request: &RecordedRequest) -> Vec<(String, String)> {
    let tools = &request.body["tools"];
    let definitions: Vec<&Value> = match request.dialect.expect("the path is that of a dialect") {
        Dialect::OpenAiResponses | Dialect::AnthropicMessages => each(tools).collect(),
        Dialect::Gemini => each(tools).flat_map(|tool| each(&tool["functionDeclarations"])).collect(),
        Dialect::ChatCompletions => each(tools).map(|tool| &tool["function"]).collect(),
    };
    let field = |tool: &Value, name: &str| tool[name].as_str().expect("a text").to_owned();
    definitions.into_iter().map(|tool| (field(tool, "name"), field(tool, "description"))).collect()
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns a text, or the concatenated texts of a list of parts.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        _ => None,
    }
}
