//! Audits of real sessions, with a fake model, rules, and tools that do nothing.

mod calls;
mod serialised;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{
    Decision, EventKind, Principal, ProviderProfile, Session, SessionBuilder, SessionConfig, SessionHandle,
};
use pintle_env::{ExecutionEnvironment, MemoryEnvironment};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Error, EventStream, Message, ProviderAdapter, Request, Response, Role, ToolCall};
use pintle_tools::{ChangeKind, Effect, FileChange, Tool, ToolContext, ToolError, ToolOutput, ToolRegistry};
use serde_json::{Value, json};

use super::*;
use crate::{Mode, Policy, PolicyGate, Rules};

const RULES: &str = r#"
allow = ["look", "note", "fail", "slow", "hang", "fetch", "spawn_agent", "wait"]
ask = ["run"]
deny = ["forbidden"]
"#;

/// Tool that does what its name says.
struct EffectTool(&'static str, Effect);

const TOOLS: [EffectTool; 9] = [
    EffectTool("look", Effect::Read),
    EffectTool("note", Effect::Write),
    EffectTool("run", Effect::Execute),
    EffectTool("forbidden", Effect::Execute),
    EffectTool("fail", Effect::Read),
    EffectTool("slow", Effect::Execute),
    EffectTool("hang", Effect::Write),
    EffectTool("fetch", Effect::Network),
    // No rule names it, so the mode asks about it.
    EffectTool("build", Effect::Execute),
];

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Arguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl Tool for EffectTool {
    type Input = Arguments;

    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &'static str {
        "Does what its name says."
    }

    fn effect(&self) -> Effect {
        self.1
    }

    async fn call(&self, input: Arguments, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match self.0 {
            "note" => {
                let change = FileChange::new(
                    "notes",
                    ChangeKind::Modified,
                    "--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+z\n",
                );
                Ok(ToolOutput::new("noted").with_change(change))
            }
            "run" | "build" => Ok(ToolOutput::new(json!(input).to_string()).with_exit_code(Some(7))),
            "fail" => Err(ToolError::failed("it does not work")),
            "slow" => Ok(ToolOutput::new("half").with_timed_out(Some(Duration::from_secs(2)))),
            "hang" => std::future::pending().await,
            name => Ok(ToolOutput::new(format!("{name} did"))),
        }
    }
}

/// Models of a session and of its subagents, found by the beginning of the first message.
#[derive(Debug)]
struct Models(Vec<(&'static str, FakeAdapter)>);

impl Models {
    fn of(&self, request: &Request) -> &FakeAdapter {
        let first = request.messages.iter().find(|message| message.role == Role::User);
        let text = first.map(|message| message.text()).unwrap_or_default();
        let found = self.0.iter().find(|(beginning, _)| text.starts_with(beginning));
        found.map_or_else(|| panic!("no model for {text:?}"), |(_, model)| model)
    }
}

#[async_trait]
impl ProviderAdapter for Models {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.of(request).complete(request).await
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        self.of(request).stream(request).await
    }
}

fn model() -> FakeAdapter {
    FakeAdapter::new("anthropic")
}

/// Returns a response with these calls: id, tool, arguments.
fn calling(calls: &[(&str, &str, Value)]) -> Message {
    let call = |(id, tool, arguments): &(&str, &str, Value)| {
        ToolCall::from_raw(*id, *tool, arguments.to_string()).into()
    };
    Message::new(Role::Assistant, calls.iter().map(call).collect())
}

fn profile(name: &str) -> ProviderProfile {
    let mut registry = ToolRegistry::new();
    for tool in TOOLS {
        registry.register(tool).unwrap();
    }
    let mut profile = ProviderProfile::anthropic(name);
    profile.tool_registry = registry;
    profile
}

fn builder_for(profile: ProviderProfile, models: Models) -> SessionBuilder {
    let client = Client::builder().provider(models).build().unwrap();
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/w"));
    let rules = Rules::parse("rules.toml", RULES, std::path::Path::new("/w")).unwrap();
    let gate = PolicyGate::new(Policy::new(Mode::Edit, rules, "/w"), Arc::clone(&env));
    Session::builder(client, profile, env).gate(gate).record(true)
}

/// Returns a session whose model answers with these calls, and then with "done".
fn builder(answers: Vec<Message>) -> SessionBuilder {
    let model = answers.into_iter().fold(model(), FakeAdapter::message).answer("done").answer("done again");
    builder_for(profile("claude-opus-4-6"), Models(vec![("", model)]))
}

/// Runs one input. `decide` is called for each request for approval.
async fn record(builder: SessionBuilder, mut decide: impl FnMut(&SessionHandle, &str)) -> Record {
    let session = builder.build().unwrap();
    let handle = session.handle().acting_as(Principal::new("jan"));
    let mut run = session.submit("go");
    while let Some(event) = run.next().await {
        if let EventKind::ApprovalRequested { call_id, .. } = &event.kind {
            decide(&handle, call_id);
        }
    }
    session.close().await;
    handle.record().unwrap()
}

fn nobody(_: &SessionHandle, call_id: &str) {
    panic!("{call_id} was asked about");
}

async fn audit(answers: Vec<Message>, decide: impl FnMut(&SessionHandle, &str)) -> Audit {
    audit_of(&record(builder(answers), decide).await)
}

/// Returns the audit of a record, which reads back from JSON and fits the schema.
fn audit_of(record: &Record) -> Audit {
    let audit = Audit::of_record(record).unwrap();
    let report = AuditReport::new(audit.clone()).with_chain(ChainReport::new(9, "1:9:00"));
    let value = serde_json::to_value(&report).unwrap();
    let validator = jsonschema::draft202012::new(&report_schema()).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {value}");
    assert_eq!(serde_json::from_value::<AuditReport>(value).unwrap(), report);
    audit
}

/// Returns the audit of a session that made one call.
async fn one_call(tool: &str, decide: impl FnMut(&SessionHandle, &str)) -> CallHistory {
    let audit = audit(vec![calling(&[("c1", tool, json!({"x": 1}))])], decide).await;
    assert_eq!(audit.calls.len(), 1, "{audit:?}");
    audit.calls.into_iter().next().unwrap()
}
