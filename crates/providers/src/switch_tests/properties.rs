//! Whatever a conversation holds and whoever wrote it, every dialect takes it, and nothing of it is lost or leaks.

use pintle_llm::{HistoryItem, Message, MessageList, ReasoningEffort, Request, Role, ToolCall};
use pintle_testkit::{Dialect as Rules, check};
use proptest::prelude::*;
use serde_json::Value;

use super::story::{Sealed, Step, Story, steps, without_cut_calls};
use super::wire::{SentCall, calls_and_results, objects, raw_items};
use super::{ANTHROPIC, COMPATIBLE, GEMINI, OPENAI, Target, tools};
use crate::dialect::HttpRequest;

/// The models that differ in what they take of a history.
const MODELS: [Target; 7] = [
    OPENAI,
    Target { model: "gpt-4.1", ..OPENAI },
    ANTHROPIC,
    Target { model: "claude-sonnet-4-5", ..ANTHROPIC },
    GEMINI,
    Target { model: "gemini-2.5-pro", ..GEMINI },
    COMPATIBLE,
];

fn request(target: &Target, messages: &[HistoryItem], effort: bool) -> Request {
    let request = Request::new(target.model, messages.to_vec()).with_tools(tools()).with_max_tokens(32_000);
    if effort { request.with_reasoning_effort(ReasoningEffort::High) } else { request }
}

/// What the provider would say against the request, as the independent checker has it.
fn violations(target: &Target, sent: &HttpRequest) -> Vec<String> {
    let version = if sent.path.starts_with("/v1") { "" } else { "/v1" };
    let mut headers: Vec<(String, String)> =
        sent.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    headers.push(("content-type".into(), "application/json".into()));
    let found =
        check(target.rules, "POST", &format!("{version}{}", sent.path), &headers, &sent.body.to_vec());
    found.iter().map(ToString::to_string).collect()
}

/// What must hold of a body beside the rules of its dialect.
fn judge(target: &Target, story: &Story, text: &str) -> Result<(), TestCaseError> {
    let body: Value = serde_json::from_str(text).unwrap();
    calls_are_answered(target, story, &body)?;
    texts_are_kept(story, text)?;
    seals_go_home(target, story, &body, text)
}

/// Every call and every result is there once, in order, and under one id, whatever id it had.
fn calls_are_answered(target: &Target, story: &Story, body: &Value) -> Result<(), TestCaseError> {
    let (calls, results) = calls_and_results(target.rules, body);
    prop_assert_eq!(calls.len(), story.calls.len());
    prop_assert_eq!(results.len(), story.calls.len());
    for ((sent, (id, text)), told) in calls.iter().zip(&results).zip(&story.calls) {
        prop_assert_eq!(&sent.id, id);
        prop_assert!(text.contains(&told.result), "{} is not in {}", told.result, text);
        prop_assert!(is_said(sent, &told.arguments), "{:?} is not {}", sent, told.arguments);
        let portable = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let legal = (1..=64).contains(&told.name.len())
            && told.name.chars().all(portable)
            && !told.name.starts_with(|first: char| first.is_ascii_digit());
        prop_assert!(!legal || sent.name == told.name, "{:?} is not {}", sent, told.name);
    }
    Ok(())
}

/// Arguments that are an object are sent as it, anything else as text or as the text of one argument.
fn is_said(sent: &SentCall, arguments: &Value) -> bool {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let inner = sent.arguments.get("input").unwrap_or(&sent.arguments);
    sent.arguments == *arguments || *inner == *arguments || text(inner) == text(arguments) || {
        // Text that is JSON, though no object, was parsed when the body was read.
        text(arguments).is_some_and(|text| serde_json::from_str::<Value>(&text).ok().as_ref() == Some(inner))
    }
}

/// The texts of the conversation stand there in order, the instructions anywhere.
fn texts_are_kept(story: &Story, text: &str) -> Result<(), TestCaseError> {
    for mark in &story.instructed {
        prop_assert!(text.contains(mark), "the instruction {} is missing", mark);
    }
    let places: Option<Vec<usize>> = story.said.iter().map(|mark| text.find(mark)).collect();
    let Some(places) = places else {
        return Err(TestCaseError::fail("a text is missing"));
    };
    prop_assert!(places.is_sorted(), "the texts are out of order: {:?}", places);
    Ok(())
}

/// What a model sealed goes back to it as it streamed, and to no other.
fn seals_go_home(target: &Target, story: &Story, body: &Value, text: &str) -> Result<(), TestCaseError> {
    for sealed in &story.sealed {
        let count = text.matches(&sealed.mark).count();
        if sealed.writer != target.origin() {
            prop_assert_eq!(count, 0, "{:?} leaks", sealed);
        } else if count == 0 {
            prop_assert!(!sealed.certain, "{:?} is lost", sealed);
        } else {
            prop_assert_eq!(count, 1, "{:?} is there more than once", sealed);
            prop_assert!(objects(body).into_iter().any(|found| is_verbatim(sealed, found)), "{:?}", sealed);
        }
    }
    for (mark, writer) in &story.thought {
        prop_assert!(*writer == target.origin() || !text.contains(mark), "the thought {} leaks", mark);
    }
    Ok(())
}

fn is_verbatim(sealed: &Sealed, found: &Value) -> bool {
    let members = sealed.wire.as_object().into_iter().flatten();
    members.into_iter().all(|(name, value)| found.get(name) == Some(value))
}

/// A request that goes on begins with the items of the one before, byte for byte.
fn items_stay(
    target: &Target,
    story: &Story,
    items: &[HistoryItem],
    effort: bool,
) -> Result<(), TestCaseError> {
    let mut before: Vec<String> = Vec::new();
    for end in &story.ends {
        let sent = target.send(&request(target, &items[..*end], effort));
        let now = raw_items(target.rules, &sent.body.to_vec());
        prop_assert!(now.starts_with(&before), "after {} messages: {:#?} became {:#?}", end, before, now);
        before = now;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_history_is_legal_in_every_dialect(steps in steps(), effort in any::<bool>()) {
        let story = Story::new(&steps);
        // The items are shared by all, as those of a session that switches to and fro.
        let items: Vec<HistoryItem> = story.messages.iter().cloned().map(Into::into).collect();
        let sent = MODELS.map(|target| target.send(&request(&target, &items, effort)));
        for (target, sent) in MODELS.iter().zip(&sent) {
            let text = String::from_utf8(sent.body.to_vec()).unwrap();
            let told = |error: &str| format!("{error}; to {} {}: {text}", target.provider, target.model);
            prop_assert_eq!(violations(target, sent), Vec::<String>::new(), "{}", told(""));
            judge(target, &story, &text).map_err(|error| TestCaseError::fail(told(&error.to_string())))?;
            let again = target.send(&request(target, &items, effort));
            prop_assert!(again.body.to_vec() == sent.body.to_vec(), "{} after all others", target.provider);
        }
    }

    #[test]
    fn growing_histories_keep_the_bytes_of_their_items(steps in steps(), effort in any::<bool>()) {
        // A call on the provider's side may wait beside one of ours, and is dropped if no result comes with the next
        // answer: that moves what follows, and cannot be helped.
        let steps: Vec<Step> = steps.into_iter().map(without_cut_calls).collect();
        let story = Story::new(&steps);
        let items: Vec<HistoryItem> = story.messages.iter().cloned().map(Into::into).collect();
        for target in &MODELS {
            items_stay(target, &story, &items, effort)?;
        }
    }

    #[test]
    fn growing_lists_encode_like_fresh_ones(
        steps in steps(),
        effort in any::<bool>(),
        asked in proptest::sample::subsequence(MODELS.to_vec(), 1..=3),
    ) {
        let story = Story::new(&steps);
        let items: Vec<HistoryItem> = story.messages.iter().cloned().map(Into::into).collect();
        let mut grown = MessageList::default();
        for end in &story.ends {
            grown.extend(items[grown.len()..*end].iter().cloned());
            for target in &asked {
                let anew = request(target, &items[..*end], effort);
                let mut again = anew.clone();
                again.messages = grown.clone();
                let [anew, again] = [anew, again].map(|request| target.send(&request).body.to_vec());
                prop_assert!(again == anew, "{} after {} messages", target.provider, end);
            }
        }
    }
}

#[test]
fn results_without_call_are_refused_in_grown_lists() {
    let id = |text: &str| Message::tool_result(text, "done", false);
    for target in [OPENAI, COMPATIBLE] {
        let call = ToolCall::from_raw("a", "read_file", "{}");
        let messages = [Message::user("hello"), Message::new(Role::Assistant, vec![call.into()]), id("a")];
        let mut request = Request::new(target.model, messages);
        target.send(&request);
        let sent = request.clone();
        request.messages.push(id("b").into());
        let mut anew = request.clone();
        anew.messages = request.messages.to_vec().into();
        for request in [&request, &anew] {
            let error = (target.encode)(request).unwrap_err();
            assert_eq!(error.message(), "the result of call `b` has no call before it");
        }
        request.messages.pop();
        request.messages.push(id("a").into());
        assert!(request.in_order().is_err(), "a second result");
        target.send(&sent);
    }
}

#[test]
fn checker_reports_violations_of_each_dialect() {
    // The checker is asked in earnest: another dialect's rules refuse every body.
    let items = [HistoryItem::from(pintle_llm::Message::user("hello"))];
    for target in &MODELS {
        let sent = target.send(&request(target, &items, false));
        assert_eq!(violations(target, &sent), [""; 0]);
        for rules in Rules::ALL.into_iter().filter(|rules| *rules != target.rules) {
            let found = violations(&Target { rules, ..*target }, &sent);
            assert!(!found.is_empty(), "{} passes as {rules}", target.provider);
        }
    }
}

/// A way of spoiling a body that stays legal for its dialect.
type Spoil = fn(&str, &Story) -> String;

#[test]
fn harness_notices_lost_and_leaked_content() {
    let story = Story::new(&super::story::one_of_each());
    let items: Vec<HistoryItem> = story.messages.iter().cloned().map(Into::into).collect();
    let swap = |text: &str, one: &str, two: &str| text.replace(one, "#").replace(two, one).replace('#', two);
    let spoils: [(&str, Spoil); 7] = [
        ("a text is lost", |text, story| text.replace(&story.said[0], "")),
        ("texts change places", |text, story| {
            text.replace(&story.said[0], "#")
                .replace(&story.said[1], &story.said[0])
                .replace('#', &story.said[1])
        }),
        ("an instruction is lost", |text, story| text.replace(&story.instructed[0], "")),
        ("results change places", |text, story| {
            let [one, two] = [0, 1].map(|call| story.calls[call].result.as_str());
            text.replace(one, "#").replace(two, one).replace('#', two)
        }),
        ("a call has another name", |text, _| text.replace(r#""name":"read_file""#, r#""name":"list""#)),
        ("foreign reasoning leaks", |text, story| text.replacen(&story.said[0], &story.thought[0].0, 1)),
        ("a foreign seal leaks", |text, story| {
            let foreign = story.sealed.iter().find(|sealed| !text.contains(&sealed.mark)).unwrap();
            format!("{}{}", text, " ").replacen(
                &story.said[0],
                &format!("{}{}", story.said[0], foreign.mark),
                1,
            )
        }),
    ];
    for target in &MODELS {
        let sent = target.send(&request(target, &items, true));
        let text = String::from_utf8(sent.body.to_vec()).unwrap();
        judge(target, &story, &text).unwrap();
        for (what, spoil) in &spoils {
            let found = judge(target, &story, &spoil(&text, &story));
            assert!(found.is_err(), "{what}, and nobody sees it: {} {}", target.provider, target.model);
        }
        // What the model itself has sealed must come back, and just as it was.
        let own = story.sealed.iter().filter(|sealed| sealed.writer == target.origin());
        for sealed in own {
            for spoiled in [text.replace(&sealed.mark, "x"), swap(&text, &sealed.mark, &story.said[0])] {
                assert!(judge(target, &story, &spoiled).is_err(), "{sealed:?} is not missed");
            }
        }
    }
}
