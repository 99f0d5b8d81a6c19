//! Strict JSON parsing, which rejects duplicate members.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses a body. A duplicate member is an error, because parsers differ in which one they use.
pub(super) fn read(body: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice::<Strict>(body).map(|strict| strict.0)
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(element)) = elements.next_element()? {
            list.push(element);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let Strict(value) = members.next_value()?;
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("found the member {name:?} twice in one object")));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_matches_serde_json() {
        let body = br#"{"a": [null, true, -1, 18446744073709551615, 1.5, "\u00e9\n"], "b": {"a": {}}}"#;
        assert_eq!(read(body).unwrap(), serde_json::from_slice::<Value>(body).unwrap());
    }

    #[test]
    fn duplicate_members_are_errors_at_any_depth() {
        for body in [r#"{"a": 1, "a": 1}"#, r#"[{"b": {"a": 1, "c": 2, "a": 3}}]"#] {
            let error = read(body.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("the member \"a\" twice"), "{error}");
        }
        for body in ["", "{", "{}x", "nul"] {
            assert!(read(body.as_bytes()).is_err(), "{body:?}");
        }
    }
}
