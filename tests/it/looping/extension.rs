//! Extension points of an application: tools and limits, and the events that it reads (sections 3.7, 5, 9.10).

use pintle_agent::{OutcomeStatus, SessionConfig};
use pintle_testkit::Dialect;
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput, TruncationLimits};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::harness::{Harness, in_each_dialect, kinds, outputs, profile};

in_each_dialect![
    a_custom_tool_is_offered_and_called,
    a_custom_tool_replaces_a_profile_tool,
    limits_are_configurable,
    every_event_kind_of_the_specification_is_emitted,
];

struct RunTests;

#[derive(Deserialize, JsonSchema)]
struct Filter {
    /// Only tests whose name contains this.
    filter: Option<String>,
}

impl Tool for RunTests {
    type Input = Filter;

    fn name(&self) -> &str {
        "run_tests"
    }

    fn description(&self) -> &str {
        "Runs the project's test suite."
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    async fn call(&self, input: Filter, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(format!("ran {}", input.filter.unwrap_or_else(|| "all".into()))))
    }
}

async fn a_custom_tool_is_offered_and_called(dialect: Dialect) {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "run_tests"
        arguments = { filter = "parser" }
        [[turn]]
        text = "They pass."
        [[turn.expect]]
        call = 0
        contains = "ran parser"
        "#;
    let harness = Harness::new(dialect, turns).await;
    harness.session.handle().set_profile(profile(dialect).with_tool(RunTests).unwrap()).unwrap();
    harness.run("Test the parser").await;
    let first = harness.requests()[0].body.to_string();
    assert!(
        first.contains("Runs the project's test suite.") && first.contains("read_file"),
        "on top of the others"
    );
    harness.finish().await;
}

/// A custom `glob` with a fixed result.
struct CustomGlob;

impl Tool for CustomGlob {
    type Input = Filter;

    fn name(&self) -> &str {
        "glob"
    }

    fn description(&self) -> &str {
        "Not the profile's."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call(&self, _: Filter, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("mine"))
    }
}

async fn a_custom_tool_replaces_a_profile_tool(dialect: Dialect) {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"glob\"\narguments = {}\n[[turn]]\ntext = \"Ok.\"\n[[turn.expect]]\ncall = 0\ncontains = \"mine\"\n";
    let harness = Harness::new(dialect, turns).await;
    let changed = profile(dialect).with_tool(CustomGlob).unwrap();
    assert_eq!(changed.tools().len(), profile(dialect).tools().len(), "in its place");
    harness.session.handle().set_profile(changed).unwrap();
    harness.run("Go").await;
    harness.finish().await;
}

async fn limits_are_configurable(dialect: Dialect) {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "seq 1 100" }
        [[turn.call]]
        tool = "read_file"
        arguments = { file_path = "long.txt" }
        [[turn]]
        text = "Ok."
        [[turn.expect]]
        call = 0
        contains = "lines omitted ...]"
        [[turn.expect]]
        call = 1
        contains = "[WARNING: Tool output was truncated."
        "#;
    let limits = TruncationLimits::new().with_lines("shell", 10).with_chars("read_file", 200);
    let harness =
        Harness::configured(dialect, turns, SessionConfig::default().with_tool_output(limits)).await;
    harness.write("long.txt", &"abc ".repeat(100));
    let (events, _) = harness.run("Go").await;
    let whole = outputs(&events).concat();
    assert!(!whole.contains("omitted") && !whole.contains("WARNING"), "the events have all of it");
    harness.finish().await;
}

/// Every kind of event in section 2.9, within one session and in order.
async fn every_event_kind_of_the_specification_is_emitted(dialect: Dialect) {
    const ROUND: [&str; 6] = [
        "ASSISTANT_TEXT_START",
        "ASSISTANT_TEXT_DELTA",
        "ASSISTANT_TEXT_END",
        "TOOL_CALL_START",
        "TOOL_CALL_OUTPUT_DELTA",
        "TOOL_CALL_END",
    ];
    let round = "[[turn]]\ntext = \"On.\"\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo hello\" }\n";
    let failing = "[[turn.failure]]\nstatus = 503\n[[turn.failure]]\nstatus = 400\n";
    let turns = format!("{}[[turn]]\ntext = \"never\"\n{failing}", round.repeat(4));
    let mut config = SessionConfig::default().with_max_tool_rounds(4);
    config.limits.loop_detection_window = 3;
    let harness = Harness::configured(dialect, &turns, config).await;
    let mut events = harness.session.events();
    harness.session.handle().steer("quickly").await.unwrap();
    assert_eq!(harness.run("go").await.1.status, OutcomeStatus::RoundLimit);
    assert_eq!(
        harness.session.submit("go on").await.or_else(pintle_agent::RunError::into_outcome).unwrap().status,
        OutcomeStatus::Failed
    );
    harness.session.close().await;
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event);
    }
    let expected = [
        ["SESSION_START", "USER_INPUT", "STEERING_INJECTED"].as_slice(),
        &ROUND,
        &ROUND,
        &ROUND,
        &["LOOP_DETECTION"],
        &ROUND,
        &["TURN_LIMIT", "PROCESSING_END"],
        &["USER_INPUT", "WARNING", "ERROR", "PROCESSING_END"],
        &["SESSION_END"],
    ]
    .concat();
    let mut seen = kinds(&all);
    seen.retain(|kind| expected.contains(&kind.as_str()));
    // Any number of deltas makes one text or output.
    seen.dedup_by(|later, earlier| later == earlier && later.ends_with("_DELTA"));
    assert_eq!(seen, expected);
    assert_eq!((all[0].seq, kinds(&all).last().unwrap().as_str()), (0, "SESSION_END"));
}
