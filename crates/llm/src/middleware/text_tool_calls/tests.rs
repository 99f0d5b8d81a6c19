use futures_util::StreamExt as _;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::accumulate::StreamAccumulator;
use crate::client::Client;
use crate::error::ErrorKind;
use crate::message::{Message, Role};
use crate::stream::StreamEvent;
use crate::testing::FakeAdapter;
use crate::tool::{ToolDefinition, ToolList};
use TextToolCallForm::{DeepSeek, FencedJson, Function, Hermes, Json, Mistral, PythonTag};

const ALL: [TextToolCallForm; 7] = [Hermes, Function, Mistral, PythonTag, Json, FencedJson, DeepSeek];

fn tools() -> ToolList {
    let read = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "limit": {"type": ["integer", "null"]}, "deep": {"type": "boolean"},
    }});
    let tool = |name: &str, schema: Value| ToolDefinition::new(name, "", schema).unwrap();
    vec![tool("read", read), tool("list", json!({"type": "object"}))].into()
}

/// What comes out of a text that comes in these pieces: text as it is, calls as `⟨name arguments⟩`.
fn shown<'t>(forms: &[TextToolCallForm], pieces: impl IntoIterator<Item = &'t str>) -> String {
    let mut recognizer = Recognizer::new(&forms.iter().copied().collect(), Offered::of(&tools()));
    let mut out = Vec::new();
    for piece in pieces {
        recognizer.feed(piece, &mut out);
    }
    recognizer.finish(&mut out);
    let show = |piece: Piece| match piece {
        Piece::Text(text) => text,
        Piece::Call(call) => format!("⟨{} {}⟩", call.name, call.arguments),
    };
    out.into_iter().map(show).collect()
}

fn letters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(place, c)| &text[place..place + c.len_utf8()])
}

/// Each form as models write it, and what it makes.
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
    // A text that speaks of the marker, in an argument.
    (
        Hermes,
        "<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"}</tool_call>\\\"\"}}</tool_call>!",
        "⟨read {\"path\":\"}</tool_call>\\\"\"}⟩!",
    ),
    // The server took the end marker for a stop word.
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
fn each_form_is_read_and_only_where_it_is_asked_for() {
    for (form, text, expected) in CALLS {
        assert_eq!(shown(&[*form], [*text]), *expected, "{form:?}");
        assert_eq!(shown(&[*form], letters(text)), *expected, "{form:?}, letter by letter");
        assert_eq!(shown(&ALL, letters(text)), *expected, "{form:?}, among all");
        let others: Vec<_> = ALL.into_iter().filter(|other| other != form).collect();
        assert_eq!(shown(&others, [*text]), *text, "{form:?} is not asked for");
    }
}

/// What is no call comes out as it went in.
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
    // One that is not known spoils its block.
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
fn what_is_no_call_stays_text() {
    for text in TEXTS {
        assert_eq!(shown(&ALL, [*text]), *text);
        assert_eq!(shown(&ALL, letters(text)), *text, "letter by letter");
        assert_eq!(shown(&[], [*text]), *text);
    }
}

#[test]
fn a_call_behind_code_and_quotes_is_found() {
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
        assert_eq!(shown(&[Hermes], letters(&format!("{before}{call}"))), format!("{before}⟨list {{}}⟩"));
    }
}

/// What is looked at ends where it would end if it came in pieces.
#[test]
fn long_names_and_gaps_are_decided_alike_however_they_come() {
    let (key, name) = (" ".repeat(300), "x".repeat(155));
    for text in [
        format!("<tool_call>{{{key}\"name\":\"list\",\"arguments\":{{}}}}</tool_call>"),
        "<function=list\n>{}</function>".to_owned(),
        "<function=list\n></function>".to_owned(),
        format!("[TOOL_CALLS]list[CALL_ID]{}[ARGS]{{}}", "x".repeat(147)),
        format!("[TOOL_CALLS]list[CALL_ID]{name}[ARGS]{{}}"),
        format!("[TOOL_CALLS]list[CALL_ID]{}[ARGS]{{}}", "é".repeat(80)),
    ] {
        assert_eq!(shown(&ALL, letters(&text)), shown(&ALL, [text.as_str()]), "{text}");
    }
}

/// As much work as text, to a factor: this test takes minutes where it is not so.
#[test]
fn names_and_white_space_that_do_not_end_are_not_looked_at_over_and_over() {
    let names = "<function=a".repeat(400_000);
    assert_eq!(shown(&ALL, [names.as_str()]), names);
    let mut recognizer = Recognizer::new(&[Mistral].into(), Offered::of(&tools()));
    let mut out = Vec::new();
    recognizer.feed("[TOOL_CALLS]list[ARGS]", &mut out);
    for _ in 0..LONGEST - 64 {
        recognizer.feed(" ", &mut out);
    }
    recognizer.feed("{}", &mut out);
    assert!(matches!(out.as_slice(), [Piece::Call(_)]), "{out:?}");
}

#[test]
fn a_call_behind_a_broken_one_is_found() {
    let text = "<tool_call>{\"name\": \"list\", oh</tool_call>\n<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>";
    assert_eq!(shown(&[Hermes], [text]), "<tool_call>{\"name\": \"list\", oh</tool_call>\n⟨list {}⟩");
}

/// How much has come out after each piece.
#[test]
fn only_what_may_begin_a_call_waits() {
    let mut recognizer = Recognizer::new(&ALL.into_iter().collect(), Offered::of(&tools()));
    let mut said = |text: &str| {
        let mut out = Vec::new();
        recognizer.feed(text, &mut out);
        let text = |piece: Piece| match piece {
            Piece::Text(text) => text,
            Piece::Call(call) => format!("⟨{}⟩", call.name),
        };
        out.into_iter().map(text).collect::<String>()
    };
    for (piece, expected) in [
        ("Hello ", "Hello "),
        ("a <", "a "),
        ("b <too", "<b "),
        ("lbox> c", "<toolbox> c"),
        ("\n```json\n", "\n"),
        // Any other document shows at its first key.
        ("{\"na", ""),
        ("tive\": 1", "```json\n{\"native\": 1"),
        ("}\n```\n", "}\n```\n"),
        ("<tool_call> {\"name\": \"list\", ", ""),
        ("\"arguments\": {}} </tool_call", ""),
        ("> x", "⟨list⟩ x"),
    ] {
        assert_eq!(said(piece), expected, "{piece:?}");
    }
}

#[test]
fn what_is_too_long_is_text_and_is_not_looked_at_over_and_over() {
    let long = format!(
        "<tool_call>{{\"name\": \"read\", \"arguments\": {{\"path\": \"{}\"}}}}</tool_call>",
        "x".repeat(LONGEST)
    );
    assert_eq!(shown(&ALL, [long.as_str()]), long);
    let pieces = long.as_bytes().chunks(4096).map(|piece| std::str::from_utf8(piece).unwrap());
    assert_eq!(shown(&ALL, pieces), long);
    for (unit, close) in [("<tool_call>{\"name\":1 ", "}"), ("<function=a><parameter=b>", "")] {
        let nested = unit.repeat(100_000) + &close.repeat(100_000) + "x";
        assert_eq!(shown(&ALL, [nested.as_str()]), nested);
    }
}

const LONGEST: usize = 1 << 20;

fn request() -> Request {
    Request::new("m", [Message::user("go")]).with_tools(tools())
}

fn client(answer: Message) -> Client {
    let adapter = FakeAdapter::new("fake").message(answer.clone()).message(answer);
    Client::builder().provider(adapter).middleware(TextToolCalls::new(ALL)).build().unwrap()
}

const ANSWER: &str = "Look.\n\n<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}</tool_call>\n\
                      <tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>\n";

#[tokio::test]
async fn whole_and_streamed_answers_have_the_same_calls() {
    let client = client(Message::assistant(ANSWER));
    let whole = client.complete(request()).await.unwrap();
    let calls: Vec<_> = whole.tool_calls().map(|call| (call.id.as_str(), call.name.as_str())).collect();
    assert_eq!(calls, [("text_call_1", "read"), ("text_call_2", "list")]);
    assert_eq!((whole.text().as_str(), whole.message.content.len()), ("Look.\n\n", 3));
    assert_eq!(whole.finish_reason.reason, Finish::ToolCalls);
    let mut accumulator = StreamAccumulator::new("fake", "m");
    let mut last = None;
    let mut events = client.stream(request()).await.unwrap();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        accumulator.process(&event);
        last = Some(event);
    }
    assert_eq!(accumulator.response().unwrap().message, whole.message);
    let Some(StreamEvent::Finish { finish_reason, response, .. }) = last else { panic!("{last:?}") };
    assert_eq!((finish_reason.reason, &response.message), (Finish::ToolCalls, &whole.message));
}

#[tokio::test]
async fn ids_are_those_that_the_conversation_has_free() {
    let before = ToolCall::from_raw("text_call_7", "list", "{}");
    let mut request = request();
    request.messages.push(Message::new(Role::Assistant, vec![before.into()]).into());
    request.messages.push(Message::tool_result("text_call_7", "", false).into());
    let answer = client(Message::assistant(ANSWER)).complete(request).await.unwrap();
    let ids: Vec<_> = answer.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["text_call_8", "text_call_9"]);
}

#[tokio::test]
async fn without_tools_or_where_none_may_be_called_nothing_is_read() {
    let answer = Message::assistant(ANSWER);
    let mut none = request();
    none.tools = ToolList::default();
    assert_eq!(client(answer.clone()).complete(none).await.unwrap().text(), ANSWER);
    let forbidden = request().with_tool_choice(ToolChoice::None);
    assert_eq!(client(answer).complete(forbidden).await.unwrap().text(), ANSWER);
}

#[tokio::test]
async fn an_answer_that_was_cut_off_stays_that() {
    let adapter = FakeAdapter::new("fake").finished(Message::assistant(ANSWER), Finish::Length);
    let layer = TextToolCalls::new([Hermes]);
    let client = Client::builder().provider(adapter).middleware(layer).build().unwrap();
    assert_eq!(client.complete(request()).await.unwrap().finish_reason.reason, Finish::Length);
}

#[tokio::test]
async fn what_was_held_back_is_said_when_the_stream_breaks() {
    let error = Error::new(ErrorKind::Network, "gone");
    let adapter = FakeAdapter::new("fake").cut("Hm <tool_call>{\"name\"", error);
    let layer = TextToolCalls::new([Hermes]);
    let client = Client::builder().provider(adapter).middleware(layer).build().unwrap();
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

/// This takes minutes where what waits is looked at with every piece.
#[tokio::test]
async fn white_space_before_a_text_is_looked_at_once() {
    let delta = |delta: &str| StreamEvent::TextDelta { text_id: "t".into(), delta: delta.into() };
    let blanks = 300_000;
    let events = std::iter::once(StreamEvent::TextStart { text_id: "t".into() })
        .chain((0..blanks).map(|_| delta(" ")))
        .chain([delta("x")]);
    let events = futures_util::stream::iter(events.map(Ok).collect::<Vec<_>>());
    let reader = Reader { forms: [Hermes].into(), offered: Offered::of(&tools()), next: 1 };
    let said: Vec<_> = stream::read(Box::pin(events), reader).collect().await;
    let [Ok(StreamEvent::TextStart { .. }), Ok(StreamEvent::TextDelta { delta, .. })] = said.as_slice()
    else {
        panic!("{} events", said.len())
    };
    assert_eq!(delta.len(), blanks + 1);
}

/// Its end marker is missing because the answer broke off, not because a server took it away.
#[tokio::test]
async fn a_call_whose_end_did_not_come_is_text_when_the_stream_breaks() {
    let written = "<tool_call>{\"name\":\"list\",\"arguments\":{}}";
    let adapter = FakeAdapter::new("fake").cut(written, Error::new(ErrorKind::Network, "gone"));
    let layer = TextToolCalls::new([Hermes]);
    let client = Client::builder().provider(adapter).middleware(layer).build().unwrap();
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

/// A stream that has ended is not asked again, even if something was still to be said.
#[tokio::test]
async fn a_stream_that_has_ended_is_left_alone() {
    let start = StreamEvent::TextStart { text_id: "t".into() };
    let delta = StreamEvent::TextDelta { text_id: "t".into(), delta: "a <tool_call>".into() };
    let mut given = [start, delta].into_iter();
    let mut has_ended = false;
    let events = futures_util::stream::poll_fn(move |_| {
        assert!(!std::mem::replace(&mut has_ended, given.len() == 0), "it has ended");
        std::task::Poll::Ready(given.next().map(Ok))
    });
    let reader = Reader { forms: [Hermes].into(), offered: Offered::of(&tools()), next: 1 };
    let said: Vec<_> = stream::read(Box::pin(events), reader).collect().await;
    assert_eq!(said.len(), 3, "{said:?}");
}

#[test]
fn forms_are_named_in_data() {
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
    fn the_cut_of_the_pieces_changes_nothing(
        fragments in prop::collection::vec(fragment(), 1..5),
        cuts in prop::collection::vec(1usize..9, 1..20),
    ) {
        let text = fragments.concat();
        let mut rest: Vec<&str> = letters(&text).collect();
        let mut pieces = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break }
            let more = rest.split_off((*cut).min(rest.len()));
            pieces.push(rest.concat());
            rest = more;
        }
        prop_assert_eq!(shown(&ALL, pieces.iter().map(String::as_str)), shown(&ALL, [text.as_str()]));
    }

    #[test]
    fn without_a_known_tool_every_character_stays(fragments in prop::collection::vec(fragment(), 1..5)) {
        let text = fragments.concat();
        let mut recognizer = Recognizer::new(&ALL.into_iter().collect(), Offered::default());
        let mut out = Vec::new();
        recognizer.feed(&text, &mut out);
        recognizer.finish(&mut out);
        let said: String = out.into_iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Call(call) => panic!("{call:?}"),
        }).collect();
        prop_assert_eq!(said, text);
    }
}
