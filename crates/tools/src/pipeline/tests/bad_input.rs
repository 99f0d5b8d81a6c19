//! What models and tools get wrong, each with its answer.

use std::future::pending;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::context::CommandTimeouts;
use crate::truncate::{TruncationMarker, TruncationMode};

/// Does what its one argument says.
struct Odd {
    waits: bool,
}

#[derive(Deserialize, JsonSchema)]
struct OddInput {
    /// What goes wrong.
    what: String,
    /// How much.
    amount: Option<usize>,
}

impl Tool for Odd {
    type Input = OddInput;

    fn name(&self) -> &str {
        "odd"
    }

    fn description(&self) -> &str {
        "Goes wrong."
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

    async fn call(&self, input: OddInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
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

fn odd() -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    registry.register(Odd { waits: false }).unwrap();
    registry
}

async fn odd_call(arguments: Value) -> Execution {
    run(&odd(), &call("odd", &arguments)).await
}

#[tokio::test]
async fn what_is_mended_is_told_to_the_host_and_can_be_switched_off() {
    let rows = [
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
    let mut exact = odd();
    exact.set_argument_repair(false);
    assert!(odd().repairs_arguments() && !exact.repairs_arguments());
    for (arguments, expected) in rows {
        let call = ToolCall::from_raw("call_7", "odd", arguments.as_str());
        let Preparation::Ready(prepared) = prepared(&odd(), &call).await else { panic!("{arguments}") };
        assert_eq!(prepared.arguments(), &json!({"what": "a", "amount": 3}));
        let told: Vec<String> = prepared.repairs().iter().map(ToString::to_string).collect();
        assert_eq!(told, expected, "{arguments}");
        assert_eq!(run(&odd(), &call).await.result.text(), "aaa");

        // 5.0 is an integer to a schema, so that only the tool refuses it.
        let refused = match super::prepared(&exact, &call).await {
            Preparation::Refused(error) => error.kind() == ToolErrorKind::InvalidArguments,
            Preparation::Ready(_) => run(&exact, &call).await.error == Some(ToolErrorKind::InvalidArguments),
            Preparation::Ask { .. } => panic!("nobody asks"),
        };
        assert_eq!(refused, !expected.is_empty(), "{arguments}");
    }
}

#[tokio::test]
async fn ten_megabytes_of_arguments_are_taken_or_refused_in_a_few_words() {
    let long = "x".repeat(10_000_000);
    let rows = [
        long.clone(),
        format!("\"{long}\""),
        format!("{{\"what\": \"{long}"),
        json!({"what": 5, "amount": long.as_str()}).to_string(),
        json!({"what": "a", long.as_str(): 1}).to_string(),
        "[".repeat(10_000_000),
        format!("{{\"what\": {}", "{\"a\":".repeat(2_000_000)),
    ];
    for raw in rows {
        let refused = refusal(&odd(), &ToolCall::from_raw("1", "odd", raw.as_str())).await;
        assert!(refused.starts_with("InvalidArguments: Invalid arguments for tool: odd\n- "), "{refused}");
        assert!(refused.len() < 1_500, "{refused}");
    }
    let execution = odd_call(json!({"what": long.as_str()})).await;
    assert_eq!(execution.output.len(), 10_000_000);
    let refused = refusal(&odd(), &call(&long, &json!({}))).await;
    assert!(refused.len() < 300 && refused.ends_with("x…. Available tools: odd."), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_stopped_and_one_that_waits_is_not() {
    let Preparation::Ready(call) = prepared(&odd(), &call("odd", &json!({"what": "hang"}))).await else {
        panic!("the call fits")
    };
    let timeouts = CommandTimeouts { max: Duration::from_secs(30), ..CommandTimeouts::default() };
    let cx = ToolContext::new(Arc::new(environment()), "1").with_timeouts(timeouts);
    let execution = execute(&call, &cx, &TruncationLimits::new().with_chars("odd", 1_000)).await;
    assert_eq!(execution.result.text(), "Tool error (odd): no answer within 90 s, so the call was stopped");
    assert_eq!(execution.error, Some(ToolErrorKind::TimedOut));
    assert!(!cx.cancel.is_cancelled(), "the session tells a stopped call by this");

    let mut patient = ToolRegistry::new();
    patient.register(Odd { waits: true }).unwrap();
    let call = super::call("odd", &json!({"what": "wait"}));
    assert_eq!(run(&patient, &call).await.result.text(), "at last");
}

#[tokio::test]
async fn nothing_is_said_to_be_nothing() {
    let execution = odd_call(json!({"what": "nothing"})).await;
    assert_eq!((execution.result.text().as_str(), execution.output.len()), ("(no output)", 0));
    assert!(!execution.result.is_error);
}

#[tokio::test]
async fn a_hundred_megabytes_go_to_a_spool_file() {
    let execution = odd_call(json!({"what": "0123456789", "amount": 10_000_000})).await;
    assert_eq!(
        execution.result.text(),
        "Total output lines: 1\n\n0123456789…24999995 tokens truncated…0123456789"
    );
    assert!(execution.output.is_spooled());
    assert_eq!(execution.output.len(), 100_000_000);
    assert_eq!(execution.output.tail_text_lossy(12).unwrap(), "890123456789");
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced_and_counted() {
    let execution = odd_call(json!({"what": "bytes", "amount": 20})).await;
    assert_eq!(execution.result.text(), "\u{FFFD}".repeat(20));
    assert_eq!(execution.output.read_at(0, 100).unwrap(), [0xff; 20]);
}

#[tokio::test]
async fn a_preface_is_read_first_and_is_not_cut_with_the_text() {
    let execution = odd_call(json!({"what": "preface", "amount": 5})).await;
    assert_eq!(
        execution.result.text(),
        "Exit code: 0\nTotal output lines: 1\n\n0123…11 tokens truncated…6789"
    );
    assert_eq!(execution.output.len(), 50);
    let execution = odd_call(json!({"what": "long preface"})).await;
    assert_eq!(execution.result.text(), format!("{}…x", "y".repeat(2_000)));
}

#[tokio::test]
async fn a_panic_of_any_length_is_told_in_a_few_words() {
    let execution = run(&odd(), &call("odd", &json!({"what": "panic", "amount": 1_000_000}))).await;
    assert_eq!(execution.error, Some(ToolErrorKind::Failed));
    assert!(execution.output.len() < 700);
}

proptest! {
    #[test]
    fn whatever_a_model_writes_is_taken_or_refused_in_a_few_words(
        name in prop_oneof![Just("odd".to_owned()), ".{0,20}"],
        raw in prop_oneof![
            ".{0,200}",
            r#"[{}\[\]":, a-z0-9]{0,60}"#,
            r#"\{"(what|how|amount|[a-z]{1,5})": ?("[^"\\]{0,9}"|[0-9.]{1,5}|null|true|\[\]|\{\})\}"#,
        ],
        mend in any::<bool>(),
    ) {
        let mut registry = odd();
        registry.set_argument_repair(mend);
        let call = ToolCall::from_raw("1", name, raw);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match runtime.block_on(prepared(&registry, &call)) {
            Preparation::Ready(call) => {
                let validator = registry.get("odd").unwrap().validator().unwrap();
                prop_assert!(validator.is_valid(call.arguments()));
                prop_assert!(mend || call.repairs().is_empty());
            }
            Preparation::Refused(error) => prop_assert!(error.for_model().len() < 4_000),
            Preparation::Ask { .. } => prop_assert!(false, "nobody asks"),
        }
    }
}
