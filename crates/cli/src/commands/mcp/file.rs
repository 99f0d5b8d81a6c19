//! Changes to a server file. Its other contents are unchanged.

use pintle_host::failure::{Failure, OrFailure as _};
use serde_json::{Map, Value};

/// Member with the servers, by name.
const SERVERS: &str = "mcpServers";

/// Returns the text of a file with one more declaration.
///
/// A name that the file already has is a usage failure, unless `replaces` is set.
pub(crate) fn add_declaration(
    text: &str,
    name: &str,
    declaration: Value,
    replaces: bool,
) -> Result<String, Failure> {
    let mut file = parse(text)?;
    let servers = servers_of(&mut file)?;
    if servers.contains_key(name) && !replaces {
        return Err(Failure::usage(format!("server `{name}` is already declared"))
            .with_hint("--replace overwrites the declaration"));
    }
    servers.insert(name.to_owned(), declaration);
    Ok(render(&file))
}

/// Returns the text of a file without a declaration; `None` if it has none of that name.
pub(crate) fn remove_declaration(text: &str, name: &str) -> Result<Option<String>, Failure> {
    let mut file = parse(text)?;
    Ok(servers_of(&mut file)?.remove(name).map(|_removed| render(&file)))
}

fn parse(text: &str) -> Result<Map<String, Value>, Failure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = if text.trim().is_empty() { "{}" } else { text };
    serde_json::from_str(text).or_usage("the server file is not a JSON object and was not changed")
}

fn servers_of(file: &mut Map<String, Value>) -> Result<&mut Map<String, Value>, Failure> {
    match file.entry(SERVERS).or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(servers) => Ok(servers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Failure::usage(format!(
                "`{SERVERS}` in the server file is not an object; the file was not changed"
            )))
        }
    }
}

fn render(file: &Map<String, Value>) -> String {
    format!("{:#}\n", Value::Object(file.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn declarations_come_and_go_and_the_rest_stays() {
        let text = r#"{"other": 1, "mcpServers": {"a": {"command": "x", "unknown": true}}}"#;
        let added = add_declaration(text, "b", json!({"url": "http://h"}), false).unwrap();
        let value: Value = serde_json::from_str(&added).unwrap();
        assert_eq!(value["other"], 1);
        assert_eq!(value["mcpServers"]["a"]["unknown"], true);
        assert_eq!(value["mcpServers"]["b"]["url"], "http://h");
        assert!(add_declaration(&added, "b", json!({}), false).unwrap_err().message().contains("--replace"));
        assert!(add_declaration(&added, "b", json!({"command": "y"}), true).unwrap().contains("\"y\""));
        let removed = remove_declaration(&added, "b").unwrap().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&removed).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
        assert_eq!(remove_declaration(text, "b").unwrap(), None);
        for text in ["", "\u{feff}", "\u{feff}{}"] {
            assert!(add_declaration(text, "a", json!({}), false).unwrap().starts_with('{'), "{text:?}");
        }
    }

    #[test]
    fn files_that_are_not_understood_stay_as_they_are() {
        for text in ["[]", "{", r#"{"mcpServers": []}"#] {
            assert!(
                add_declaration(text, "a", json!({}), true)
                    .unwrap_err()
                    .message()
                    .contains("was not changed"),
                "{text}"
            );
            assert!(remove_declaration(text, "a").is_err(), "{text}");
        }
    }
}
