//! Tool loop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Barrier, oneshot};

use super::*;
use crate::response::Finish;
use crate::usage::Usage;

#[tokio::test]
async fn calls_run_concurrently_and_results_keep_their_order() {
    let arguments: Vec<(&str, &str)> =
        vec![("meet", r#"{"x": 0}"#), ("meet", r#"{"x": 1}"#), ("meet", r#"{"x": 2}"#)];
    let (client, adapter) = client(fake().message(calling(&arguments)).answer("done"));
    // Sequential calls would deadlock at the barrier.
    let barrier = Arc::new(Barrier::new(3));
    let order = Arc::new(Mutex::new(Vec::new()));
    let (meeting, finished) = (Arc::clone(&barrier), Arc::clone(&order));
    let tool = ClientTool::active(definition("meet"), move |arguments, _| {
        let (meeting, finished) = (Arc::clone(&meeting), Arc::clone(&finished));
        async move {
            meeting.wait().await;
            let x = arguments["x"].as_u64().unwrap();
            // The first call finishes last.
            for _ in 0..10 * (3 - x) {
                tokio::task::yield_now().await;
            }
            finished.lock().unwrap().push(x);
            Ok::<_, Error>(format!("result {x}"))
        }
    });
    let result = generate(options(&client).with_tool(tool)).await.unwrap();
    assert_eq!(*order.lock().unwrap(), [2, 1, 0]);
    let requests = adapter.requests();
    assert_eq!(requests.len(), 2, "all results in one request");
    let expected = [0, 1, 2].map(|x| (format!("c{x}"), format!("result {x}"), false));
    assert_eq!(sent_results(&requests[1]), expected);
    assert_eq!(result.text(), "done");
}

#[tokio::test]
async fn a_step_holds_its_calls_results_and_usage() {
    let first = calling(&[("echo", r#"{"x": 1}"#), ("echo", r#"{"x": 2}"#)]);
    let (client, adapter) = client(fake().message(first).answer("done"));
    let result = generate(options(&client).with_tool(echo("echo"))).await.unwrap();
    let [called, last] = result.steps.as_slice() else { panic!("{:?}", result.steps) };
    assert_eq!(called.tool_calls().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["c0", "c1"]);
    assert_eq!(called.tool_results.iter().map(|result| result.text()).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!((called.finish_reason().reason, called.text().as_str()), (Finish::ToolCalls, ""));
    assert_eq!((last.finish_reason().reason, last.text().as_str()), (Finish::Stop, "done"));
    assert_eq!(last.tool_calls().count() + last.tool_results.len() + last.warnings().len(), 0);
    assert_eq!((called.usage(), last.usage()), (&Usage::new(10, 5), &Usage::new(10, 5)));
    assert_eq!((result.usage(), &result.total_usage), (&Usage::new(10, 5), &Usage::new(20, 10)));
    // Ready for the next request.
    assert_eq!(result.messages.len(), 3);
    assert_eq!(result.messages[..2], adapter.requests()[1].messages[1..]);
    assert_eq!(result.messages[2].text(), "done");
}

#[tokio::test]
async fn mistakes_become_error_results() {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let picky = ClientTool::active(definition("picky"), move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, Error>("never") }
    });
    let failing = ClientTool::active(definition("failing"), |_, _| async {
        let cause = std::io::Error::other("the disk is full");
        Err::<String, _>(Error::new(ErrorKind::Server, "no forecast").with_source(cause))
    });
    let calls = calling(&[
        ("failing", r#"{"x": 1}"#),
        ("teleport", "{}"),
        ("picky", r#"{"x": "one"}"#),
        ("picky", "{}"),
        ("picky", r#"{"x": 1"#),
        ("picky", "[1]"),
        ("echo", r#"{"x": 1}"#),
    ]);
    let (client, adapter) = client(fake().message(calls).answer("sorry"));
    let tools = options(&client).with_tool(picky).with_tool(failing).with_tool(echo("echo"));
    assert_eq!(generate(tools).await.unwrap().text(), "sorry");
    let results = sent_results(&adapter.requests()[1]);
    let expected = [
        ("the provider failed: no forecast: the disk is full", true),
        ("unknown tool `teleport`; the tools are: picky, failing, echo", true),
        ("invalid arguments for tool `picky`: `/x`: \"one\" is not of type \"integer\"", true),
        ("invalid arguments for tool `picky`: \"x\" is a required property", true),
        (
            "invalid arguments for tool `picky`: not JSON: EOF while parsing an object at line 1 column 7",
            true,
        ),
        ("invalid arguments for tool `picky`: expected a JSON object, found [1]", true),
        ("1", false),
    ];
    let found: Vec<(&str, bool)> =
        results.iter().map(|(_, text, is_error)| (text.as_str(), *is_error)).collect();
    assert_eq!(found, expected);
    assert_eq!(runs.load(Ordering::SeqCst), 0, "no handler sees invalid arguments");
}

#[tokio::test]
async fn a_panicking_handler_becomes_an_error_result() {
    let at_once =
        ClientTool::active(definition("at_once"), |_, _| -> std::future::Ready<Result<String, Error>> {
            panic!("no handler")
        });
    let later = ClientTool::active(definition("later"), |arguments, _| async move {
        tokio::task::yield_now().await;
        assert!(arguments.is_null(), "panics in the second poll");
        Ok::<_, Error>("never")
    });
    let x = r#"{"x": 1}"#;
    let calls = || calling(&[("at_once", x), ("echo", x), ("later", x), ("echo", "{}")]);
    let repair = RepairToolCall::new(|_| async { panic!("no repair") });
    for streamed in [false, true] {
        let (client, adapter) = client(fake().message(calls()).answer("sorry"));
        let tools = options(&client).with_tool(at_once.clone()).with_tool(later.clone());
        let tools = tools.with_tool(echo("echo")).with_repair_tool_call(repair.clone());
        let result = match streamed {
            false => generate(tools).await.unwrap(),
            true => stream(tools).unwrap().result().await.unwrap(),
        };
        assert_eq!(result.text(), "sorry");
        let results = sent_results(&adapter.requests()[1]);
        let expected = [
            ("c0", "tool `at_once` panicked", true),
            ("c1", "1", false),
            ("c2", "tool `later` panicked", true),
            ("c3", "tool `echo` panicked", true),
        ];
        assert_eq!(results, expected.map(|(id, text, failed)| (id.to_owned(), text.to_owned(), failed)));
    }
}

#[tokio::test]
async fn calls_of_passive_tools_are_returned() {
    let (client, adapter) = client(fake().message(calling(&[("ask", r#"{"x": 1}"#)])));
    let passive = options(&client).with_tool(ClientTool::passive(definition("ask"))).with_max_tool_rounds(5);
    let result = generate(passive).await.unwrap();
    assert_eq!((adapter.requests().len(), result.tool_results.len()), (1, 0));
    assert_eq!(result.finish_reason().reason, Finish::ToolCalls);
    assert_eq!(result.tool_calls().next().unwrap().name, "ask");
    assert_eq!(result.messages.len(), 1);
}

#[tokio::test]
async fn active_tools_run_beside_passive_ones_and_the_loop_ends() {
    let calls = calling(&[("ask", r#"{"x": 1}"#), ("echo", r#"{"x": 2}"#)]);
    let (client, adapter) = client(fake().message(calls));
    let both = options(&client).with_tool(ClientTool::passive(definition("ask"))).with_tool(echo("echo"));
    let result = generate(both).await.unwrap();
    assert_eq!(adapter.requests().len(), 1);
    assert_eq!(result.tool_results.iter().map(|r| r.tool_call_id.as_str()).collect::<Vec<_>>(), ["c1"]);
    assert_eq!(result.messages.len(), 1, "the caller adds the results of all calls");
}

#[tokio::test]
async fn rounds_are_limited() {
    for (rounds, requests, runs) in [(0, 1, 0), (1, 2, 1), (3, 4, 3)] {
        let endless = (0..9).fold(fake(), |fake, _| fake.message(calling(&[("echo", r#"{"x": 1}"#)])));
        let (client, adapter) = client(endless);
        let result =
            generate(options(&client).with_tool(echo("echo")).with_max_tool_rounds(rounds)).await.unwrap();
        assert_eq!(adapter.requests().len(), requests, "{rounds} rounds");
        let ran: usize = result.steps.iter().map(|step| step.tool_results.len()).sum();
        assert_eq!((result.steps.len(), ran), (requests, runs));
        assert_eq!(result.tool_calls().count(), 1, "the last calls are left to the caller");
        assert!(result.tool_results.is_empty());
    }
}

#[tokio::test]
async fn a_stop_condition_ends_the_loop_after_the_round() {
    let cases = [
        (StopCondition::called("final_answer"), 2),
        (StopCondition::spent(40), 3),
        (StopCondition::new(|steps| steps.len() == 4), 4),
        (StopCondition::spent(9_999).or(StopCondition::called("final_answer")), 2),
    ];
    for (condition, steps) in cases {
        let one = |name| calling(&[(name, r#"{"x": 1}"#)]);
        let script = fake()
            .message(one("echo"))
            .message(one("final_answer"))
            .message(one("echo"))
            .message(one("echo"))
            .answer("too late");
        let (client, adapter) = client(script);
        let tools = options(&client).with_tool(echo("echo")).with_tool(echo("final_answer"));
        let result = generate(tools.with_max_tool_rounds(9).with_stop_when(condition)).await.unwrap();
        assert_eq!((result.steps.len(), adapter.requests().len()), (steps, steps));
        assert_eq!(result.tool_results.len(), 1, "the last round's tools have run");
        assert_eq!(result.messages.len(), 2 * steps, "and the conversation is complete");
    }
}

#[tokio::test]
async fn calls_of_a_truncated_response_are_not_run() {
    let cut = fake().finished(calling(&[("echo", r#"{"x": 1}"#)]), Finish::Length);
    let (client, adapter) = client(cut);
    let result = generate(options(&client).with_tool(echo("echo"))).await.unwrap();
    assert_eq!((adapter.requests().len(), result.tool_results.len()), (1, 0));
    assert_eq!(result.finish_reason().reason, Finish::Length);
}

#[tokio::test]
async fn invalid_arguments_are_repaired_once() {
    let calls = calling(&[("echo", r#"{"x": "7"}"#), ("echo", r#"{"x": "seven"}"#), ("echo", r#"{"y": 1}"#)]);
    let (client, adapter) = client(fake().message(calls).answer("done"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let repair = RepairToolCall::new(move |invalid: InvalidToolCall| {
        let kind = invalid.error.kind();
        log.lock().unwrap().push((invalid.call.id.clone(), invalid.tool.name, kind, invalid.messages.len()));
        // Parses numbers from text, and knows no other repair.
        let repaired = invalid.call.arguments["x"]
            .as_str()
            .map(|text| json!({"x": text.parse::<i64>().map_or(Value::Null, Value::from)}));
        async move { repaired }
    });
    generate(options(&client).with_tool(echo("echo")).with_repair_tool_call(repair)).await.unwrap();
    let results = sent_results(&adapter.requests()[1]);
    assert_eq!(results[0].1, "7");
    assert!(!results[0].2 && results[1].2 && results[2].2, "{results:?}");
    assert!(results[1].1.ends_with("null is not of type \"integer\""), "{results:?}");
    assert!(results[2].1.ends_with("\"x\" is a required property"), "{results:?}");
    let expected =
        ["c0", "c1", "c2"].map(|id| (id.to_owned(), "echo".to_owned(), ErrorKind::InvalidToolCall, 2));
    assert_eq!(*seen.lock().unwrap(), expected);
    // The history keeps what the model wrote.
    let call = adapter.requests()[1].messages[1].tool_calls().next().cloned().unwrap();
    assert_eq!(call.raw_arguments.as_deref(), Some(r#"{"x": "7"}"#));
}

#[tokio::test]
async fn a_typed_tool_describes_and_parses_its_input() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Location {
        /// The city's name.
        city: String,
        days: Option<u8>,
        address: Option<std::net::Ipv4Addr>,
    }
    let tool = ClientTool::typed("weather", "The weather.", |location: Location, _| async move {
        Ok::<_, Error>(
            json!({"city": location.city, "days": location.days.unwrap_or(1), "at": location.address}),
        )
    })
    .unwrap();
    assert_eq!(
        tool.definition.parameters,
        json!({"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "The city's name."},
            "days": {"type": ["integer", "null"], "minimum": 0, "maximum": 255},
            "address": {"type": ["string", "null"], "format": "ipv4"},
        }})
    );
    let calls = calling(&[
        ("weather", r#"{"city": "Oslo"}"#),
        ("weather", r#"{"city": "Rome", "days": 300}"#),
        ("weather", r#"{"city": "Rome", "address": "here"}"#),
    ]);
    let (client, adapter) = client(fake().message(calls).answer("done"));
    generate(options(&client).with_tool(tool)).await.unwrap();
    let results = sent_results(&adapter.requests()[1]);
    assert_eq!(results[0].1, r#"{"at":null,"city":"Oslo","days":1}"#);
    assert!(
        results[1].2 && results[1].1.contains("`/days`: 300 is greater than the maximum of 255"),
        "{results:?}"
    );
    assert!(results[2].2 && results[2].1.contains("IPv4"), "{results:?}");
    assert!(ClientTool::typed("no name", "", |(): (), _| async { Ok::<_, Error>("") }).is_err());
}

#[tokio::test]
async fn a_handler_gets_its_call_and_the_conversation() {
    let (sender, receiver) = oneshot::channel();
    let sender = Mutex::new(Some(sender));
    let tool = ClientTool::active(definition("look"), move |_, context: CallContext| {
        sender.lock().unwrap().take().unwrap().send(context).unwrap();
        async { Ok::<_, Error>("seen") }
    });
    let (client, _) = client(fake().message(calling(&[("look", r#"{"x": 1}"#)])).answer("done"));
    generate(options(&client).with_tool(tool)).await.unwrap();
    let context = receiver.await.unwrap();
    assert_eq!(context.call.id, "c0");
    assert_eq!(context.messages.len(), 2);
    assert_eq!(context.messages[1].tool_calls().count(), 1);
    assert!(!context.abort_signal.is_cancelled(), "the call completed");
}

#[tokio::test]
async fn free_text_is_the_only_property_of_a_custom_tool() {
    let parameters =
        json!({"type": "object", "properties": {"patch": {"type": "string"}}, "required": ["patch"]});
    let tool = ClientTool::active(
        ToolDefinition::new("apply", "", parameters).unwrap(),
        |arguments, _| async move { Ok::<_, Error>(arguments["patch"].as_str().unwrap().to_uppercase()) },
    );
    let calls = Message::new(Role::Assistant, vec![ToolCall::custom("c0", "apply", "free text").into()]);
    let (client, adapter) = client(fake().message(calls).answer("done"));
    generate(options(&client).with_tool(tool)).await.unwrap();
    assert_eq!(sent_results(&adapter.requests()[1]), [("c0".into(), "FREE TEXT".into(), false)]);
}
