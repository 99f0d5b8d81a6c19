//! Lenient deserialisation: values of an unexpected type count as absent, and strings are borrowed where possible.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A string that is copied only if it has escapes. `Option<Cow<str>>` always copies, because serde does not borrow a `Cow`
/// inside an `Option`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// A string, or `None` for any other value.
#[derive(Debug, Default)]
pub(crate) struct AnyText<'a>(pub(crate) Option<Cow<'a, str>>);

impl<'a> AnyText<'a> {
    /// Returns the string unless it is empty.
    pub(crate) fn non_empty(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

/// A non-negative integer, or `None` for any other value.
#[derive(Debug, Default)]
pub(crate) struct AnyCount(pub(crate) Option<u64>);

/// An object, or `None` for any other value.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

/// The first entry of a list. An entry that is not an object counts as an empty object.
#[derive(Debug)]
pub(crate) struct FirstEntry<T>(pub(crate) Option<T>);

/// All entries of a list, empty for any other value.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// Conversion from a JSON value of any kind. Kinds without a conversion become the default.
pub(crate) trait FromAnyJson<'de>: Default {
    fn from_text(_text: Cow<'de, str>) -> Self {
        Self::default()
    }

    /// Converts a number or a boolean.
    fn from_scalar(_value: Value) -> Self {
        Self::default()
    }

    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        IgnoredAny.visit_seq(list).map(|_| Self::default())
    }

    fn from_object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        IgnoredAny.visit_map(object).map(|_| Self::default())
    }
}

/// Deserialises a value of any kind.
pub(crate) fn deserialize_any_json<'de, T: FromAnyJson<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(AnyKind(PhantomData))
}

struct AnyKind<T>(PhantomData<T>);

impl<'de, T: FromAnyJson<'de>> Visitor<'de> for AnyKind<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<T, E> {
        Ok(T::from_text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Ok(T::from_text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        Ok(T::from_scalar(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        Ok(T::from_scalar(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        Ok(T::from_scalar(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        Ok(T::from_scalar(value.into()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::from_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::from_object(object)
    }
}

impl<'de> FromAnyJson<'de> for AnyText<'de> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for AnyText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_any_json::<AnyText<'de>, D>(deserializer)
    }
}

impl FromAnyJson<'_> for AnyCount {
    fn from_scalar(value: Value) -> Self {
        Self(value.as_u64())
    }
}

impl<'de> Deserialize<'de> for AnyCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_any_json(deserializer)
    }
}

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> FromAnyJson<'de> for Object<T> {
    fn from_object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|object| Self(Some(object)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_any_json(deserializer)
    }
}

impl<T> Default for FirstEntry<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Default + Deserialize<'de>> FromAnyJson<'de> for FirstEntry<T> {
    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let first = list.next_element::<Object<T>>()?;
        IgnoredAny.visit_seq(list)?;
        Ok(Self(first.map(|Object(object)| object.unwrap_or_default())))
    }
}

impl<'de, T: Default + Deserialize<'de>> Deserialize<'de> for FirstEntry<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_any_json(deserializer)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> FromAnyJson<'de> for List<T> {
    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            entries.push(entry);
        }
        Ok(Self(entries))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_any_json(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An object with one string.
    #[derive(Debug, Default, serde::Deserialize)]
    struct NamedObject<'a> {
        #[serde(default, borrow)]
        name: AnyText<'a>,
    }

    #[test]
    fn values_of_other_kinds_are_ignored() {
        let values = [
            json!(null),
            json!(true),
            json!(3),
            json!(-3),
            json!(0.5),
            json!("text"),
            json!(""),
            json!([{"name": "n"}, 1]),
            json!({"name": "n", "other": [1, {"deep": null}]}),
        ];
        for value in values {
            let text = value.to_string();
            let found: AnyText<'_> = serde_json::from_str(&text).unwrap();
            assert_eq!(found.0.as_deref(), value.as_str(), "{value}");
            assert_eq!(found.non_empty(), value.as_str().filter(|text| !text.is_empty()), "{value}");
            let found: AnyCount = serde_json::from_str(&text).unwrap();
            assert_eq!(found.0, value.as_u64(), "{value}");
            let found: Object<NamedObject<'_>> = serde_json::from_str(&text).unwrap();
            let name = value.get("name").and_then(Value::as_str);
            assert_eq!(found.0.is_some(), value.is_object(), "{value}");
            assert_eq!(found.0.and_then(|object| object.name.0).as_deref(), name, "{value}");
            let found: List<Value> = serde_json::from_str(&text).unwrap();
            assert_eq!(Some(found.0), value.as_array().cloned().or(Some(Vec::new())), "{value}");
            let found: FirstEntry<NamedObject<'_>> = serde_json::from_str(&text).unwrap();
            let first = value.get(0).and_then(|first| first.get("name")).and_then(Value::as_str);
            assert_eq!(found.0.is_some(), value.is_array(), "{value}");
            assert_eq!(found.0.and_then(|first| first.name.0).as_deref(), first, "{value}");
        }
        let odd: FirstEntry<NamedObject<'_>> = serde_json::from_str("[null, {\"name\": \"n\"}]").unwrap();
        assert!(odd.0.is_some_and(|first| first.name.0.is_none()));
    }

    #[test]
    fn only_escaped_strings_are_copied() {
        let plain: AnyText<'_> = serde_json::from_str("\"plain\"").unwrap();
        assert!(matches!(plain.0, Some(Cow::Borrowed("plain"))));
        let escaped: AnyText<'_> = serde_json::from_str("\"a\\nb\"").unwrap();
        assert_eq!(escaped.0.as_deref(), Some("a\nb"));
        let optional: Option<Text<'_>> = serde_json::from_str("\"plain\"").unwrap();
        assert!(matches!(optional, Some(Text(Cow::Borrowed("plain")))));
    }

    #[test]
    fn malformed_json_is_still_an_error() {
        for text in ["{\"name\": }", "[1, ", "\"open", "{\"name\": \"n\"} more"] {
            assert!(serde_json::from_str::<Object<NamedObject<'_>>>(text).is_err(), "{text}");
            assert!(serde_json::from_str::<FirstEntry<NamedObject<'_>>>(text).is_err(), "{text}");
        }
    }
}
