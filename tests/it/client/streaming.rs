//! Section 8.4: the events of a stream.

use std::collections::BTreeMap;

use pintle_llm::{Finish, StreamEvent};
use pintle_testkit::{Call, Dialect, Turn};
use serde_json::json;

use super::harness::{ClientHarness, model, read_file, response_of};

per_provider!(
    deltas_concatenate_to_the_text,
    starts_and_finishes_once,
    segments_have_a_start_deltas_and_an_end
);

async fn deltas_concatenate_to_the_text(dialect: Dialect) {
    let text = "One sentence. Another, longer sentence with “quotes” and 漢字.\n\nA second paragraph.";
    let harness = ClientHarness::responding(dialect, Turn::text(text)).await;
    let events = harness.events(harness.question()).await;
    let mut deltas = String::new();
    for event in &events {
        if let StreamEvent::TextDelta { delta, .. } = event {
            deltas.push_str(delta);
        }
    }
    assert_eq!(deltas, text);
    assert_eq!(response_of(&events).text(), text);
}

async fn starts_and_finishes_once(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("Hello there, whoever you are.")).await;
    let events = harness.events(harness.question()).await;
    let [StreamEvent::StreamStart { id, model: answering, warnings }, between @ .., last] = events.as_slice()
    else {
        panic!("expected STREAM_START first, found {:?}", events.first());
    };
    assert_eq!(answering.as_deref(), Some(model(dialect)));
    assert_eq!(*warnings, []);
    let StreamEvent::Finish { finish_reason, usage, response } = last else {
        panic!("expected FINISH last, found {last:?}");
    };
    assert_eq!(finish_reason.reason, Finish::Stop);
    assert!(usage.input_tokens > 0 && usage.output_tokens == 8, "{usage:?}");
    assert_eq!((&response.finish_reason, &response.usage), (finish_reason, usage));
    assert_eq!(Some(&response.id), id.as_ref());
    assert_eq!((response.provider.as_str(), response.model.as_str()), (dialect.name(), model(dialect)));
    let again =
        |event: &StreamEvent| matches!(event, StreamEvent::StreamStart { .. } | StreamEvent::Finish { .. });
    assert!(!between.iter().any(again));
}

#[derive(Debug, PartialEq)]
enum Step {
    Started,
    Grew,
    Ended,
}

async fn segments_have_a_start_deltas_and_an_end(dialect: Dialect) {
    let turn = Turn::text("A text of some length, in several pieces.")
        .with_reasoning("Reasoning of some length, in several pieces.")
        .with_call(Call::new("read_file", json!({"file_path": "a.rs"})))
        .with_call(Call::new("read_file", json!({"file_path": "b.rs"})));
    let harness = ClientHarness::responding(dialect, turn).await;
    let mut open: BTreeMap<String, Step> = BTreeMap::new();
    for event in harness.events(harness.question().with_tools(vec![read_file()])).await {
        let (id, step) = match event {
            StreamEvent::TextStart { text_id } => (format!("text {text_id}"), Step::Started),
            StreamEvent::TextDelta { text_id, .. } => (format!("text {text_id}"), Step::Grew),
            StreamEvent::TextEnd { text_id, .. } => (format!("text {text_id}"), Step::Ended),
            StreamEvent::ReasoningStart { reasoning_id } => {
                (format!("reasoning {reasoning_id}"), Step::Started)
            }
            StreamEvent::ReasoningDelta { reasoning_id, .. } => {
                (format!("reasoning {reasoning_id}"), Step::Grew)
            }
            StreamEvent::ReasoningEnd { reasoning_id, .. } => {
                (format!("reasoning {reasoning_id}"), Step::Ended)
            }
            StreamEvent::ToolCallStart { tool_call } => (format!("call {}", tool_call.id), Step::Started),
            StreamEvent::ToolCallDelta { tool_call, .. } => (format!("call {}", tool_call.id), Step::Grew),
            StreamEvent::ToolCallEnd { tool_call } => (format!("call {}", tool_call.id), Step::Ended),
            _ => continue,
        };
        let before = open.get(&id);
        let legal = match step {
            Step::Started => before.is_none(),
            Step::Grew => matches!(before, Some(Step::Started | Step::Grew)),
            // Gemini sends a call in one piece.
            Step::Ended if dialect == Dialect::Gemini && id.starts_with("call") => {
                before == Some(&Step::Started)
            }
            Step::Ended => before == Some(&Step::Grew),
        };
        assert!(legal, "{id}: {step:?} after {before:?}");
        open.insert(id, step);
    }
    assert_eq!(open.len(), 4, "{open:?}");
    assert!(open.values().all(|step| *step == Step::Ended), "{open:?}");
}
