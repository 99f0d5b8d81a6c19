//! The JSON of a request: a provider's options merged in, the conversation last.

use pintle_llm::{Error, ErrorKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Writes `fields` in their order, then `items` as the list `list`.
///
/// The conversation stands last, so that the bytes of a longer conversation begin with those of a shorter one.
/// The items are written as they are: they were serialised when they were encoded.
pub(crate) fn write_body<'a>(
    fields: &Map<String, Value>,
    list: &str,
    items: impl IntoIterator<Item = &'a RawValue>,
) -> Vec<u8> {
    let mut out = Value::Object(fields.clone()).to_string().into_bytes();
    // Without the closing brace.
    out.pop();
    if !fields.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(Value::from(list).to_string().as_bytes());
    out.extend_from_slice(b":[");
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item.get().as_bytes());
    }
    out.extend_from_slice(b"]}");
    out
}

/// Merges a provider's own options into a request's fields: objects key by key, everything else replaces.
///
/// `handled` names the options that the adapter has acted on itself; they are left out.
///
/// # Errors
///
/// [`ErrorKind::Configuration`] if an option would replace the model, the conversation (`list`) or the choice
/// between stream and whole answer, which have fields of their own in a request.
pub(crate) fn merge_options(
    fields: &mut Map<String, Value>,
    provider: &str,
    options: &Map<String, Value>,
    handled: &[&str],
    list: &str,
) -> Result<(), Error> {
    for (key, value) in options {
        if handled.contains(&key.as_str()) {
            continue;
        }
        if ["model", "stream", list].contains(&key.as_str()) {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "provider_options.{provider}.{key} would replace a field that the request sets itself"
                ),
            )
            .with_provider(provider));
        }
        merge(fields.entry(key.clone()).or_insert(Value::Null), value);
    }
    Ok(())
}

/// Serialises one fragment of a request.
pub(crate) fn fragment(value: &Value) -> Box<RawValue> {
    // A value always serialises; `null` is what is left to say otherwise.
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn merge(target: &mut Value, new: &Value) {
    match (target, new) {
        (Value::Object(target), Value::Object(new)) => {
            for (key, value) in new {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, new) => *target = new.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_longer_conversation_begins_with_the_bytes_of_a_shorter_one() {
        let fields = object(json!({"model": "m", "tools": []}));
        let items: Vec<_> = ["a", "b"].iter().map(|text| fragment(&json!({"text": text}))).collect();
        let short = write_body(&fields, "input", items[..1].iter().map(AsRef::as_ref));
        let long = write_body(&fields, "input", items.iter().map(AsRef::as_ref));
        assert_eq!(
            String::from_utf8(long.clone()).unwrap(),
            r#"{"model":"m","tools":[],"input":[{"text":"a"},{"text":"b"}]}"#
        );
        assert!(long.starts_with(&short[..short.len() - 2]));
        assert_eq!(write_body(&Map::new(), "input", []), br#"{"input":[]}"#);
    }

    #[test]
    fn options_merge_deeply_and_guard_the_requests_own_fields() {
        let mut fields = object(json!({"reasoning": {"effort": "low"}, "store": false}));
        let options = object(json!({"reasoning": {"summary": "auto"}, "store": true, "mine": 1, "new": [1]}));
        merge_options(&mut fields, "openai", &options, &["mine"], "input").unwrap();
        assert_eq!(
            Value::Object(fields.clone()),
            json!({"reasoning": {"effort": "low", "summary": "auto"}, "store": true, "new": [1]})
        );
        for key in ["model", "stream", "input"] {
            let options = object(json!({key: "x"}));
            let error = merge_options(&mut fields, "openai", &options, &[], "input").unwrap_err();
            assert!(error.message().contains(&format!("provider_options.openai.{key}")), "{error}");
        }
    }
}
