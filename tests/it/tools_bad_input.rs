//! Mistakes of models and tools in a whole session: each has a defined result, and the session continues.

use std::future::pending;

use async_trait::async_trait;
use pintle_agent::{EventKind, OutcomeStatus, ProviderProfile, SessionEvent};
use pintle_env::{OutputChunk, OutputStream};
use pintle_llm::ToolDefinition;
use pintle_test_conditions::cases;
use pintle_testkit::Dialect;
use pintle_tools::{
    DefinitionError, DynTool, Effect, Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolRegistry,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::{Harness, in_each_dialect, kinds, profile};

in_each_dialect![
    calls_that_do_not_fit_are_explained,
    tools_that_fail_in_their_own_way_have_a_result,
    a_tool_that_hangs_can_be_interrupted,
    megabytes_of_arguments_are_accepted,
    plain_mistakes_are_mended_and_told,
    a_host_can_have_them_refused,
    a_tool_that_no_provider_would_take_is_not_added,
];

/// Size of a large output, several times the limit for outputs in memory.
const HUGE: usize = 10_000_000;

/// A tool that misbehaves as its argument says.
struct Odd;

#[derive(Deserialize, JsonSchema)]
struct OddInput {
    /// Kind of misbehaviour.
    what: String,
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

    async fn call(&self, input: OddInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match input.what.as_str() {
            "panic" => panic!("out of tune"),
            "hang" => {
                let chunk = OutputChunk::new(OutputStream::Stdout, "It hangs.");
                cx.on_output.as_ref().expect("somebody watches")(chunk);
                pending().await
            }
            "nothing" => Ok(ToolOutput::default()),
            "huge" => Ok(ToolOutput::new(vec![b'x'; HUGE])),
            "bytes" => Ok(ToolOutput::new(b"\xff\xfe and text".to_vec())),
            text => Ok(ToolOutput::new(format!("{} bytes", text.len()))),
        }
    }
}

/// A tool with an invalid schema.
struct Dynamic(Value);

#[async_trait]
impl DynTool for Dynamic {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        ToolDefinition::new("dynamic", "From a host.", self.0.clone())
            .map_err(|error| DefinitionError::refused("dynamic", error))
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call_json(&self, _: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("called"))
    }
}

/// Starts a harness whose model has the misbehaving tool, with modified tools.
async fn harness(dialect: Dialect, turns: &str, change: impl FnOnce(&mut ToolRegistry)) -> Harness {
    let harness = Harness::new(dialect, turns).await;
    let mut profile: ProviderProfile = profile(dialect).with_tool(Odd).unwrap();
    change(&mut profile.tool_registry);
    harness.session.handle().set_profile(profile).unwrap();
    harness
}

fn call(tool: &str, arguments: &str) -> String {
    format!("[[turn.call]]\ntool = \"{tool}\"\n{arguments}\n")
}

fn odd(what: &str) -> String {
    call("odd", &format!("arguments = {{ what = \"{what}\" }}"))
}

/// Returns a last turn that expects these texts in the results, in order.
fn answered(results: &[(&str, bool)]) -> String {
    let mut turn = "[[turn]]\ntext = \"Understood.\"\n".to_owned();
    for (call, (text, is_error)) in results.iter().enumerate() {
        turn += &format!("[[turn.expect]]\ncall = {call}\ncontains = '''{text}'''\nis_error = {is_error}\n");
    }
    turn
}

fn errors(events: &[SessionEvent]) -> Vec<Option<ToolErrorKind>> {
    events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallEnd { error, .. } => Some(*error),
            _ => None,
        })
        .collect()
}

async fn calls_that_do_not_fit_are_explained(dialect: Dialect) {
    // Gemini's arguments are an object on the wire.
    let is_object = dialect == Dialect::Gemini;
    let (not_json, not_object) = if is_object {
        ("arguments = { what = true }", "arguments = { what = [1] }")
    } else {
        ("arguments_raw = 'not json'", "arguments_raw = '[1]'")
    };
    let turns = format!(
        "[[turn]]\n{}{}{}{}{}{}",
        call("odd", not_json),
        call("odd", not_object),
        call("odd", "arguments = { what = 5 }"),
        call("odd", "arguments = { what = \"a\", colour = 1 }"),
        call("odd", "arguments = {}"),
        call("0dd", "arguments = { what = \"a\" }"),
    ) + &answered(&[
        (if is_object { "`what`: expected string, got boolean true" } else { "not valid JSON: " }, true),
        (
            if is_object {
                "`what`: expected string, got array [1]"
            } else {
                "expected a JSON object, got an array"
            },
            true,
        ),
        ("`what`: expected string, got number 5", true),
        ("`colour`: no such argument", true),
        ("`what`: required, but missing", true),
        ("Unknown tool: 0dd. Available tools: ", true),
    ]) + "[[turn]]\ntext = \"Still here.\"\n";
    let harness = harness(dialect, &turns, |_| {}).await;
    let (events, _) = harness.run("Go").await;
    // They end in any order, since each is prepared independently.
    let ended = errors(&events);
    let count = |kind| ended.iter().filter(|error| **error == Some(kind)).count();
    assert_eq!((count(ToolErrorKind::InvalidArguments), count(ToolErrorKind::UnknownTool)), (5, 1));
    assert_eq!(harness.run("And now?").await.1.text, "Still here.");
    harness.finish().await;
}

async fn tools_that_fail_in_their_own_way_have_a_result(dialect: Dialect) {
    // A model with a small window sees less of an output.
    let read = if dialect == Dialect::ChatCompletions { 16_384 } else { 30_000 };
    let removed = format!("{} characters were removed from the middle", HUGE - read);
    let turns = format!("[[turn]]\n{}{}{}{}", odd("panic"), odd("nothing"), odd("bytes"), odd("huge"))
        + &answered(&[
            ("Tool error (odd): the tool itself is broken: it panicked (out of tune)", true),
            ("(no output)", false),
            ("\u{FFFD}\u{FFFD} and text", false),
            (&removed, false),
        ])
        + "[[turn]]\ntext = \"Still here.\"\n";
    let harness = harness(dialect, &turns, |_| {}).await;
    let (events, _) = harness.run("Go").await;
    let sizes: Vec<(u64, bool)> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallEnd { output, .. } => Some((output.len(), output.is_spooled())),
            _ => None,
        })
        .collect();
    assert!(sizes.contains(&(HUGE as u64, true)) && sizes.contains(&(0, false)), "{sizes:?}");
    assert!(harness.requests().iter().all(|request| request.body.to_string().len() < 200_000));
    assert_eq!(harness.run("And now?").await.1.text, "Still here.");
    harness.finish().await;
}

async fn a_tool_that_hangs_can_be_interrupted(dialect: Dialect) {
    let turns = format!("[[turn]]\n{}", odd("hang"))
        + &answered(&[("Interrupted: the turn was stopped while this call ran", true)]);
    let harness = harness(dialect, &turns, |_| {}).await;
    let mut run = harness.session.submit("Go");
    while let Some(event) = run.next().await {
        if matches!(event.kind, EventKind::ToolCallOutputDelta { .. }) {
            break;
        }
    }
    harness.session.handle().stop_turn().unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    assert_eq!(harness.run("Never mind").await.1.text, "Understood.");
    harness.finish().await;
}

async fn megabytes_of_arguments_are_accepted(dialect: Dialect) {
    let size = cases(1_000_000, 10_000_000);
    let result = format!("{size} bytes");
    let turns = format!("[[turn]]\n{}", odd(&"x".repeat(size))) + &answered(&[(&result, false)]);
    let harness = Harness::new(dialect, &turns).await;
    // They fit the window for any size of a token.
    let profile = profile(dialect).with_context_window(16_000_000).with_tool(Odd).unwrap();
    harness.session.handle().set_profile(profile).unwrap();
    let (events, outcome) = harness.run("Go").await;
    assert_eq!((errors(&events), outcome.text.as_str()), (vec![None], "Understood."));
    harness.finish().await;
}

const MISTAKEN: &str = "arguments = { path = \"a.txt\", limit = \"1\", offset = 2.0 }";

async fn plain_mistakes_are_mended_and_told(dialect: Dialect) {
    let turns = format!("[[turn]]\n{}", call("read_file", MISTAKEN)) + &answered(&[("second", false)]);
    let harness = harness(dialect, &turns, |_| {}).await;
    harness.write("a.txt", "first\nsecond\nthird\n");
    let (events, _) = harness.run("Read").await;
    let repairs = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolCallRepaired { repairs, .. } => {
            Some(repairs.iter().map(ToString::to_string).collect())
        }
        _ => None,
    });
    let mut told: Vec<String> = repairs.unwrap();
    told.sort();
    assert_eq!(
        told,
        [
            "`file_path`: was called `path`",
            "`limit`: the number was taken from a text",
            "`offset`: the fraction is a whole number",
        ]
    );
    let kinds = kinds(&events);
    let place = |wanted: &str| kinds.iter().position(|kind| kind == wanted).unwrap();
    assert!(place("TOOL_CALL_REPAIRED") < place("TOOL_CALL_START"));
    harness.finish().await;
}

async fn a_host_can_have_them_refused(dialect: Dialect) {
    let turns = format!("[[turn]]\n{}", call("read_file", MISTAKEN))
        + &answered(&[("`limit`: expected integer, got string \"1\"", true)]);
    let harness = harness(dialect, &turns, |tools| tools.set_argument_repair(false)).await;
    let (events, _) = harness.run("Read").await;
    assert_eq!(errors(&events), [Some(ToolErrorKind::InvalidArguments)]);
    assert!(!kinds(&events).iter().any(|kind| kind == "TOOL_CALL_REPAIRED"));
    harness.finish().await;
}

async fn a_tool_that_no_provider_would_take_is_not_added(dialect: Dialect) {
    let turns =
        format!("[[turn]]\n{}", call("dynamic", "arguments = { n = 1 }")) + &answered(&[("called", false)]);
    let harness = harness(dialect, &turns, |tools| {
        let object = |property: Value| json!({"type": "object", "properties": {"n": property}});
        tools.register(Dynamic(object(json!({"type": "integer"})))).unwrap();
        let before = tools.definitions();
        for broken in [json!([]), json!({"type": "text"}), object(json!({"$ref": "#/nowhere"}))] {
            let error = tools.register(Dynamic(broken.clone())).unwrap_err();
            assert_eq!(error.to_string(), "tool `dynamic` cannot be registered", "{broken}");
        }
        assert_eq!(tools.definitions(), before, "the one before stays");
    })
    .await;
    harness.run("Go").await;
    harness.finish().await;
}
