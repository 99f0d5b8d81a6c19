//! Properties of all conversations in all dialects: requests are legal, and nothing is lost or leaks.

use pintle_llm::{HistoryItem, Message, MessageList, ReasoningEffort, Request, Role, ToolCall};
use pintle_test_conditions::cases;
use pintle_testkit::{Dialect as Rules, check};
use proptest::prelude::*;
use serde_json::Value;

use super::conversation::{Conversation, SealedValue, Step, steps, without_unanswered_calls};
use super::wire::{SentCall, calls_and_results, objects, raw_items};
use super::{ANTHROPIC, COMPATIBLE, GEMINI, OPENAI, Target, tools};
use crate::dialect::HttpRequest;

/// Models with different rules for histories.
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

/// Returns the violations that the independent checker reports for a request.
fn violations(target: &Target, sent: &HttpRequest) -> Vec<String> {
    let version = if sent.path.starts_with("/v1") { "" } else { "/v1" };
    let mut headers: Vec<(String, String)> =
        sent.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    headers.push(("content-type".into(), "application/json".into()));
    let found =
        check(target.rules, "POST", &format!("{version}{}", sent.path), &headers, &sent.body.to_vec());
    found.iter().map(ToString::to_string).collect()
}

/// Checks the properties of a body other than the rules of its dialect.
fn check_body(target: &Target, conversation: &Conversation, text: &str) -> Result<(), TestCaseError> {
    let body: Value = serde_json::from_str(text).unwrap();
    check_calls(target, conversation, &body)?;
    check_texts(conversation, text)?;
    check_sealed(target, conversation, &body, text)
}

/// Checks that every call and its result occur once, in order, and with one id.
fn check_calls(target: &Target, conversation: &Conversation, body: &Value) -> Result<(), TestCaseError> {
    let (calls, results) = calls_and_results(target.rules, body);
    prop_assert_eq!(calls.len(), conversation.calls.len());
    prop_assert_eq!(results.len(), conversation.calls.len());
    for ((sent, (id, text)), expected) in calls.iter().zip(&results).zip(&conversation.calls) {
        prop_assert_eq!(&sent.id, id);
        prop_assert!(text.contains(&expected.result), "{} is not in {}", expected.result, text);
        prop_assert!(has_arguments(sent, &expected.arguments), "{:?} is not {}", sent, expected.arguments);
        let portable = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let legal = (1..=64).contains(&expected.name.len())
            && expected.name.chars().all(portable)
            && !expected.name.starts_with(|first: char| first.is_ascii_digit());
        prop_assert!(!legal || sent.name == expected.name, "{:?} is not {}", sent, expected.name);
    }
    Ok(())
}

/// Returns whether a call has these arguments: an object verbatim, anything else as text or in the argument `input`.
fn has_arguments(sent: &SentCall, arguments: &Value) -> bool {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let inner = sent.arguments.get("input").unwrap_or(&sent.arguments);
    sent.arguments == *arguments || *inner == *arguments || text(inner) == text(arguments) || {
        // Text that is JSON was parsed when the body was read.
        text(arguments).is_some_and(|text| serde_json::from_str::<Value>(&text).ok().as_ref() == Some(inner))
    }
}

/// Checks that all texts occur in order, and all instructions at any position.
fn check_texts(conversation: &Conversation, text: &str) -> Result<(), TestCaseError> {
    for marker in &conversation.instructions {
        prop_assert!(text.contains(marker), "the instruction {} is missing", marker);
    }
    let positions: Option<Vec<usize>> = conversation.texts.iter().map(|marker| text.find(marker)).collect();
    let Some(positions) = positions else {
        return Err(TestCaseError::fail("a text is missing"));
    };
    prop_assert!(positions.is_sorted(), "the texts are out of order: {:?}", positions);
    Ok(())
}

/// Checks that opaque values and reasoning are returned verbatim to their origin, and to no other model.
fn check_sealed(
    target: &Target,
    conversation: &Conversation,
    body: &Value,
    text: &str,
) -> Result<(), TestCaseError> {
    for sealed in &conversation.sealed {
        let count = text.matches(&sealed.marker).count();
        if sealed.origin != target.origin() {
            prop_assert_eq!(count, 0, "{:?} leaks", sealed);
        } else if count == 0 {
            prop_assert!(!sealed.required, "{:?} is lost", sealed);
        } else {
            prop_assert_eq!(count, 1, "{:?} occurs more than once", sealed);
            prop_assert!(objects(body).into_iter().any(|found| is_verbatim(sealed, found)), "{:?}", sealed);
        }
    }
    for (marker, origin) in &conversation.reasoning {
        prop_assert!(*origin == target.origin() || !text.contains(marker), "the reasoning {} leaks", marker);
    }
    Ok(())
}

fn is_verbatim(sealed: &SealedValue, found: &Value) -> bool {
    let members = sealed.wire.as_object().into_iter().flatten();
    members.into_iter().all(|(name, value)| found.get(name) == Some(value))
}

/// Checks that each request starts with the bytes of the items of the previous one.
fn check_growth(
    target: &Target,
    conversation: &Conversation,
    items: &[HistoryItem],
    effort: bool,
) -> Result<(), TestCaseError> {
    let mut before: Vec<String> = Vec::new();
    for end in &conversation.ends {
        let sent = target.send(&request(target, &items[..*end], effort));
        let now = raw_items(target.rules, &sent.body.to_vec());
        prop_assert!(now.starts_with(&before), "after {} messages: {:#?} became {:#?}", end, before, now);
        before = now;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(64, 256)))]

    #[test]
    fn every_history_is_legal_in_every_dialect(steps in steps(), effort in any::<bool>()) {
        let conversation = Conversation::new(&steps);
        // All targets share the items, as in a session that switches back and forth.
        let items: Vec<HistoryItem> = conversation.messages.iter().cloned().map(Into::into).collect();
        let sent = MODELS.map(|target| target.send(&request(&target, &items, effort)));
        for (target, sent) in MODELS.iter().zip(&sent) {
            let text = String::from_utf8(sent.body.to_vec()).unwrap();
            let context = |error: &str| format!("{error}; to {} {}: {text}", target.provider, target.model);
            prop_assert_eq!(violations(target, sent), Vec::<String>::new(), "{}", context(""));
            check_body(target, &conversation, &text).map_err(|error| TestCaseError::fail(context(&error.to_string())))?;
            let again = target.send(&request(target, &items, effort));
            prop_assert!(again.body.to_vec() == sent.body.to_vec(), "{} after all others", target.provider);
        }
    }

    #[test]
    fn growing_histories_keep_the_bytes_of_their_items(steps in steps(), effort in any::<bool>()) {
        // An unanswered server tool call beside a client call is dropped with the next response, which moves everything
        // after it.
        let steps: Vec<Step> = steps.into_iter().map(without_unanswered_calls).collect();
        let conversation = Conversation::new(&steps);
        let items: Vec<HistoryItem> = conversation.messages.iter().cloned().map(Into::into).collect();
        for target in &MODELS {
            check_growth(target, &conversation, &items, effort)?;
        }
    }

    #[test]
    fn growing_lists_encode_like_fresh_ones(
        steps in steps(),
        effort in any::<bool>(),
        targets in proptest::sample::subsequence(MODELS.to_vec(), 1..=3),
    ) {
        let conversation = Conversation::new(&steps);
        let items: Vec<HistoryItem> = conversation.messages.iter().cloned().map(Into::into).collect();
        let mut grown = MessageList::default();
        for end in &conversation.ends {
            grown.extend(items[grown.len()..*end].iter().cloned());
            for target in &targets {
                let fresh = request(target, &items[..*end], effort);
                let mut memoised = fresh.clone();
                memoised.messages = grown.clone();
                let [fresh, memoised] = [fresh, memoised].map(|request| target.send(&request).body.to_vec());
                prop_assert!(memoised == fresh, "{} after {} messages", target.provider, end);
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
        let mut fresh = request.clone();
        fresh.messages = request.messages.to_vec().into();
        for request in [&request, &fresh] {
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
    // The checker is effective: the rules of other dialects reject every body.
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

/// Mutation of a body that stays legal for its dialect.
type Mutation = fn(&str, &Conversation) -> String;

#[test]
fn harness_notices_lost_and_leaked_content() {
    let conversation = Conversation::new(&super::conversation::one_of_each());
    let items: Vec<HistoryItem> = conversation.messages.iter().cloned().map(Into::into).collect();
    let swap = |text: &str, one: &str, two: &str| text.replace(one, "#").replace(two, one).replace('#', two);
    let mutations: [(&str, Mutation); 7] = [
        ("a text is lost", |text, conversation| text.replace(&conversation.texts[0], "")),
        ("texts are swapped", |text, conversation| {
            text.replace(&conversation.texts[0], "#")
                .replace(&conversation.texts[1], &conversation.texts[0])
                .replace('#', &conversation.texts[1])
        }),
        ("an instruction is lost", |text, conversation| text.replace(&conversation.instructions[0], "")),
        ("results are swapped", |text, conversation| {
            let [one, two] = [0, 1].map(|call| conversation.calls[call].result.as_str());
            text.replace(one, "#").replace(two, one).replace('#', two)
        }),
        ("a call has another name", |text, _| text.replace(r#""name":"read_file""#, r#""name":"list""#)),
        ("foreign reasoning leaks", |text, conversation| {
            text.replacen(&conversation.texts[0], &conversation.reasoning[0].0, 1)
        }),
        ("a foreign seal leaks", |text, conversation| {
            let foreign = conversation.sealed.iter().find(|sealed| !text.contains(&sealed.marker)).unwrap();
            format!("{}{}", text, " ").replacen(
                &conversation.texts[0],
                &format!("{}{}", conversation.texts[0], foreign.marker),
                1,
            )
        }),
    ];
    for target in &MODELS {
        let sent = target.send(&request(target, &items, true));
        let text = String::from_utf8(sent.body.to_vec()).unwrap();
        check_body(target, &conversation, &text).unwrap();
        for (name, mutate) in &mutations {
            let found = check_body(target, &conversation, &mutate(&text, &conversation));
            assert!(found.is_err(), "not detected: {name}: {} {}", target.provider, target.model);
        }
        // The model's own opaque values must be returned verbatim.
        let own = conversation.sealed.iter().filter(|sealed| sealed.origin == target.origin());
        for sealed in own {
            for mutated in
                [text.replace(&sealed.marker, "x"), swap(&text, &sealed.marker, &conversation.texts[0])]
            {
                assert!(check_body(target, &conversation, &mutated).is_err(), "not detected: {sealed:?}");
            }
        }
    }
}
