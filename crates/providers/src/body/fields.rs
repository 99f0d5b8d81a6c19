//! Fields of a body that precede the conversation.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use pintle_llm::{Error, ErrorKind};
use serde_json::{Map, Value};

use super::Body;

/// Fields of a body by name. Some are values; others are already serialised.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    /// Serialised fields are `null` here and keep their position.
    values: Map<String, Value>,
    serialised: Vec<(&'static str, Bytes)>,
}

impl Fields {
    /// Sets a field to serialised JSON.
    pub(crate) fn set_serialised(&mut self, name: &'static str, json: Bytes) {
        self.values.insert(name.to_owned(), Value::Null);
        self.serialised.retain(|(known, _)| *known != name);
        self.serialised.push((name, json));
    }

    /// Writes the fields in order, then the start of the list `list`, whose elements the caller appends.
    ///
    /// The conversation is last, so that the bytes of a longer conversation begin with the bytes of a shorter one.
    pub(crate) fn into_body(self, list: &str) -> Body {
        let mut body = Body::default();
        body.write(b"{");
        for (name, value) in &self.values {
            let json = self.serialised.iter().find(|(known, _)| known == name).map(|(_, json)| json);
            write_name(&mut body, name);
            match json {
                Some(json) => body.share(json),
                None => body.write(value.to_string().as_bytes()),
            }
            body.write(b",");
        }
        write_name(&mut body, list);
        body.write(b"[");
        body
    }

    /// Returns a field as a mutable value, `null` if it was absent.
    fn value(&mut self, name: &str) -> &mut Value {
        let position = self.serialised.iter().position(|(known, _)| *known == name);
        let serialised = position.map(|position| self.serialised.swap_remove(position).1);
        let value = self.values.entry(name.to_owned()).or_insert(Value::Null);
        if let Some(json) = serialised {
            // It was serialised by this crate, so it parses.
            *value = serde_json::from_slice(&json).unwrap_or_default();
        }
        value
    }
}

fn write_name(body: &mut Body, name: &str) {
    body.write(Value::from(name).to_string().as_bytes());
    body.write(b":");
}

impl Deref for Fields {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

impl DerefMut for Fields {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.values
    }
}

/// Joins serialised elements with commas, between `open` and `close`.
pub(crate) fn joined<'a>(open: &str, elements: impl IntoIterator<Item = &'a Bytes>, close: &str) -> Bytes {
    let mut list = open.as_bytes().to_vec();
    for (index, element) in elements.into_iter().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        list.extend_from_slice(element);
    }
    list.extend_from_slice(close.as_bytes());
    list.into()
}

/// Merges provider options into the fields of a request: objects are merged by key, other values replace.
///
/// `handled` are the options that the adapter has applied itself; they are skipped.
///
/// # Errors
///
/// [`ErrorKind::Configuration`] if an option would replace the model, the conversation (`list`) or `stream`, which
/// requests set themselves.
pub(crate) fn merge_options(
    fields: &mut Fields,
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
        merge(fields.value(key), value);
    }
    Ok(())
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
    use crate::body::fragment;

    fn object(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    fn fields(values: Value) -> Fields {
        Fields { values: object(values), serialised: Vec::new() }
    }

    fn text(fields: Fields, items: &[Bytes]) -> String {
        let mut body = fields.into_body("input");
        body.share_all(items);
        body.write(b"]}");
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn serialised_fields_keep_their_position() {
        let mut found = fields(json!({"model": "m", "zone": 1}));
        found.set_serialised("tools", joined("[", &[fragment(&json!({"a": 1})), fragment(&json!("b"))], "]"));
        assert_eq!(text(found, &[]), r#"{"model":"m","tools":[{"a":1},"b"],"zone":1,"input":[]}"#);
        assert_eq!(text(Fields::default(), &[]), r#"{"input":[]}"#);
    }

    #[test]
    fn options_merge_deeply_except_reserved_fields() {
        let mut fields = fields(json!({"reasoning": {"effort": "low"}, "store": false}));
        let options = object(json!({"reasoning": {"summary": "auto"}, "store": true, "mine": 1, "new": [1]}));
        merge_options(&mut fields, "openai", &options, &["mine"], "input").unwrap();
        assert_eq!(
            Value::Object(fields.values.clone()),
            json!({"reasoning": {"effort": "low", "summary": "auto"}, "store": true, "new": [1]})
        );
        for key in ["model", "stream", "input"] {
            let options = object(json!({key: "x"}));
            let error = merge_options(&mut fields, "openai", &options, &[], "input").unwrap_err();
            assert!(error.message().contains(&format!("provider_options.openai.{key}")), "{error}");
        }
    }

    #[test]
    fn options_merge_into_serialised_fields() {
        let instruction = json!({"parts": [{"text": "Be brief."}]});
        let options = object(json!({"systemInstruction": {"role": "user"}, "tools": [1]}));
        let mut values = fields(json!({"systemInstruction": instruction, "tools": []}));
        let mut serialised = Fields::default();
        serialised.set_serialised("systemInstruction", fragment(&instruction));
        serialised.set_serialised("tools", fragment(&json!([])));
        for fields in [&mut values, &mut serialised] {
            merge_options(fields, "gemini", &options, &[], "contents").unwrap();
        }
        assert_eq!(text(serialised, &[]), text(values, &[]));
    }
}
