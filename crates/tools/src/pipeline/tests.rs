mod bad_input;
mod deferred;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use pintle_env::LocalEnvironment;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::*;
use crate::error::DefinitionError;
use crate::tool::{DynTool, Effect, Tool, tool_fn};

/// A tool that repeats its text, or fails in the way that the text names.
#[derive(Clone)]
struct Echo {
    name: &'static str,
    prefix: &'static str,
}

#[derive(Deserialize, JsonSchema)]
struct EchoInput {
    /// The text to repeat.
    text: String,
    /// The number of times.
    times: Option<usize>,
}

impl Tool for Echo {
    type Input = EchoInput;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Repeats a text."
    }

    fn effect(&self) -> Effect {
        Effect::Write
    }

    fn writes(&self, input: &EchoInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.text)]
    }

    async fn call(&self, input: EchoInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match input.text.as_str() {
            "panic" => panic!("scripted {}", "panic"),
            "fail" => Err(ToolError::new(ToolErrorKind::NotFound, "nothing there")),
            "refuse" => Ok(ToolOutput::new("no").with_error(true)),
            text => {
                let repeated = text.repeat(input.times.unwrap_or(1));
                Ok(ToolOutput::new(format!("{}{repeated}", self.prefix)))
            }
        }
    }
}

/// A tool whose schema is known only at run time.
struct Dynamic(Value);

#[async_trait]
impl DynTool for Dynamic {
    fn definition(&self) -> Result<pintle_llm::ToolDefinition, DefinitionError> {
        pintle_llm::ToolDefinition::new("dynamic", "From a host.", self.0.clone())
            .map_err(|error| DefinitionError::refused("dynamic", error))
    }

    fn effect(&self) -> Effect {
        Effect::Network
    }

    async fn call_json(&self, arguments: Value, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(arguments.to_string()))
    }
}

/// A gate with a fixed verdict that records the calls.
#[derive(Debug)]
struct Fixed {
    verdict: Verdict,
    asked: Mutex<Vec<String>>,
}

impl Fixed {
    fn new(verdict: Verdict) -> Arc<Self> {
        Arc::new(Self { verdict, asked: Mutex::default() })
    }
}

#[async_trait]
impl Gate for Fixed {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        self.asked.lock().unwrap().push(format!("{} {} {:?}", call.name(), call.arguments(), call.effect()));
        self.verdict.clone()
    }
}

fn environment() -> LocalEnvironment {
    LocalEnvironment::with_host_env("/project", []).unwrap()
}

fn registry() -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    registry.register(Echo { name: "echo", prefix: "" }).unwrap();
    registry.register(Echo { name: "read_file", prefix: "" }).unwrap();
    registry
}

async fn prepared(registry: &ToolRegistry, call: &ToolCall) -> JudgedCall {
    prepare(registry, &[], &environment(), call).await
}

/// Returns why a call is refused.
async fn refusal(registry: &ToolRegistry, call: &ToolCall) -> String {
    match prepared(registry, call).await {
        JudgedCall::Refused { error, .. } => format!("{:?}: {}", error.kind(), error.for_model()),
        other @ (JudgedCall::Ready { .. } | JudgedCall::Ask { .. }) => panic!("{other:?}"),
    }
}

async fn run(registry: &ToolRegistry, call: &ToolCall) -> Execution {
    match prepared(registry, call).await {
        JudgedCall::Ready { call, .. } => {
            let cx = ToolContext::new(Arc::new(environment()), call.call_id());
            execute(&call, &cx, &TruncationLimits::new()).await
        }
        other @ (JudgedCall::Refused { .. } | JudgedCall::Ask { .. }) => panic!("{other:?}"),
    }
}

fn call(name: &str, arguments: &Value) -> ToolCall {
    ToolCall::from_raw("call_7", name, arguments.to_string())
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_similar_names() {
    let cases = [
        ("Read_File", "UnknownTool: Unknown tool: Read_File. Did you mean read_file?"),
        ("reader", "UnknownTool: Unknown tool: reader. Did you mean read_file?"),
        ("reach", "UnknownTool: Unknown tool: reach. Available tools: echo, read_file."),
        ("xyz", "UnknownTool: Unknown tool: xyz. Available tools: echo, read_file."),
    ];
    for (name, expected) in cases {
        assert_eq!(refusal(&registry(), &call(name, &json!({}))).await, expected);
    }
    assert_eq!(
        refusal(&ToolRegistry::new(), &call("echo", &json!({}))).await,
        "UnknownTool: Unknown tool: echo. There are no tools."
    );
}

#[tokio::test]
async fn invalid_arguments_are_explained() {
    let calls = [
        call("echo", &json!({})),
        call("echo", &json!({"text": 1, "times": "x", "colour": true})),
        call("echo", &json!([1])),
        call("echo", &json!(null)),
        ToolCall::from_raw("1", "echo", "{\"text\": "),
        ToolCall::from_raw("1", "echo", "not json"),
    ];
    let mut answers = Vec::new();
    for call in &calls {
        answers.push(refusal(&registry(), call).await);
    }
    insta::assert_snapshot!(answers.join("\n"), @r#"
    InvalidArguments: Invalid arguments for tool: echo
    - `text`: required, but missing
    InvalidArguments: Invalid arguments for tool: echo
    - `text`: expected string, got number 1
    - `times`: expected integer, got string "x"
    - `colour`: no such argument
    InvalidArguments: Invalid arguments for tool: echo
    - expected a JSON object, got an array
    InvalidArguments: Invalid arguments for tool: echo
    - `text`: required, but missing
    InvalidArguments: Invalid arguments for tool: echo
    - not valid JSON: EOF while parsing a value at line 1 column 9
    InvalidArguments: Invalid arguments for tool: echo
    - not valid JSON: expected ident at line 1 column 2
    "#);
}

#[tokio::test]
async fn a_prepared_call_describes_itself() {
    let JudgedCall::Ready { call, .. } =
        prepared(&registry(), &call("echo", &json!({"text": "a/../b"}))).await
    else {
        panic!("the call fits");
    };
    assert_eq!(
        (call.name(), call.call_id(), call.effect(), call.is_repeatable()),
        ("echo", "call_7", Effect::Write, false)
    );
    assert_eq!(call.arguments(), &json!({"text": "a/../b"}));
    assert_eq!(call.writes(), [PathBuf::from("/project/b")]);
}

#[tokio::test]
async fn two_names_of_a_file_have_one_target() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    std::fs::create_dir(real.join("src")).unwrap();
    std::os::unix::fs::symlink("src", real.join("link")).unwrap();
    std::os::unix::fs::symlink("src/file", real.join("other")).unwrap();
    let env = LocalEnvironment::with_host_env(&real, []).unwrap();
    for gates in [Vec::new(), vec![Fixed::new(Verdict::ask("it writes")) as Arc<dyn Gate>]] {
        for name in ["src/file", "src/../src/./file", "link/file", "other"] {
            let call = call("echo", &json!({"text": name}));
            let prepared = match prepare(&registry(), &gates, &env, &call).await {
                JudgedCall::Ready { call, .. } | JudgedCall::Ask { call, .. } => call,
                JudgedCall::Refused { error, .. } => panic!("{error:?}"),
            };
            assert_eq!(prepared.targets(), [real.join("src/file")], "{name}");
            assert_eq!(
                prepared.writes(),
                [env.resolve(name.as_ref())],
                "people read the name that was given"
            );
        }
    }
}

#[tokio::test]
async fn free_text_becomes_the_only_required_argument() {
    let execution = run(&registry(), &ToolCall::custom("1", "echo", "free\ntext")).await;
    assert_eq!(execution.result.text(), "free\ntext");
    let JudgedCall::Ready { call, .. } =
        prepared(&registry(), &ToolCall::custom("1", "echo", "free\ntext")).await
    else {
        panic!("the call fits");
    };
    assert_eq!(call.arguments(), &json!({"text": "free\ntext"}));

    let mut two_fields = ToolRegistry::new();
    let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]});
    two_fields.register(Dynamic(schema)).unwrap();
    assert_eq!(
        refusal(&two_fields, &ToolCall::custom("1", "dynamic", "text")).await,
        "InvalidArguments: Invalid arguments for tool: dynamic\n\
         - expected a JSON object with named arguments, got free text"
    );
}

#[tokio::test]
async fn gates_judge_in_order_until_one_denies() {
    let deny = Verdict::deny("not on a Sunday");
    let ask = Verdict::ask("it writes");
    let cases = [
        (vec![], "ready"),
        (vec![Verdict::ALLOW, Verdict::ALLOW], "ready"),
        (
            vec![Verdict::ALLOW, deny.clone(), ask.clone()],
            "Denied: The call of echo was denied: not on a Sunday",
        ),
        (vec![ask.clone(), deny.clone()], "Denied: The call of echo was denied: not on a Sunday"),
        (vec![ask.clone(), Verdict::ALLOW], "ask: it writes"),
    ];
    for (verdicts, expected) in cases {
        let fixed: Vec<Arc<Fixed>> = verdicts.iter().cloned().map(Fixed::new).collect();
        let gates: Vec<Arc<dyn Gate>> = fixed.iter().map(|gate| Arc::clone(gate) as Arc<dyn Gate>).collect();
        let call = call("echo", &json!({"text": "a"}));
        let outcome = match prepare(&registry(), &gates, &environment(), &call).await {
            JudgedCall::Ready { .. } => "ready".to_owned(),
            JudgedCall::Ask { judgement, .. } => format!("ask: {}", judgement.reason()),
            JudgedCall::Refused { error, .. } => format!("{:?}: {}", error.kind(), error.for_model()),
        };
        assert_eq!(outcome, expected);
        let decided = verdicts.iter().position(|verdict| *verdict == deny).unwrap_or(verdicts.len());
        for (index, gate) in fixed.iter().enumerate() {
            let expected: &[&str] = if index <= decided { &["echo {\"text\":\"a\"} Write"] } else { &[] };
            assert_eq!(*gate.asked.lock().unwrap(), expected, "gate {index} of {verdicts:?}");
        }
    }
}

#[tokio::test]
async fn every_call_has_a_result() {
    let cases = [
        ("fine", None, "fine"),
        ("fail", Some(ToolErrorKind::NotFound), "Tool error (echo): nothing there"),
        ("refuse", Some(ToolErrorKind::Failed), "no"),
        (
            "panic",
            Some(ToolErrorKind::Failed),
            "Tool error (echo): the tool itself is broken: it panicked (scripted panic)",
        ),
    ];
    for (text, error, expected) in cases {
        let execution = run(&registry(), &call("echo", &json!({"text": text}))).await;
        assert_eq!(execution.result.text(), expected);
        assert_eq!(execution.result.tool_call_id, "call_7");
        assert_eq!((execution.result.is_error, execution.error), (error.is_some(), error), "{text}");
    }
}

#[tokio::test]
async fn output_is_truncated_for_the_model_only() {
    let execution = run(&registry(), &call("echo", &json!({"text": "x", "times": 100_000}))).await;
    assert!(execution.result.text().contains("70000 characters were removed from the middle"));
    assert_eq!(execution.output.to_text_lossy().unwrap(), "x".repeat(100_000));
}

#[tokio::test]
async fn a_replacing_tool_keeps_the_position() {
    let mut registry = registry();
    let before = registry.clone();
    registry.register(Echo { name: "echo", prefix: "second: " }).unwrap();
    assert_eq!(registry.names().collect::<Vec<_>>(), ["echo", "read_file"]);
    assert_eq!(run(&registry, &call("echo", &json!({"text": "a"}))).await.result.text(), "second: a");
    assert_eq!(run(&before, &call("echo", &json!({"text": "a"}))).await.result.text(), "a");
}

#[tokio::test]
async fn an_unregistered_tool_is_unknown() {
    let mut registry = registry();
    assert!(registry.unregister("echo"));
    assert!(!registry.unregister("echo"));
    assert!(registry.get("echo").is_none());
    assert!(refusal(&registry, &call("echo", &json!({"text": "a"}))).await.starts_with("UnknownTool"));
}

#[tokio::test]
async fn a_dynamic_tool_gets_json_arguments() {
    let mut registry = ToolRegistry::new();
    registry.register(Dynamic(json!({"type": "object", "properties": {"n": {"type": "integer"}}}))).unwrap();
    let execution = run(&registry, &call("dynamic", &json!({"n": 1, "more": [true]}))).await;
    assert_eq!(execution.result.text(), r#"{"more":[true],"n":1}"#);
    assert_eq!(
        refusal(&registry, &call("dynamic", &json!({"n": "one"}))).await,
        "InvalidArguments: Invalid arguments for tool: dynamic\n- `n`: expected integer, got string \"one\""
    );
}

#[test]
fn an_invalid_definition_is_refused() {
    use std::error::Error as _;

    let mut registry = registry();
    let with = |property: Value| json!({"type": "object", "properties": {"a": property}});
    let schemas = [
        json!({"type": "array"}),
        json!({"type": "object", "properties": 5}),
        with(json!({"type": "strin"})),
        with(json!({"pattern": "("})),
        with(json!({"$ref": "#/definitions/nowhere"})),
        with(json!({"$ref": "http://127.0.0.1:9/schema.json"})),
    ];
    for schema in schemas {
        let error = registry.register(Dynamic(schema.clone())).unwrap_err();
        assert_eq!(error.to_string(), "tool `dynamic` cannot be registered");
        assert!(error.source().is_some(), "{schema}");
    }
    assert!(registry.register(Echo { name: "bad name", prefix: "" }).is_err());
    assert_eq!(registry.names().collect::<Vec<_>>(), ["echo", "read_file"]);
}

/// An input that counts how often it is parsed.
#[derive(JsonSchema)]
struct CountedInput {
    /// A text.
    #[expect(dead_code, reason = "only the schema is looked at")]
    text: String,
}

static PARSED: AtomicUsize = AtomicUsize::new(0);

impl<'de> Deserialize<'de> for CountedInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PARSED.fetch_add(1, Ordering::Relaxed);
        EchoInput::deserialize(deserializer).map(|input| Self { text: input.text })
    }
}

#[tokio::test]
async fn arguments_are_parsed_once_per_execution() {
    let mut registry = ToolRegistry::new();
    let tool = tool_fn("counted", "Counts.", |_: CountedInput, _| async { Ok::<_, ToolError>("counted") });
    registry.register(tool.with_effect(Effect::Read)).unwrap();
    let JudgedCall::Ready { call, .. } = prepared(&registry, &call("counted", &json!({"text": "a"}))).await
    else {
        panic!("the call fits");
    };
    let cx = ToolContext::new(Arc::new(environment()), call.call_id());
    for executions in 1..=2 {
        assert_eq!(execute(&call, &cx, &TruncationLimits::new()).await.result.text(), "counted");
        assert_eq!(PARSED.load(Ordering::Relaxed), executions);
    }
}

#[derive(serde::Serialize)]
struct Lines {
    count: usize,
}

#[tokio::test]
async fn a_closure_returns_any_value_and_any_error() {
    let mut registry = ToolRegistry::new();
    let tool = tool_fn("count", "Counts.", |input: EchoInput, _| async move {
        let count: usize = match input.text.as_str() {
            "none" => return Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
            text => text.parse().map_err(std::io::Error::other)?,
        };
        Ok(Lines { count })
    });
    registry.register(tool.with_effect(Effect::Read)).unwrap();
    let cases = [
        ("7", r#"{"count":7}"#, false),
        ("none", "Tool error (count): entity not found", true),
        ("x", "Tool error (count): invalid digit found in string", true),
    ];
    for (text, expected, is_error) in cases {
        let cx = ToolContext::new(Arc::new(environment()), "");
        let execution =
            super::run(&registry, &call("count", &json!({"text": text})), &cx, &RunOptions::new()).await;
        assert_eq!((execution.result.text().as_str(), execution.result.is_error), (expected, is_error));
    }
}

#[tokio::test]
async fn a_closure_is_a_tool() {
    let mut registry = ToolRegistry::new();
    let tool = tool_fn("lines", "Counts lines.", |input: EchoInput, cx| async move {
        let text = cx.env.read_file(input.text.as_ref(), None, None).await?;
        Ok::<_, ToolError>(format!("{}: {}", cx.call_id, text.lines().count()))
    });
    registry.register(tool.with_effect(Effect::Read)).unwrap();
    let definition = registry.get("lines").unwrap().definition();
    assert_eq!(definition.parameters["properties"]["text"]["description"], "The text to repeat.");
    let env = Arc::new(pintle_env::MemoryEnvironment::new("/p").with_file("poem", "a\nb\n"));
    for (file, expected) in [("poem", "call_7: 2"), ("none", "Tool error (lines): /p/none does not exist")] {
        let cx = ToolContext::new(env.clone(), "");
        let call = call("lines", &json!({"text": file}));
        let execution = super::run(&registry, &call, &cx, &RunOptions::new()).await;
        assert_eq!(execution.result.text(), expected);
    }
}
