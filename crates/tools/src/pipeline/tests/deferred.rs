//! Tools that no request defines, and calls that stand for others.

use pintle_llm::ToolDefinition;

use super::*;
use crate::registry::{DeferredTools, RegisteredTool};
use crate::tool::RepresentedCall;

/// Tools that no request defines.
struct Deferred(Vec<Arc<RegisteredTool>>);

impl DeferredTools for Deferred {
    fn find(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        self.0.iter().find(|tool| tool.name() == name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|tool| tool.name().to_owned()).collect()
    }
}

/// Calls another tool.
struct Relay;

#[async_trait]
impl DynTool for Relay {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let parameters = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        ToolDefinition::new("relay", "Calls a tool.", parameters)
            .map_err(|error| DefinitionError::refused("relay", error))
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    fn represented_call(&self, arguments: &Value) -> Option<RepresentedCall> {
        let text = arguments.get("text").cloned().unwrap_or_default();
        Some(RepresentedCall::new(arguments.get("name")?.as_str()?, json!({"text": text})))
    }

    async fn call_json(&self, _arguments: Value, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("itself"))
    }
}

/// Notes what it judges.
#[derive(Debug, Default)]
struct Judged(Arc<Mutex<Vec<(String, Effect)>>>);

#[async_trait]
impl Gate for Judged {
    fn name(&self) -> &'static str {
        "judged"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        self.0.lock().unwrap().push((call.name().to_owned(), call.effect()));
        Verdict::ALLOW
    }
}

#[tokio::test]
async fn a_call_that_stands_for_another_is_judged_and_run_as_that_one() {
    let mut registry = ToolRegistry::new();
    registry.register(Relay).unwrap();
    let definitions = registry.definitions();
    let echo = RegisteredTool::new(Arc::new(Echo { name: "echo", prefix: "" })).unwrap();
    registry.set_deferred(Some(Arc::new(Deferred(vec![Arc::new(echo)]))));
    assert_eq!(registry.definitions(), definitions, "no request defines it");
    let judged = Judged::default();
    let seen = Arc::clone(&judged.0);
    let options = RunOptions::new().with_gate(judged);
    let cx = ToolContext::new(Arc::new(pintle_env::MemoryEnvironment::new("/work")), "");
    for (name, arguments, expected) in [
        ("relay", json!({"name": "echo", "text": "a"}), "a"),
        ("echo", json!({"text": "b"}), "b"),
        ("relay", json!({}), "itself"),
        ("relay", json!({"name": "ecco"}), "Unknown tool: ecco. Did you mean echo?"),
        ("relay", json!({"name": "relay"}), "itself"),
    ] {
        let call = ToolCall::from_raw("call", name, arguments.to_string());
        let execution = super::super::run(&registry, &call, &cx, &options).await;
        assert_eq!(execution.result.text(), expected, "{name} {arguments}");
    }
    let call = ToolCall::from_raw("call", "relay", json!({"name": "echo", "text": 7}).to_string());
    let refused = super::super::run(&registry, &call, &cx, &options).await;
    assert!(refused.result.text().starts_with("Invalid arguments for tool: echo\n"), "{refused:?}");
    let expected = [
        ("echo", Effect::Write),
        ("echo", Effect::Write),
        ("relay", Effect::Execute),
        ("relay", Effect::Execute),
    ];
    assert_eq!(*seen.lock().unwrap(), expected.map(|(name, effect)| (name.to_owned(), effect)));
}
