//! Serialised names, compared with a checked-in file, because stores and other processes have them.

use std::{any::type_name, collections::BTreeSet};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

/// Values of serialised types, as JSON. A member of the file is a list with the values of one type.
///
/// A value is the same JSON after it was parsed and serialised again. A field or variant with another name is therefore
/// found: parsing fails, or the field is missing afterwards.
#[derive(Debug)]
pub struct SerialisedValues {
    unchecked: Map<String, Value>,
}

impl SerialisedValues {
    /// Parses the file.
    ///
    /// # Panics
    ///
    /// If it is not a JSON object.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(unchecked) => Self { unchecked },
            Err(error) => panic!("the file of serialised values: {error}"),
        }
    }

    /// Checks the values of a type.
    ///
    /// # Panics
    ///
    /// If there is no list `name`, or a value has another form.
    pub fn check<T: Serialize + DeserializeOwned>(&mut self, name: &str) {
        let _ = self.take::<T>(name);
    }

    /// Checks the values of an enum, which have each of its variants. `tag` is the member with the name of the variant, if
    /// the enum has one.
    ///
    /// # Panics
    ///
    /// As for [`check`](Self::check), and if a variant is missing.
    pub fn check_variants<T: Serialize + DeserializeOwned>(&mut self, name: &str, tag: Option<&str>) {
        let values = self.take::<T>(name);
        let found: BTreeSet<String> = values.iter().filter_map(|value| variant(value, tag)).collect();
        assert_eq!(
            found,
            variants::<T>(tag),
            "variants of `{name}`: those of the file, and those of the type"
        );
    }

    /// Ends the comparison.
    ///
    /// # Panics
    ///
    /// If a list was not checked.
    pub fn finish(self) {
        let names: Vec<&String> = self.unchecked.keys().collect();
        assert!(names.is_empty(), "no type was compared with {names:?}");
    }

    fn take<T: Serialize + DeserializeOwned>(&mut self, name: &str) -> Vec<Value> {
        let Some(Value::Array(values)) = self.unchecked.remove(name) else {
            panic!("the file has no list `{name}`");
        };
        assert!(!values.is_empty(), "the list `{name}` is empty");
        for value in &values {
            let again =
                serde_json::from_value::<T>(value.clone()).and_then(|parsed| serde_json::to_value(&parsed));
            match again {
                Ok(again) => assert_eq!(again, *value, "`{name}`, serialised again, and in the file"),
                Err(error) => panic!("`{name}`: {error}: {value}"),
            }
        }
        values
    }
}

/// Returns the name of a value's variant.
fn variant(value: &Value, tag: Option<&str>) -> Option<String> {
    match (value, tag) {
        (Value::Object(members), Some(tag)) => Some(members.get(tag)?.as_str()?.to_owned()),
        (Value::Object(members), None) => members.keys().next().cloned(),
        (Value::String(name), None) => Some(name.clone()),
        _ => None,
    }
}

/// Returns the names of all variants, which serde lists in the error about an unknown one.
fn variants<T: DeserializeOwned>(tag: Option<&str>) -> BTreeSet<String> {
    let unknown = tag.map_or_else(|| json!("?"), |tag| json!({ tag: "?" }));
    let error = match serde_json::from_value::<T>(unknown) {
        Ok(_) => panic!("`{}` has a variant for every name", type_name::<T>()),
        Err(error) => error.to_string(),
    };
    let names = error.split_once("expected ").map(|(_, names)| names).unwrap_or_default();
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Shape {
        Empty,
        OneSide(u32),
        Named {
            #[serde(default, skip_serializing_if = "Option::is_none")]
            label: Option<String>,
        },
    }

    #[derive(Serialize, Deserialize)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Tagged {
        First,
        SecondOne { size: u32 },
    }

    fn is_accepted(text: &str, check: impl FnOnce(&mut SerialisedValues)) -> bool {
        let compare = || {
            let mut values = SerialisedValues::parse(text);
            check(&mut values);
            values.finish();
        };
        catch_unwind(AssertUnwindSafe(compare)).is_ok()
    }

    #[test]
    fn every_variant_and_field_has_its_name() {
        let shapes = [
            (r#"{"s": ["empty", {"one_side": 1}, {"named": {"label": "a"}}]}"#, true),
            (r#"{"s": ["empty", {"one_side": 1}]}"#, false),
            (r#"{"s": ["empty", {"oneSide": 1}, {"named": {"label": "a"}}]}"#, false),
            (r#"{"s": ["empty", {"one_side": 1}, {"named": {"title": "a"}}]}"#, false),
            (r#"{"s": []}"#, false),
            (r#"{"t": ["empty"]}"#, false),
        ];
        for (text, expected) in shapes {
            let accepted = is_accepted(text, |values| values.check_variants::<Shape>("s", None));
            assert_eq!(accepted, expected, "{text}");
        }
        let tagged = [
            (r#"{"t": [{"kind": "first"}, {"kind": "second_one", "size": 1}]}"#, true),
            (r#"{"t": [{"kind": "second_one", "size": 1}]}"#, false),
            (r#"{"t": [{"kind": "first"}, {"kind": "second_one", "size": 1, "more": 2}]}"#, false),
        ];
        for (text, expected) in tagged {
            let accepted = is_accepted(text, |values| values.check_variants::<Tagged>("t", Some("kind")));
            assert_eq!(accepted, expected, "{text}");
        }
    }

    #[test]
    fn each_list_is_compared() {
        let text = r#"{"numbers": [1, 2], "others": ["a"]}"#;
        assert!(!is_accepted(text, |values| values.check::<u32>("numbers")));
        assert!(is_accepted(text, |values| {
            values.check::<u32>("numbers");
            values.check::<String>("others");
        }));
    }
}
