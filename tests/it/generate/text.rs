//! Section 8.4: prompts and messages, and the events of a stream.

use pintle_llm::{ErrorKind, Finish, Message, StreamEvent, generate, stream};
use pintle_testkit::{Dialect, Turn};

use super::{GenerateHarness, Mode};
use crate::harness::in_each_dialect;

in_each_dialect!(
    a_prompt_is_answered,
    messages_are_answered,
    a_prompt_with_messages_is_refused,
    a_stream_is_one_response
);

async fn a_prompt_is_answered(dialect: Dialect) {
    for mode in Mode::BOTH {
        let harness = GenerateHarness::new(dialect, [Turn::text("A harbour, and gulls.")]).await;
        let result =
            mode.run(harness.options().with_system("You are brief.").with_max_tokens(100)).await.unwrap();
        assert_eq!(result.text(), "A harbour, and gulls.");
        assert_eq!((result.finish_reason().reason, result.steps.len()), (Finish::Stop, 1));
        assert!(result.usage().input_tokens > 0 && result.usage().output_tokens > 0);
        assert_eq!(result.usage().total_tokens, result.total_usage.total_tokens);
        let body = &harness.requests()[0].body;
        assert!(body.to_string().contains("You are brief."), "{body}");
    }
}

async fn messages_are_answered(dialect: Dialect) {
    let harness = GenerateHarness::new(dialect, [Turn::text("Two."), Turn::text("Four.")]).await;
    let asked = [Message::user("One and one?")];
    let first = generate(harness.bare().with_messages(asked.clone())).await.unwrap();
    let mut whole: Vec<pintle_llm::HistoryItem> = asked.map(Into::into).to_vec();
    whole.extend(first.messages);
    whole.push(Message::user("Twice that?").into());
    let second = generate(harness.bare().with_messages(whole)).await.unwrap();
    assert_eq!((first.response.text().as_str(), second.text().as_str()), ("Two.", "Four."));
    assert_eq!(harness.statuses(), [Some(200), Some(200)]);
}

async fn a_prompt_with_messages_is_refused(dialect: Dialect) {
    let harness = GenerateHarness::new(dialect, [Turn::text("Never.")]).await;
    for mode in Mode::BOTH {
        let both = harness.options().with_messages([Message::user("And this?")]);
        let error = mode.run(both).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert_eq!(error.message(), "expected a prompt or messages, found both");
    }
    assert_eq!(harness.statuses(), []);
}

async fn a_stream_is_one_response(dialect: Dialect) {
    let text = "Waves fold into waves,\nthe harbour keeps no ledger —\na gull 🕊 tips its wing.";
    let harness = GenerateHarness::new(dialect, [Turn::text(text)]).await;
    let mut poem = stream(harness.options()).unwrap();
    let mut events = Vec::new();
    while let Some(event) = poem.next().await {
        let event = event.unwrap();
        if let StreamEvent::TextDelta { delta, .. } = &event {
            assert!(poem.partial_response().unwrap().text().ends_with(delta), "what has come is there");
        }
        events.push(event);
    }
    let deltas = events.iter().filter_map(|event| match event {
        StreamEvent::TextDelta { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    let response = poem.response().unwrap();
    assert_eq!((deltas.collect::<String>().as_str(), response.text().as_str()), (text, text));
    let Some(StreamEvent::StreamStart { model, .. }) = events.first() else { panic!("{events:?}") };
    assert_eq!(model.as_deref(), Some(response.model.as_str()));
    let Some(StreamEvent::Finish { finish_reason, usage, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!((finish_reason.reason, usage), (Finish::Stop, &response.usage));
}
