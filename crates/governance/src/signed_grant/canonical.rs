//! Canonical JSON (RFC 8785), for the values that grants have.

use serde_json::{Number, Value};

/// Largest integer that every JSON implementation reads without loss.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Number that has no canonical form here: a fraction, or an integer beyond 2^53 - 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot be signed: expected an integer of at most 2^53 - 1")]
pub struct UnsignableNumber(String);

/// Returns the canonical form of a value.
pub(super) fn canonical_json(value: &Value) -> Result<String, UnsignableNumber> {
    let mut text = String::new();
    write_value(value, &mut text)?;
    Ok(text)
}

fn write_value(value: &Value, text: &mut String) -> Result<(), UnsignableNumber> {
    match value {
        // serde_json escapes strings as the RFC does.
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
        Value::Number(number) => text.push_str(&integer(number)?.to_string()),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(item, text)?;
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            text.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_value(member, text)?;
            }
            text.push('}');
        }
    }
    Ok(())
}

fn integer(number: &Number) -> Result<i64, UnsignableNumber> {
    let exact = number.as_i64().filter(|integer| integer.unsigned_abs() <= MAX_INTEGER);
    exact.ok_or_else(|| UnsignableNumber(number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_form_of_the_rfc() {
        for (given, expected) in [
            ("null", "null"),
            (" [ true , false ] ", "[true,false]"),
            ("[]", "[]"),
            ("{ }", "{}"),
            ("9007199254740991", "9007199254740991"),
            ("-9007199254740991", "-9007199254740991"),
            // Section 3.2.2: the string of the sample, with the escapes that the RFC prescribes.
            (
                r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#,
                "\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"",
            ),
            (r#""\u0008\u0009\u000a\u000c\u000d\u001f\u007f""#, "\"\\b\\t\\n\\f\\r\\u001f\u{7f}\""),
            (r#"{"b":{"d":1,"c":2},"a":[{"z":0,"y":0}]}"#, r#"{"a":[{"y":0,"z":0}],"b":{"c":2,"d":1}}"#),
            // Section 3.2.3: names are sorted by their UTF-16 code units, so the emoji precedes U+FB33.
            (
                r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#,
                "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
                 \"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\",\
                 \"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
            ),
            (r#"{"aa":1,"a":2,"":3}"#, r#"{"":3,"a":2,"aa":1}"#),
        ] {
            let value: Value = serde_json::from_str(given).unwrap();
            assert_eq!(canonical_json(&value).as_deref(), Ok(expected), "{given}");
        }
    }

    #[test]
    fn numbers_that_are_not_exact_integers_are_refused() {
        for number in ["9007199254740992", "-9007199254740992", "18446744073709551615", "1.5", "1e2", "-0"] {
            let value: Value = serde_json::from_str(&format!("[{number}]")).unwrap();
            assert!(canonical_json(&value).is_err(), "{number}");
        }
    }
}
