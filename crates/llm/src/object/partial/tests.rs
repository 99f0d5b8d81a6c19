use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Whether `part` is what has come of `whole` so far.
fn is_prefix(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (Value::Array(part), Value::Array(whole)) => {
            let Some((last, before)) = part.split_last() else { return true };
            whole.starts_with(before) && whole.get(before.len()).is_some_and(|whole| is_prefix(last, whole))
        }
        (Value::Object(part), Value::Object(whole)) => {
            let unfinished = part.iter().filter(|(key, value)| whole.get(*key) != Some(value)).count();
            let known =
                part.iter().all(|(key, value)| whole.get(key).is_some_and(|whole| is_prefix(value, whole)));
            known && unfinished <= 1
        }
        _ => part == whole,
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\"\\\\/\u{8}\n\u{1F600}é]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The text with every character outside ASCII, and every other letter, as an escape.
fn escaped(text: &str) -> String {
    let mut within = false;
    let mut after_backslash = false;
    let mut escaped = String::new();
    for (index, c) in text.chars().enumerate() {
        let plain = c != '"' && c != '\\' && !after_backslash;
        if within && plain && (!c.is_ascii() || index % 2 == 0) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
        within ^= c == '"' && !after_backslash;
        after_backslash = c == '\\' && !after_backslash;
    }
    escaped
}

proptest! {
    #[test]
    fn every_prefix_of_a_text_gives_a_prefix_of_its_value(value in json_value(), pretty: bool, escapes: bool) {
        // A number at the root ends only with what follows it.
        let mut text = match pretty {
            true => serde_json::to_string_pretty(&value).unwrap(),
            false => value.to_string(),
        } + " ";
        if escapes {
            text = escaped(&text);
            prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &value);
        }
        let mut partial = PartialJson::new();
        let mut before: Option<Value> = None;
        for c in text.chars() {
            let grown = partial.push(c.encode_utf8(&mut [0; 4]));
            prop_assert_eq!(grown, before.as_ref() != partial.value(), "{:?}", partial);
            if let Some(now) = partial.value() {
                prop_assert!(is_prefix(now, &value), "{now} of {value}");
                prop_assert!(before.as_ref().is_none_or(|before| is_prefix(before, now)), "it only grows");
            }
            before = partial.value().cloned();
        }
        prop_assert_eq!(partial.value(), Some(&value));
        prop_assert!(partial.is_complete());
    }

    #[test]
    fn it_does_not_matter_where_the_pieces_are_cut(value in json_value(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let text = format!("[{value}]");
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).filter(|place| text.is_char_boundary(*place)).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let mut partial = PartialJson::new();
        for pair in places.windows(2) {
            partial.push(&text[pair[0]..pair[1]]);
            let mut at_once = PartialJson::new();
            at_once.push(&text[..pair[1]]);
            prop_assert_eq!(partial.value(), at_once.value());
        }
        prop_assert_eq!(partial.value(), Some(&Value::from(vec![value])));
    }

    #[test]
    fn no_text_panics_and_what_a_parser_takes_is_taken(text in r#"[\[\]{}",:0-9a-u\\. \n-]{0,40}"#) {
        let mut partial = PartialJson::new();
        partial.push(&text);
        partial.push(" ");
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(partial.value(), Some(&value));
        }
    }
}

#[test]
fn a_value_is_shown_as_far_as_it_is_certain() {
    let rows = [
        ("", None),
        (" \n", None),
        ("{", Some(json!({}))),
        (r#"{"na"#, Some(json!({}))),
        (r#"{"name""#, Some(json!({}))),
        (r#"{"name":"#, Some(json!({}))),
        (r#"{"name": ""#, Some(json!({"name": ""}))),
        (r#"{"name": "Al"#, Some(json!({"name": "Al"}))),
        (r#"{"name": "Al\"#, Some(json!({"name": "Al"}))),
        (r#"{"name": "Al\u00e"#, Some(json!({"name": "Al"}))),
        (r#"{"name": "\ud83d"#, Some(json!({"name": ""}))),
        (r#"{"name": "\ud83d\ude00"#, Some(json!({"name": "😀"}))),
        (r#"{"age": 3"#, Some(json!({}))),
        (r#"{"age": 30,"#, Some(json!({"age": 30}))),
        (r#"{"ok": tru"#, Some(json!({}))),
        (r#"{"ok": true}"#, Some(json!({"ok": true}))),
        (r#"{"a": [1, [2, {"b": "#, Some(json!({"a": [1, [2, {}]]}))),
        // What cannot be JSON changes nothing any more.
        (r#"{"a": 1} and more {"b": 2}"#, Some(json!({"a": 1}))),
        (r#"{"a": 1, ]"#, Some(json!({"a": 1}))),
        (r#"{"a": "x\q y"#, Some(json!({"a": "x"}))),
        ("{\"a\": \"x\ny", Some(json!({"a": "x"}))),
        (r#"[1, 0x2, 3"#, Some(json!([1]))),
        ("Here it is: {}", None),
    ];
    for (text, expected) in rows {
        let mut partial = PartialJson::new();
        partial.push(text);
        assert_eq!(partial.value(), expected.as_ref(), "{text}");
    }
}

#[test]
fn depth_is_bounded_as_that_of_whole_texts() {
    let mut partial = PartialJson::new();
    partial.push(&"[".repeat(1_000_000));
    let mut depth = 0;
    let mut node = partial.value();
    while let Some(Value::Array(elements)) = node {
        depth += 1;
        node = elements.last();
    }
    assert_eq!(depth, MAX_DEPTH);
    assert!(!partial.is_complete());
}

#[test]
fn the_length_of_a_key_is_bounded() {
    for (length, expected) in [(MAX_KEY, json!([1, 2])), (MAX_KEY + 1, Value::Null)] {
        let key = "k".repeat(length);
        for escape in ["", "\\u006b"] {
            let shown = &key[..length - usize::from(!escape.is_empty())];
            let mut partial = PartialJson::new();
            partial.push(&format!("{{\"{shown}{escape}\": [1, 2]}}"));
            assert_eq!(partial.value().unwrap().get(&key).cloned().unwrap_or_default(), expected, "{escape}");
        }
    }
}

#[test]
fn the_cost_grows_with_the_length_alone() {
    let text = format!(
        "{{\"text\": \"{}\", \"list\": [{}1]}}",
        "four".repeat(500_000),
        "{\"a\": [1, 2]}, ".repeat(100_000)
    );
    let begun = Instant::now();
    let mut partial = PartialJson::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.len().min(4));
        partial.push(piece);
        rest = more;
    }
    assert!(partial.is_complete());
    // Reading all of it anew for each of the 900,000 pieces would take hours.
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}
