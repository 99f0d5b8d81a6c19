use futures_util::StreamExt as _;
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{
    Client, ErrorKind, Message, Role, StreamAccumulator, StreamEvent, ToolDefinition, ToolList,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use TextToolCallForm::{DeepSeek, FencedJson, Function, Hermes, Json, Mistral, PythonTag};

const ALL: [TextToolCallForm; 7] = [Hermes, Function, Mistral, PythonTag, Json, FencedJson, DeepSeek];

fn tools() -> ToolList {
    let read = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "limit": {"type": ["integer", "null"]}, "deep": {"type": "boolean"},
    }});
    let tool = |name: &str, schema: Value| ToolDefinition::new(name, "", schema).unwrap();
    vec![tool("read", read), tool("list", json!({"type": "object"}))].into()
}

/// Recognises a text in chunks. Returns text unchanged and calls as `⟨name arguments⟩`.
fn recognized<'t>(forms: &[TextToolCallForm], chunks: impl IntoIterator<Item = &'t str>) -> String {
    let mut recognizer = CallRecognizer::new(&forms.iter().copied().collect(), OfferedTools::new(&tools()));
    let mut out = Vec::new();
    for chunk in chunks {
        recognizer.feed(chunk, &mut out);
    }
    recognizer.finish(&mut out);
    let show = |segment: TextSegment| match segment {
        TextSegment::Text(text) => text,
        TextSegment::Call(call) => format!("⟨{} {}⟩", call.name, call.arguments),
    };
    out.into_iter().map(show).collect()
}

fn letters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(offset, c)| &text[offset..offset + c.len_utf8()])
}

/// Examples of each form with the expected result.
const CALLS: &[(TextToolCallForm, &str, &str)] = &[
    (
        Hermes,
        "I look.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
        "I look.\n⟨read {\"path\": \"a\"}⟩",
    ),
    (
        Hermes,
        "<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>\n\
         <tool_call>{\"arguments\":{},\"name\":\"list\"}</tool_call>",
        "⟨read {}⟩\n⟨list {}⟩",
    ),
    (Hermes, "<tool_call>{\"name\":\"list\",\"arguments\":\"{}\"}</tool_call>", "⟨list {}⟩"),
    // The end marker within an argument.
    (
        Hermes,
        "<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"}</tool_call>\\\"\"}}</tool_call>!",
        "⟨read {\"path\":\"}</tool_call>\\\"\"}⟩!",
    ),
    // End marker removed by the server as a stop word.
    (Hermes, "<tool_call>\n{\"name\":\"list\",\"arguments\":{}}\n", "⟨list {}⟩"),
    (
        Function,
        "<function=read>\n<parameter=path>\nsrc/</parameter>x\n\n</parameter>\n<parameter=limit>\n5\n</parameter>\n\
         <parameter=deep>\ntrue\n</parameter>\n</function>",
        "⟨read {\"deep\":true,\"limit\":5,\"path\":\"src/</parameter>x\\n\"}⟩",
    ),
    (
        Function,
        "Now:\n<tool_call>\n<function=read>\n<parameter=path>\n12\n</parameter>\n</function>\n</tool_call>\nDone",
        "Now:\n⟨read {\"path\":\"12\"}⟩\nDone",
    ),
    (Function, "<function=read>{\"path\": \"</function>\"}</function>", "⟨read {\"path\": \"</function>\"}⟩"),
    (Function, "<function=list></function>", "⟨list {}⟩"),
    (
        Mistral,
        "[TOOL_CALLS] [{\"name\": \"read\", \"arguments\": {\"path\": \"[]\"}}, {\"name\": \"list\", \"arguments\": {}}]",
        "⟨read {\"path\": \"[]\"}⟩⟨list {}⟩",
    ),
    (
        Mistral,
        "[TOOL_CALLS]read[ARGS]{\"path\":\"a\"}[TOOL_CALLS]list[ARGS]{}",
        "⟨read {\"path\":\"a\"}⟩⟨list {}⟩",
    ),
    (Mistral, "[TOOL_CALLS]read[CALL_ID]a1b2c3d4e[ARGS]{\"path\":\"a\"}", "⟨read {\"path\":\"a\"}⟩"),
    (PythonTag, "<|python_tag|>{\"name\": \"list\", \"parameters\": {}}", "⟨list {}⟩"),
    (
        PythonTag,
        "<|python_tag|>{\"type\": \"function\", \"name\": \"list\", \"parameters\": {}}; \
         <|python_tag|>{\"type\": \"function\", \"function\": {\"name\": \"read\", \"arguments\": {}}}",
        "⟨list {}⟩ ⟨read {}⟩",
    ),
    (
        Json,
        " {\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}; {\"name\": \"list\", \"parameters\": {}}",
        " ⟨read {\"path\": \"a\"}⟩ ⟨list {}⟩",
    ),
    (Json, "[{\"name\": \"list\", \"arguments\": {}}]", "⟨list {}⟩"),
    (Json, "<think>Hm.</think>\n{\"name\": \"list\", \"arguments\": {}}", "<think>Hm.</think>\n⟨list {}⟩"),
    (
        FencedJson,
        "I read:\n```json\n{\n  \"name\": \"read\",\n  \"arguments\": {\"path\": \"```\"}\n}\n```\nand wait.",
        "I read:\n⟨read {\"path\": \"```\"}⟩\nand wait.",
    ),
    (FencedJson, "```tool_call\n{\"name\":\"list\",\"arguments\":{}}\n```", "⟨list {}⟩"),
    (
        DeepSeek,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{\"path\": \"a\"}\n```\
         <｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>list<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "⟨read {\"path\": \"a\"}⟩⟨list {}⟩",
    ),
    (
        DeepSeek,
        "Ja.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>list<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
        "Ja.⟨list {}⟩",
    ),
];

#[test]
fn each_form_is_recognized_only_if_enabled() {
    for (form, text, expected) in CALLS {
        assert_eq!(recognized(&[*form], [*text]), *expected, "{form:?}");
        assert_eq!(recognized(&[*form], letters(text)), *expected, "{form:?}, letter by letter");
        assert_eq!(recognized(&ALL, letters(text)), *expected, "{form:?}, among all");
        let others: Vec<_> = ALL.into_iter().filter(|other| other != form).collect();
        assert_eq!(recognized(&others, [*text]), *text, "{form:?} is disabled");
    }
}

/// Texts without calls.
const TEXTS: &[&str] = &[
    "",
    "Plain text.\n",
    "a < b, [1], {x}, `y`; <tool",
    "<tool_call>",
    "<tool_call>{\"name\": \"list\", \"arguments\": {}",
    "<tool_call>{\"name\": \"list\", \"arguments\": {}} and more",
    "<tool_call>{name: list}</tool_call>",
    "<tool_call>{\"name\": \"list\"}</tool_call>",
    "<tool_call>{\"name\": \"list\", \"arguments\": []}</tool_call>",
    "<tool_call>{\"name\": \"list\", \"arguments\": {}, \"why\": \"x\"}</tool_call>",
    "<tool_call>{\"name\": \"lists\", \"arguments\": {}}</tool_call>",
    "<tool_call><tool_call></tool_call>",
    "The marker `<tool_call>` begins a call, `{\"name\": …}` follows.",
    "Write `<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>` to call.",
    "Write `call: <tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>` to call.",
    "It says:\n > <tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>",
    "Write ``a ` <tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call> `` to call.",
    "So:\n```\n``` json\n<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>\n```\n",
    "So:\n```xml\n<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>\n```\nThat is all.",
    "So:\n~~~xml\n<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>\n~~~\nThat is all.",
    "~~~\n```\n<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>\n~~~\n",
    "~~~md\n```json\n{\"name\":\"list\",\"arguments\":{}}\n```\n~~~",
    "```\n~~~\n<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>\n```\n",
    "~~~<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>",
    "~```json\n{\"name\":\"list\",\"arguments\":{}}\n```",
    "````md\n```json\n{\"name\":\"list\",\"arguments\":{}}\n```\n````",
    "<think><tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call></think>No.",
    "The answer is {\"name\": \"list\", \"parameters\": {}}",
    "{\"version\": 1, \"name\": \"list\", \"parameters\": {}}",
    "{\"name\": \"list\", \"dependencies\": {}}",
    "[TOOL_CALLS]",
    "[TOOL_CALLS] none",
    "[TOOL_CALLS]nothing[ARGS]{}",
    // One unknown tool disqualifies its block.
    "[TOOL_CALLS][{\"name\":\"list\",\"arguments\":{}},{\"name\":\"x\",\"arguments\":{}}]",
    "<|python_tag|>print(1)",
    "```json\n{\"a\": 1}\n```\n",
    "```json\n{\"name\":\"list\",\"arguments\":{}} // so\n```",
    "<function=list",
    "<function=none></function>",
    "<function=list>x</function>",
    "<function=read><parameter=path>a</function>",
    "<｜tool▁calls▁begin｜>list<｜tool▁calls▁end｜>",
];

#[test]
fn text_without_calls_is_unchanged() {
    for text in TEXTS {
        assert_eq!(recognized(&ALL, [*text]), *text);
        assert_eq!(recognized(&ALL, letters(text)), *text, "letter by letter");
        assert_eq!(recognized(&[], [*text]), *text);
    }
}

#[test]
fn calls_after_code_and_quotes_are_found() {
    let call = "<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>";
    for before in [
        "> a\n",
        "a > b ",
        "`a` and ``b ` c``: ",
        "a ` b\n",
        "``` a\n`\n```  \n",
        "`a`\n```\nb\n````\n",
        "~~~ a\n```\n~~~~\n",
        "~~a~~ and ~~~: ",
        "~",
    ] {
        assert_eq!(
            recognized(&[Hermes], letters(&format!("{before}{call}"))),
            format!("{before}⟨list {{}}⟩")
        );
    }
}

/// Limits apply at the same offset whatever the chunks.
#[test]
fn limits_do_not_depend_on_chunks() {
    let (key, name) = (" ".repeat(300), "x".repeat(155));
    for text in [
        format!("<tool_call>{{{key}\"name\":\"list\",\"arguments\":{{}}}}</tool_call>"),
        "<function=list\n>{}</function>".to_owned(),
        "<function=list\n></function>".to_owned(),
        format!("[TOOL_CALLS]list[CALL_ID]{}[ARGS]{{}}", "x".repeat(147)),
        format!("[TOOL_CALLS]list[CALL_ID]{name}[ARGS]{{}}"),
        format!("[TOOL_CALLS]list[CALL_ID]{}[ARGS]{{}}", "é".repeat(80)),
    ] {
        assert_eq!(recognized(&ALL, letters(&text)), recognized(&ALL, [text.as_str()]), "{text}");
    }
}

/// Takes minutes if the work is not linear.
#[test]
fn unterminated_names_and_white_space_are_scanned_once() {
    let names = "<function=a".repeat(400_000);
    assert_eq!(recognized(&ALL, [names.as_str()]), names);
    let mut recognizer = CallRecognizer::new(&[Mistral].into(), OfferedTools::new(&tools()));
    let mut out = Vec::new();
    recognizer.feed("[TOOL_CALLS]list[ARGS]", &mut out);
    for _ in 0..MAX_CALL - 64 {
        recognizer.feed(" ", &mut out);
    }
    recognizer.feed("{}", &mut out);
    assert!(matches!(out.as_slice(), [TextSegment::Call(_)]), "{out:?}");
}

#[test]
fn a_call_after_a_malformed_one_is_found() {
    let text = "<tool_call>{\"name\": \"list\", oh</tool_call>\n<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>";
    assert_eq!(recognized(&[Hermes], [text]), "<tool_call>{\"name\": \"list\", oh</tool_call>\n⟨list {}⟩");
}

/// Checks the output after each chunk.
#[test]
fn only_a_possible_call_is_held_back() {
    let mut recognizer = CallRecognizer::new(&ALL.into_iter().collect(), OfferedTools::new(&tools()));
    let mut emitted = |text: &str| {
        let mut out = Vec::new();
        recognizer.feed(text, &mut out);
        let text = |segment: TextSegment| match segment {
            TextSegment::Text(text) => text,
            TextSegment::Call(call) => format!("⟨{}⟩", call.name),
        };
        out.into_iter().map(text).collect::<String>()
    };
    for (chunk, expected) in [
        ("Hello ", "Hello "),
        ("a <", "a "),
        ("b <too", "<b "),
        ("lbox> c", "<toolbox> c"),
        ("\n```json\n", "\n"),
        // Other JSON is released at its first key.
        ("{\"na", ""),
        ("tive\": 1", "```json\n{\"native\": 1"),
        ("}\n```\n", "}\n```\n"),
        ("<tool_call> {\"name\": \"list\", ", ""),
        ("\"arguments\": {}} </tool_call", ""),
        ("> x", "⟨list⟩ x"),
    ] {
        assert_eq!(emitted(chunk), expected, "{chunk:?}");
    }
}

#[test]
fn overlong_calls_are_text_and_scanned_once() {
    let long = format!(
        "<tool_call>{{\"name\": \"read\", \"arguments\": {{\"path\": \"{}\"}}}}</tool_call>",
        "x".repeat(MAX_CALL)
    );
    assert_eq!(recognized(&ALL, [long.as_str()]), long);
    let chunks = long.as_bytes().chunks(4096).map(|chunk| std::str::from_utf8(chunk).unwrap());
    assert_eq!(recognized(&ALL, chunks), long);
    for (unit, close) in [("<tool_call>{\"name\":1 ", "}"), ("<function=a><parameter=b>", "")] {
        let nested = unit.repeat(100_000) + &close.repeat(100_000) + "x";
        assert_eq!(recognized(&ALL, [nested.as_str()]), nested);
    }
}

const MAX_CALL: usize = 1 << 20;

fn request() -> Request {
    Request::new("m", [Message::user("go")]).with_tools(tools())
}

fn client_of(adapter: FakeAdapter, layer: TextToolCalls) -> Client {
    Client::builder().provider(adapter).default_provider("fake").middleware(layer).build().unwrap()
}

/// Client of a model that sends this message twice.
fn client(message: Message) -> Client {
    let adapter = FakeAdapter::new("fake").message(message.clone()).message(message);
    client_of(adapter, TextToolCalls::new(ALL))
}

const RESPONSE: &str = "Look.\n\n<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}</tool_call>\n\
                      <tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>\n";

#[tokio::test]
async fn complete_and_streamed_responses_have_the_same_calls() {
    let client = client(Message::assistant(RESPONSE));
    let complete = client.complete(request()).await.unwrap();
    let calls: Vec<_> = complete.tool_calls().map(|call| (call.id.as_str(), call.name.as_str())).collect();
    assert_eq!(calls, [("text_call_1", "read"), ("text_call_2", "list")]);
    assert_eq!((complete.text().as_str(), complete.message.content.len()), ("Look.\n\n", 3));
    assert_eq!(complete.finish_reason.reason, Finish::ToolCalls);
    let mut accumulator = StreamAccumulator::new("fake", "m");
    let mut last = None;
    let mut events = client.stream(request()).await.unwrap();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        accumulator.process(&event);
        last = Some(event);
    }
    assert_eq!(accumulator.response().unwrap().message, complete.message);
    let Some(StreamEvent::Finish { finish_reason, response, .. }) = last else { panic!("{last:?}") };
    assert_eq!((finish_reason.reason, &response.message), (Finish::ToolCalls, &complete.message));
}

#[tokio::test]
async fn ids_continue_those_of_the_conversation() {
    let before = ToolCall::from_raw("text_call_7", "list", "{}");
    let mut request = request();
    request.messages.push(Message::new(Role::Assistant, vec![before.into()]).into());
    request.messages.push(Message::tool_result("text_call_7", "", false).into());
    let response = client(Message::assistant(RESPONSE)).complete(request).await.unwrap();
    let ids: Vec<_> = response.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["text_call_8", "text_call_9"]);
}

#[tokio::test]
async fn without_callable_tools_the_response_is_unchanged() {
    let message = Message::assistant(RESPONSE);
    let mut none = request();
    none.tools = ToolList::default();
    assert_eq!(client(message.clone()).complete(none).await.unwrap().text(), RESPONSE);
    let forbidden = request().with_tool_choice(ToolChoice::None);
    assert_eq!(client(message).complete(forbidden).await.unwrap().text(), RESPONSE);
}

#[tokio::test]
async fn the_finish_reason_length_is_kept() {
    let adapter = FakeAdapter::new("fake").finished(Message::assistant(RESPONSE), Finish::Length);
    let client = client_of(adapter, TextToolCalls::new([Hermes]));
    assert_eq!(client.complete(request()).await.unwrap().finish_reason.reason, Finish::Length);
}

#[tokio::test]
async fn held_back_text_is_emitted_when_the_stream_breaks() {
    let error = Error::new(ErrorKind::Network, "gone");
    let adapter = FakeAdapter::new("fake").cut("Hm <tool_call>{\"name\"", error);
    let client = client_of(adapter, TextToolCalls::new([Hermes]));
    let mut events = client.stream(request()).await.unwrap();
    let mut text = String::new();
    let error = loop {
        match events.next().await.expect("an error ends it") {
            Ok(StreamEvent::TextDelta { delta, .. }) => text.push_str(&delta),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!((text.as_str(), error.kind()), ("Hm <tool_call>{\"name\"", ErrorKind::Network));
}

/// Takes minutes if held back text is scanned again for each chunk.
#[tokio::test]
async fn leading_white_space_is_scanned_once() {
    let delta = |delta: &str| StreamEvent::TextDelta { text_id: "t".into(), delta: delta.into() };
    let blanks = 300_000;
    let events = std::iter::once(StreamEvent::TextStart { text_id: "t".into() })
        .chain((0..blanks).map(|_| delta(" ")))
        .chain([delta("x")]);
    let events = futures_util::stream::iter(events.map(Ok).collect::<Vec<_>>());
    let parser = ResponseParser { forms: [Hermes].into(), tools: OfferedTools::new(&tools()), next_id: 1 };
    let emitted: Vec<_> = stream::parse(Box::pin(events), parser).collect().await;
    let [Ok(StreamEvent::TextStart { .. }), Ok(StreamEvent::TextDelta { delta, .. })] = emitted.as_slice()
    else {
        panic!("{} events", emitted.len())
    };
    assert_eq!(delta.len(), blanks + 1);
}

/// The end marker is missing because the stream broke, not because a server removed it.
#[tokio::test]
async fn an_unterminated_call_is_text_when_the_stream_breaks() {
    let written = "<tool_call>{\"name\":\"list\",\"arguments\":{}}";
    let adapter = FakeAdapter::new("fake").cut(written, Error::new(ErrorKind::Network, "gone"));
    let client = client_of(adapter, TextToolCalls::new([Hermes]));
    let events: Vec<_> = client.stream(request()).await.unwrap().collect().await;
    let text: String = events
        .iter()
        .filter_map(|event| match event {
            Ok(StreamEvent::TextDelta { delta, .. }) => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, written);
    assert!(!events.iter().any(|event| matches!(event, Ok(StreamEvent::ToolCallStart { .. }))));
}

/// Also with text still held back.
#[tokio::test]
async fn an_ended_stream_is_not_polled_again() {
    let start = StreamEvent::TextStart { text_id: "t".into() };
    let delta = StreamEvent::TextDelta { text_id: "t".into(), delta: "a <tool_call>".into() };
    let mut given = [start, delta].into_iter();
    let mut has_ended = false;
    let events = futures_util::stream::poll_fn(move |_| {
        assert!(!std::mem::replace(&mut has_ended, given.len() == 0), "it has ended");
        std::task::Poll::Ready(given.next().map(Ok))
    });
    let parser = ResponseParser { forms: [Hermes].into(), tools: OfferedTools::new(&tools()), next_id: 1 };
    let emitted: Vec<_> = stream::parse(Box::pin(events), parser).collect().await;
    assert_eq!(emitted.len(), 3, "{emitted:?}");
}

#[test]
fn serialised_names_of_forms() {
    let names = serde_json::to_value(ALL).unwrap();
    let expected = ["hermes", "function", "mistral", "python_tag", "json", "fenced_json", "deep_seek"];
    assert_eq!(names, json!(expected));
}

fn fragment() -> impl Strategy<Value = String> {
    let texts = TEXTS.iter().copied().chain(CALLS.iter().map(|(_, text, _)| *text)).collect::<Vec<_>>();
    prop_oneof![
        3 => prop::sample::select(texts).prop_map(str::to_owned),
        2 => "[a-z<>`{}\\[\\]\";:\n =_|]{0,12}",
    ]
}

proptest! {
    #[test]
    fn chunk_boundaries_change_nothing(
        fragments in prop::collection::vec(fragment(), 1..5),
        cuts in prop::collection::vec(1usize..9, 1..20),
    ) {
        let text = fragments.concat();
        let mut rest: Vec<&str> = letters(&text).collect();
        let mut chunks = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break }
            let more = rest.split_off((*cut).min(rest.len()));
            chunks.push(rest.concat());
            rest = more;
        }
        prop_assert_eq!(recognized(&ALL, chunks.iter().map(String::as_str)), recognized(&ALL, [text.as_str()]));
    }

    #[test]
    fn without_a_known_tool_the_text_is_unchanged(fragments in prop::collection::vec(fragment(), 1..5)) {
        let text = fragments.concat();
        let mut recognizer = CallRecognizer::new(&ALL.into_iter().collect(), OfferedTools::default());
        let mut out = Vec::new();
        recognizer.feed(&text, &mut out);
        recognizer.finish(&mut out);
        let emitted: String = out.into_iter().map(|segment| match segment {
            TextSegment::Text(text) => text,
            TextSegment::Call(call) => panic!("{call:?}"),
        }).collect();
        prop_assert_eq!(emitted, text);
    }
}
