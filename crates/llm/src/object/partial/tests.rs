use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Returns `true` if `part` is a prefix of `whole`.
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

/// Escapes every non-ASCII character and every second character in strings.
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
    fn every_prefix_of_a_text_parses_to_a_prefix_of_its_value(value in json_value(), pretty: bool, escapes: bool) {
        // A number at the root is complete only with the next character.
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
                prop_assert!(before.as_ref().is_none_or(|before| is_prefix(before, now)), "the value only grows");
            }
            before = partial.value().cloned();
        }
        prop_assert_eq!(partial.value(), Some(&value));
        prop_assert!(partial.is_complete());
    }

    #[test]
    fn chunk_boundaries_change_nothing(value in json_value(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let text = format!("[{value}]");
        let mut offsets: Vec<usize> =
            cuts.iter().map(|cut| cut.index(text.len())).filter(|offset| text.is_char_boundary(*offset)).collect();
        offsets.extend([0, text.len()]);
        offsets.sort_unstable();
        let mut partial = PartialJson::new();
        for pair in offsets.windows(2) {
            partial.push(&text[pair[0]..pair[1]]);
            let mut at_once = PartialJson::new();
            at_once.push(&text[..pair[1]]);
            prop_assert_eq!(partial.value(), at_once.value());
        }
        prop_assert_eq!(partial.value(), Some(&Value::from(vec![value])));
    }

    #[test]
    fn no_text_panics_and_valid_json_is_parsed(text in r#"[\[\]{}",:0-9a-u\\. \n-]{0,40}"#) {
        let mut partial = PartialJson::new();
        partial.push(&text);
        partial.push(" ");
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(partial.value(), Some(&value));
        }
    }
}

#[test]
fn incomplete_values_are_returned_as_prefixes() {
    let cases = [
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
        // Invalid JSON ends the value.
        (r#"{"a": 1} and more {"b": 2}"#, Some(json!({"a": 1}))),
        (r#"{"a": 1, ]"#, Some(json!({"a": 1}))),
        (r#"{"a": "x\q y"#, Some(json!({"a": "x"}))),
        ("{\"a\": \"x\ny", Some(json!({"a": "x"}))),
        (r#"[1, 0x2, 3"#, Some(json!([1]))),
        ("Here it is: {}", None),
    ];
    for (text, expected) in cases {
        let mut partial = PartialJson::new();
        partial.push(text);
        assert_eq!(partial.value(), expected.as_ref(), "{text}");
    }
}

#[test]
fn nesting_is_limited() {
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
fn key_length_is_limited() {
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
fn the_cost_is_linear() {
    let text = format!(
        "{{\"text\": \"{}\", \"list\": [{}1]}}",
        "four".repeat(500_000),
        "{\"a\": [1, 2]}, ".repeat(100_000)
    );
    let start = Instant::now();
    let mut partial = PartialJson::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (chunk, more) = rest.split_at(rest.len().min(4));
        partial.push(chunk);
        rest = more;
    }
    assert!(partial.is_complete());
    // Parsing the complete text for each of the 900,000 chunks would take hours.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}
