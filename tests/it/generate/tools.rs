//! Sections 8.7 and 8.9: the tool loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pintle_llm::{ClientTool, ErrorKind, Finish, StreamEvent, generate, stream};
use pintle_testkit::{Call, Dialect, Expectation, Turn};
use serde_json::json;
use tokio::sync::Barrier;

use super::{GenerateHarness, Mode, definition, read_file};
use crate::harness::in_each_dialect;

in_each_dialect!(
    one_tool,
    parallel_tools,
    multi_step,
    streamed_steps,
    failed_calls_are_reported_to_the_model,
    passive_tools,
    rounds_are_counted,
);

fn call(path: &str) -> Call {
    Call::new("read_file", json!({"file_path": path}))
}

async fn one_tool(dialect: Dialect) {
    for mode in Mode::BOTH {
        let harness = GenerateHarness::new(
            dialect,
            [
                Turn::text("I look.").with_call(call("a.rs")),
                Turn::text("It is a library.")
                    .with_expectation(Expectation::result_contains(0, "content of a.rs")),
            ],
        )
        .await;
        let result = mode.run(harness.options().with_tool(read_file())).await.unwrap();
        assert_eq!(result.text(), "It is a library.");
        let [first, last] = result.steps.as_slice() else { panic!("{:?}", result.steps) };
        assert_eq!(first.finish_reason().reason, Finish::ToolCalls);
        let made = first.tool_calls().next().unwrap();
        assert_eq!((made.name.as_str(), &*made.arguments), ("read_file", &json!({"file_path": "a.rs"})));
        assert_eq!(first.tool_results[0].tool_call_id, made.id);
        assert_eq!(first.tool_results[0].text(), "content of a.rs");
        assert_eq!((last.tool_calls().count(), last.tool_results.len()), (0, 0));
        let sum = first.usage().total_tokens + last.usage().total_tokens;
        assert!(sum > 0 && result.total_usage.total_tokens == sum, "{:?}", result.total_usage);
        assert_eq!(harness.statuses(), [Some(200), Some(200)]);
    }
}

async fn parallel_tools(dialect: Dialect) {
    let calls = ["a.rs", "b.rs", "c.rs"];
    for mode in Mode::BOTH {
        let asking = calls.iter().fold(Turn::text("All three."), |turn, path| turn.with_call(call(path)));
        let answered = (0..3).fold(Turn::text("Read."), |turn, index| {
            turn.with_expectation(Expectation::result_contains(index, format!("content of {}", calls[index])))
                .with_expectation(Expectation::result_is_error(index, false))
        });
        let harness = GenerateHarness::new(dialect, [asking, answered]).await;
        // The barrier opens only when all three calls are running.
        let everybody = Arc::new(Barrier::new(3));
        let tool = ClientTool::active(definition(), move |arguments, _| {
            let everybody = Arc::clone(&everybody);
            async move {
                everybody.wait().await;
                Ok::<_, String>(format!("content of {}", arguments["file_path"].as_str().unwrap()))
            }
        });
        let result = mode.run(harness.options().with_tool(tool)).await.unwrap();
        assert_eq!(result.text(), "Read.");
        let step = &result.steps[0];
        let called: Vec<&str> = step.tool_calls().map(|call| call.id.as_str()).collect();
        let results: Vec<&str> =
            step.tool_results.iter().map(|result| result.tool_call_id.as_str()).collect();
        assert_eq!((called.len(), called), (3, results));
        assert_eq!(harness.statuses().len(), 2, "one request takes all results");
    }
}

async fn multi_step(dialect: Dialect) {
    let paths = ["a.rs", "b.rs", "c.rs", "d.rs"];
    for mode in Mode::BOTH {
        let mut turns: Vec<Turn> =
            paths.iter().map(|path| Turn::new().with_reasoning("Next.").with_call(call(path))).collect();
        turns.push(Turn::text("All read."));
        for (turn, path) in turns.iter_mut().skip(1).zip(paths) {
            *turn =
                turn.clone().with_expectation(Expectation::result_contains(0, format!("content of {path}")));
        }
        let harness = GenerateHarness::new(dialect, turns).await;
        let result =
            mode.run(harness.options().with_tool(read_file()).with_max_tool_rounds(10)).await.unwrap();
        assert_eq!((result.text().as_str(), result.steps.len()), ("All read.", 5));
        assert_eq!(harness.statuses(), [Some(200); 5]);
        let sum: u64 = result.steps.iter().map(|step| step.usage().output_tokens).sum();
        assert_eq!(result.total_usage.output_tokens, sum);
    }
}

async fn streamed_steps(dialect: Dialect) {
    let harness = GenerateHarness::new(
        dialect,
        [Turn::text("I look.").with_call(call("a.rs")), Turn::text("It is a library.")],
    )
    .await;
    let mut steps = stream(harness.options().with_tool(read_file())).unwrap();
    let mut marks = Vec::new();
    let mut text = String::new();
    while let Some(event) = steps.next().await {
        match event.unwrap() {
            StreamEvent::StreamStart { .. } => marks.push("start"),
            StreamEvent::ToolCallEnd { tool_call } => {
                marks.push(if tool_call.name == "read_file" { "call" } else { "?" })
            }
            StreamEvent::StepFinish { response, tool_results } => {
                assert_eq!(
                    (response.text().as_str(), tool_results[0].text().as_str()),
                    ("I look.", "content of a.rs")
                );
                marks.push("step");
            }
            StreamEvent::Finish { response, .. } => {
                assert_eq!(response.text(), "It is a library.");
                marks.push("finish");
            }
            StreamEvent::TextDelta { delta, .. } => text.push_str(&delta),
            _ => {}
        }
    }
    assert_eq!(marks, ["start", "call", "step", "start", "finish"]);
    assert_eq!(text, "I look.It is a library.");
    assert_eq!(steps.response().unwrap().text(), "It is a library.");
}

async fn failed_calls_are_reported_to_the_model(dialect: Dialect) {
    let asking = Turn::text("All at once.")
        .with_call(call("nothing.rs"))
        .with_call(Call::new("teleport", json!({"to": "Oslo"})))
        .with_call(Call::new("read_file", json!({"file_path": 7})))
        .with_call(call("a.rs"));
    let answered = Turn::text("Sorry.")
        .with_expectation(Expectation::result_contains(0, "nothing.rs does not exist"))
        .with_expectation(Expectation::result_contains(
            1,
            "unknown tool `teleport`; the tools are: read_file",
        ))
        .with_expectation(Expectation::result_contains(2, "`/file_path`: 7 is not of type \"string\""))
        .with_expectation(Expectation::result_contains(3, "content of a.rs"));
    // The OpenAI dialects have no error flag.
    let flags = matches!(dialect, Dialect::AnthropicMessages | Dialect::Gemini);
    let answered = (0..4)
        .filter(|_| flags)
        .fold(answered, |turn, index| turn.with_expectation(Expectation::result_is_error(index, index < 3)));
    for mode in Mode::BOTH {
        let harness = GenerateHarness::new(dialect, [asking.clone(), answered.clone()]).await;
        let result = mode.run(harness.options().with_tool(read_file())).await.unwrap();
        assert_eq!(result.text(), "Sorry.");
        let errors: Vec<bool> = result.steps[0].tool_results.iter().map(|result| result.is_error).collect();
        assert_eq!(errors, [true, true, true, false]);
    }
}

async fn passive_tools(dialect: Dialect) {
    for mode in Mode::BOTH {
        let harness = GenerateHarness::new(dialect, [Turn::text("I ask.").with_call(call("a.rs"))]).await;
        let options = harness.options().with_tool(ClientTool::passive(definition())).with_max_tool_rounds(3);
        let result = mode.run(options).await.unwrap();
        assert_eq!(result.finish_reason().reason, Finish::ToolCalls);
        assert_eq!(result.tool_calls().next().unwrap().arguments, json!({"file_path": "a.rs"}));
        assert_eq!((result.tool_results.len(), harness.statuses().len()), (0, 1));
    }
}

async fn rounds_are_counted(dialect: Dialect) {
    for (mode, rounds) in Mode::BOTH.into_iter().flat_map(|mode| [0, 1, 2].map(|rounds| (mode, rounds))) {
        let turns = ["a.rs", "b.rs", "c.rs"].map(|path| Turn::new().with_call(call(path)));
        let harness = GenerateHarness::new(dialect, turns).await;
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let tool = ClientTool::active(definition(), move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, String>("a library") }
        });
        let options = harness.options().with_tool(tool);
        let result = mode.run(options.with_max_tool_rounds(rounds as u32)).await.unwrap();
        assert_eq!((harness.statuses().len(), result.steps.len()), (rounds + 1, rounds + 1), "{mode:?}");
        assert_eq!(runs.load(Ordering::SeqCst), rounds, "no call of the last response runs");
        assert_eq!((result.tool_calls().count(), result.tool_results.len()), (1, 0));
    }
    let harness = GenerateHarness::new(dialect, [Turn::text("Never.")]).await;
    let choice = pintle_llm::ToolChoice::Named("teleport".into());
    let error =
        generate(harness.options().with_tool(read_file()).with_tool_choice(choice)).await.unwrap_err();
    assert_eq!((error.kind(), harness.statuses().len()), (ErrorKind::Configuration, 0));
}
