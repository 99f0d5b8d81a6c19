//! Accumulates a streamed response, and looks up a model in the catalog.

use pintle_llm::{Capability, StreamAccumulator, StreamEvent, get_latest_model};

fn main() {
    let model = get_latest_model("openai", Some(Capability::Tools)).expect("a current model");
    let mut answer = StreamAccumulator::new(&model.provider, &model.id);
    answer.process(&StreamEvent::TextStart { text_id: "0".into() });
    for delta in ["Hello, ", "world"] {
        answer.process(&StreamEvent::TextDelta { text_id: "0".into(), delta: delta.into() });
    }
    assert_eq!(answer.partial().text(), "Hello, world");
    assert!(model.context_window > 100_000);
}
