//! Mistakes of models and tools.

use std::future::pending;
use std::time::Duration;

use pintle_test_conditions::cases;
use proptest::prelude::*;

use super::*;
use crate::context::CommandTimeouts;
use crate::truncate::{TruncationMarker, TruncationMode};

/// A tool with the fault that its argument names.
struct Faulty {
    waits: bool,
}

#[derive(Deserialize, JsonSchema)]
struct FaultyInput {
    /// The fault.
    what: String,
    /// The size of the fault.
    amount: Option<usize>,
}

impl Tool for Faulty {
    type Input = FaultyInput;

    fn name(&self) -> &str {
        "faulty"
    }

    fn description(&self) -> &str {
        "Misbehaves."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    fn aliases(&self) -> &[(&'static str, &'static str)] {
        &[("how", "what")]
    }

    fn waits(&self) -> bool {
        self.waits
    }

    fn truncation(&self) -> TruncationRule {
        TruncationRule::new(20, TruncationMode::HeadTail).with_marker(TruncationMarker::Tokens)
    }

    async fn call(&self, input: FaultyInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let amount = input.amount.unwrap_or(1);
        match input.what.as_str() {
            "hang" => pending().await,
            "wait" => {
                tokio::time::sleep(Duration::from_secs(7_200)).await;
                Ok(ToolOutput::new("at last"))
            }
            "nothing" => Ok(ToolOutput::default()),
            "bytes" => Ok(ToolOutput::new(vec![0xff; amount])),
            "preface" => Ok(ToolOutput::new("0123456789".repeat(amount))
                .with_preface("Exit code: 0\n")
                .with_max_chars(Some(8))),
            "long preface" => Ok(ToolOutput::new("x").with_preface("y".repeat(1_000_000))),
            "panic" => panic!("{}", "loud ".repeat(amount)),
            text => Ok(ToolOutput::new(text.repeat(amount))),
        }
    }
}

fn registry() -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    registry.register(Faulty { waits: false }).unwrap();
    registry
}

async fn faulty_call(arguments: Value) -> Execution {
    run(&registry(), &call("faulty", &arguments)).await
}

#[tokio::test]
async fn repairs_are_reported_and_can_be_disabled() {
    let cases = [
        (json!({"what": "a", "amount": "3"}).to_string(), vec!["`amount`: the number was taken from a text"]),
        (json!({"what": "a", "amount": 3.0}).to_string(), vec!["`amount`: the fraction is a whole number"]),
        (
            json!({"how": "a", "Amount": 3}).to_string(),
            vec!["`amount`: was called `Amount`", "`what`: was called `how`"],
        ),
        (
            Value::from(json!({"what": "a", "amount": 3}).to_string()).to_string(),
            vec!["the arguments: the JSON was taken from a text"],
        ),
        (json!({"what": "a", "amount": 3}).to_string(), vec![]),
    ];
    let mut exact = registry();
    exact.set_argument_repair(false);
    assert!(registry().repairs_arguments() && !exact.repairs_arguments());
    for (arguments, expected) in cases {
        let call = ToolCall::from_raw("call_7", "faulty", arguments.as_str());
        let JudgedCall::Ready { call: prepared, .. } = prepared(&registry(), &call).await else {
            panic!("{arguments}")
        };
        assert_eq!(prepared.arguments(), &json!({"what": "a", "amount": 3}));
        let repairs: Vec<String> = prepared.repairs().iter().map(ToString::to_string).collect();
        assert_eq!(repairs, expected, "{arguments}");
        assert_eq!(run(&registry(), &call).await.result.text(), "aaa");

        // To a schema 5.0 is an integer, so only the tool refuses it.
        let refused = match super::prepared(&exact, &call).await {
            JudgedCall::Refused { error, .. } => error.kind() == ToolErrorKind::InvalidArguments,
            JudgedCall::Ready { .. } => false,
            JudgedCall::Ask { .. } => panic!("there is no gate"),
        };
        assert_eq!(refused, !expected.is_empty(), "{arguments}");
    }
}

#[tokio::test]
async fn huge_arguments_are_accepted_or_refused_briefly() {
    let size = cases(1_000_000, 10_000_000);
    let long = "x".repeat(size);
    let arguments = [
        long.clone(),
        format!("\"{long}\""),
        format!("{{\"what\": \"{long}"),
        json!({"what": 5, "amount": long.as_str()}).to_string(),
        json!({"what": "a", long.as_str(): 1}).to_string(),
        "[".repeat(size),
        format!("{{\"what\": {}", "{\"a\":".repeat(size / 5)),
    ];
    for raw in arguments {
        let refused = refusal(&registry(), &ToolCall::from_raw("1", "faulty", raw.as_str())).await;
        assert!(refused.starts_with("InvalidArguments: Invalid arguments for tool: faulty\n- "), "{refused}");
        assert!(refused.len() < 1_500, "{refused}");
    }
    let execution = faulty_call(json!({"what": long.as_str()})).await;
    assert_eq!(execution.output.len(), size as u64);
    let refused = refusal(&registry(), &call(&long, &json!({}))).await;
    assert!(refused.len() < 300 && refused.ends_with("x…. Available tools: faulty."), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_tool_is_stopped_unless_it_waits() {
    let JudgedCall::Ready { call, .. } =
        prepared(&registry(), &call("faulty", &json!({"what": "hang"}))).await
    else {
        panic!("the call fits")
    };
    let timeouts = CommandTimeouts { max: Duration::from_secs(30), ..CommandTimeouts::default() };
    let cx = ToolContext::new(Arc::new(environment()), "1").with_timeouts(timeouts);
    let execution = execute(&call, &cx, &TruncationLimits::new().with_chars("faulty", 1_000)).await;
    assert_eq!(
        execution.result.text(),
        "Tool error (faulty): no answer within 90 s, so the call was stopped"
    );
    assert_eq!(execution.error, Some(ToolErrorKind::TimedOut));
    assert!(!cx.cancel.is_cancelled(), "only a session cancels a call");

    let mut waiting = ToolRegistry::new();
    waiting.register(Faulty { waits: true }).unwrap();
    let call = super::call("faulty", &json!({"what": "wait"}));
    assert_eq!(run(&waiting, &call).await.result.text(), "at last");
}

#[tokio::test]
async fn empty_output_is_reported() {
    let execution = faulty_call(json!({"what": "nothing"})).await;
    assert_eq!((execution.result.text().as_str(), execution.output.len()), ("(no output)", 0));
    assert!(!execution.result.is_error);
}

#[tokio::test]
async fn a_huge_output_goes_to_a_spool_file() {
    let execution = faulty_call(json!({"what": "0123456789", "amount": 1_000_000})).await;
    assert_eq!(
        execution.result.text(),
        "Total output lines: 1\n\n0123456789…2499995 tokens truncated…0123456789"
    );
    assert!(execution.output.is_spooled());
    assert_eq!(execution.output.len(), 10_000_000);
    assert_eq!(execution.output.tail_text_lossy(12).unwrap(), "890123456789");
}

#[tokio::test]
async fn invalid_utf8_is_replaced_and_counted() {
    let execution = faulty_call(json!({"what": "bytes", "amount": 20})).await;
    assert_eq!(execution.result.text(), "\u{FFFD}".repeat(20));
    assert_eq!(execution.output.read_at(0, 100).unwrap(), [0xff; 20]);
}

#[tokio::test]
async fn a_preface_is_not_truncated_with_the_text() {
    let execution = faulty_call(json!({"what": "preface", "amount": 5})).await;
    assert_eq!(
        execution.result.text(),
        "Exit code: 0\nTotal output lines: 1\n\n0123…11 tokens truncated…6789"
    );
    assert_eq!(execution.output.len(), 50);
    let execution = faulty_call(json!({"what": "long preface"})).await;
    assert_eq!(execution.result.text(), format!("{}…x", "y".repeat(2_000)));
}

#[tokio::test]
async fn a_panic_is_reported_briefly() {
    let execution = run(&registry(), &call("faulty", &json!({"what": "panic", "amount": 1_000_000}))).await;
    assert_eq!(execution.error, Some(ToolErrorKind::Failed));
    assert!(execution.output.len() < 700);
}

proptest! {
    #[test]
    fn any_arguments_are_accepted_or_refused_briefly(
        name in prop_oneof![Just("faulty".to_owned()), ".{0,20}"],
        raw in prop_oneof![
            ".{0,200}",
            r#"[{}\[\]":, a-z0-9]{0,60}"#,
            r#"\{"(what|how|amount|[a-z]{1,5})": ?("[^"\\]{0,9}"|[0-9.]{1,5}|null|true|\[\]|\{\})\}"#,
        ],
        repair in any::<bool>(),
    ) {
        let mut registry = registry();
        registry.set_argument_repair(repair);
        let call = ToolCall::from_raw("1", name, raw);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match runtime.block_on(prepared(&registry, &call)) {
            JudgedCall::Ready { call, .. } => {
                let validator = registry.get("faulty").unwrap().validator().unwrap();
                prop_assert!(validator.is_valid(call.arguments()));
                prop_assert!(repair || call.repairs().is_empty());
            }
            JudgedCall::Refused { error, .. } => prop_assert!(error.for_model().len() < 4_000),
            JudgedCall::Ask { .. } => prop_assert!(false, "there is no gate"),
        }
    }
}
