//! String fields of a JSON object that is being streamed.

use pintle_llm::PartialJson;
use serde_json::Value;

/// Field that is reported before all others: in the arguments of an edit, the old text precedes the new one.
const FIRST_FIELD: &str = "old_string";

/// Reports the growth of each top-level string field. Takes linear time and space.
#[derive(Debug, Default)]
pub(super) struct StringFields {
    json: PartialJson,
    /// Fields with the number of bytes already reported.
    fields: Vec<(String, usize)>,
}

impl StringFields {
    /// Appends a piece of the JSON text and returns the text that it adds to each field.
    pub(super) fn push(&mut self, json: &str) -> Vec<(String, String)> {
        if !self.json.push(json) {
            return Vec::new();
        }
        let Some(Value::Object(members)) = self.json.value() else { return Vec::new() };
        if members.len() > self.fields.len() {
            let is_new = |name: &&String| !self.fields.iter().any(|(known, _)| known == *name);
            let mut new: Vec<String> = members.keys().filter(is_new).cloned().collect();
            new.sort_by_key(|name| name != FIRST_FIELD);
            self.fields.extend(new.into_iter().map(|name| (name, 0)));
        }
        let mut added = Vec::new();
        for (name, reported) in &mut self.fields {
            let Some(Value::String(text)) = members.get(name.as_str()) else { continue };
            if let Some(tail) = text.get(*reported..).filter(|tail| !tail.is_empty()) {
                *reported = text.len();
                added.push((name.clone(), tail.to_owned()));
            }
        }
        added
    }

    /// Returns the object as far as it was streamed.
    pub(super) fn value(&self) -> Option<&Value> {
        self.json.value()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    /// Feeds an object in pieces of `size` characters and collects its string fields.
    fn read(json: &str, size: usize) -> BTreeMap<String, String> {
        let mut fields = StringFields::default();
        let mut read = BTreeMap::<String, String>::new();
        let characters: Vec<char> = json.chars().collect();
        for chunk in characters.chunks(size) {
            for (name, text) in fields.push(&chunk.iter().collect::<String>()) {
                read.entry(name).or_default().push_str(&text);
            }
        }
        read
    }

    #[test]
    fn fields_grow_with_their_text() {
        let mut fields = StringFields::default();
        let added = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(fields.push("{\"patch\": \"*** Beg"), [added("patch", "*** Beg")]);
        assert_eq!(fields.push("in\\"), [added("patch", "in")]);
        assert_eq!(fields.push("n\\u00"), [added("patch", "\n")]);
        assert_eq!(fields.push("e9\", \"x\": \""), [added("patch", "é")]);
        assert_eq!(fields.push("y\", \"n\": 3, \"z\": \"end\"}"), [added("x", "y"), added("z", "end")]);
    }

    #[test]
    fn old_text_precedes_new_text() {
        let names: Vec<String> = StringFields::default()
            .push("{\"old_string\": \"a\", \"new_string\": \"b\"}")
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["old_string", "new_string"]);
    }

    #[test]
    fn other_json_has_no_fields() {
        for text in [
            "",
            "not json",
            "[\"a\"]",
            "\"a\"",
            "{",
            "{}",
            "{\"a\" 1}",
            "{} {\"a\": \"b\"}",
            "}{\"a\":\"b\"}",
        ] {
            assert_eq!(read(text, 3), BTreeMap::new(), "{text}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<String>().prop_map(Value::from),
            "[\\PC\"\\\\\n]{0,12}".prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
            Just(json!({"a": ["}", {"b": "]\"\\"}], "c": {}})),
        ];
        leaf.boxed()
    }

    proptest! {
        #[test]
        fn fields_do_not_depend_on_chunking(
            fields in proptest::collection::btree_map("[a-z_\"\\\\é]{1,6}", value(), 0..5),
            size in 1_usize..9,
            pretty in any::<bool>(),
        ) {
            let object: Map<String, Value> = fields.into_iter().collect();
            let json = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
            // An empty text never grows.
            let texts: BTreeMap<String, String> = object
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .filter(|(_, text)| !text.is_empty())
                .collect();
            let found = read(&json.unwrap(), size);
            prop_assert_eq!(found, texts);
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in any::<String>(), size in 1_usize..5) {
            read(&text, size);
        }
    }
}
