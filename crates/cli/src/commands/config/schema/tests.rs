#![expect(clippy::disallowed_methods, reason = "checked-in files are compared, and written when asked for")]

use std::collections::BTreeMap;
use std::path::Path;

use pintle_host::config_file::File;
use pintle_host::{ClientScope, FIELDS};

use super::super::edit::TEMPLATE;
use super::*;

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

const OPENAPI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/openapi.json");

const HEADER: &str = "| key | type | default | set by | meaning |\n|---|---|---|---|---|\n";

/// Returns the table of keys in the reference.
fn table() -> String {
    let rows = keys::all().map(|key| {
        let kind = match key.row.kind {
            ValueKind::Text => "text".to_owned(),
            ValueKind::Url => "URL".to_owned(),
            ValueKind::Choice(names) => {
                names.iter().map(|name| format!("`\"{name}\"`")).collect::<Vec<_>>().join(", ")
            }
            ValueKind::Count => "number".to_owned(),
            ValueKind::Percent => "number, 0 to 100".to_owned(),
            ValueKind::Time => "time".to_owned(),
            ValueKind::Switch => "`true` or `false`".to_owned(),
            ValueKind::Path => "file".to_owned(),
            ValueKind::Profile => "name or file".to_owned(),
            ValueKind::Rule => "rule".to_owned(),
            ValueKind::Structure => "table".to_owned(),
            ValueKind::Network => "`\"on\"`, `\"off\"`, or a table of hosts".to_owned(),
        };
        let default = match key.row.default {
            DefaultValue::Description(text) => text.to_owned(),
            DefaultValue::Value(_) | DefaultValue::Percent(_) => format!("`{}`", default_of(&key)),
        };
        let (name, access, meaning) = (key.name, key.row.access.as_str(), key.row.meaning);
        format!("| `{name}` | {kind} | {default} | {access} | {meaning} |\n")
    });
    std::iter::once(HEADER.to_owned()).chain(rows).collect()
}

/// Compares a file with its expected text, or writes it.
fn assert_checked_in(name: &str, expected: impl Fn(&str) -> String) {
    let path = format!("{REFERENCE}/{name}");
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    let expected = expected(&checked_in);
    if std::env::var_os("WRITE_CONFIG_REFERENCE").is_some() {
        std::fs::write(&path, &expected).unwrap();
        return;
    }
    assert!(
        checked_in == expected,
        "docs/reference/{name} does not match the table of keys; regenerate it with\n    \
         cargo xtask generate"
    );
}

#[test]
fn the_checked_in_schema_matches_the_keys() {
    assert_checked_in("config.schema.json", |_| format!("{:#}\n", schema()));
}

#[test]
fn the_reference_lists_all_keys() {
    assert_checked_in("configuration.md", |page| {
        let (before, rest) = page.split_once(HEADER).expect("the page has the table");
        let (_, after) = rest.split_once("\n\n").expect("the table has an end");
        format!("{before}{}\n{after}", table())
    });
}

/// Returns the properties of a type in the description of the server. `pointer` leads to the type.
fn properties_of<'d>(description: &'d Value, pointer: &str) -> &'d Map<String, Value> {
    description.pointer(pointer).unwrap()["properties"].as_object().unwrap()
}

/// Returns the properties of a new session in the description of the server by name. The properties of its rules have names
/// such as `rules.deny`.
fn properties_of_a_new_session(description: &Value) -> BTreeMap<String, &Value> {
    let mut found = BTreeMap::new();
    for (name, property) in properties_of(description, "/components/schemas/CreateBody") {
        if let Some(reference) = property["$ref"].as_str() {
            let parts = properties_of(description, &reference[1..]).iter();
            found.extend(parts.map(|(part, property)| (format!("{name}.{part}"), property)));
        } else {
            found.insert(name.clone(), property);
        }
    }
    found
}

/// The texts of the server start with the meanings of the rows, followed by the names of a choice.
#[test]
fn a_new_session_of_the_server_has_the_fields_of_the_rows() {
    let description: Value = serde_json::from_str(&std::fs::read_to_string(OPENAPI).unwrap()).unwrap();
    let mut properties = properties_of_a_new_session(&description);
    assert!(properties.remove("message").is_some(), "the message is no setting");
    let plain = |text: &str| text.replace('`', "").replace('\n', " ");
    for row in FIELDS {
        let Some(field) = row.http else { continue };
        let name = field.name;
        let property = properties.remove(name).unwrap_or_else(|| panic!("{name} is no property"));
        let text = plain(property["description"].as_str().unwrap());
        let rest = text.strip_prefix(&plain(row.meaning)).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(rest.starts_with(['.', ',', ':']), "{name}: {text}");
        if let ValueKind::Choice(names) = row.kind {
            let (last, others) = names.split_last().unwrap();
            let listed = format!(": {} or {last}.", others.join(", "));
            assert!(rest.starts_with(&listed), "{name}: {text}");
        }
        let is_limited = field.scope != ClientScope::Create;
        assert_eq!(rest.contains("equires the scope approve"), is_limited, "{name}: {text}");
        let expected = match row.kind {
            ValueKind::Rule => "array",
            ValueKind::Structure | ValueKind::Network => "object",
            ValueKind::Switch => "boolean",
            ValueKind::Count | ValueKind::Percent => "integer",
            ValueKind::Text
            | ValueKind::Url
            | ValueKind::Choice(_)
            | ValueKind::Time
            | ValueKind::Path
            | ValueKind::Profile => "string",
        };
        assert!(property["type"].to_string().contains(expected), "{name}: {property}");
    }
    assert!(properties.is_empty(), "no row has {:?}", properties.keys());
}

/// The schema and the parser agree.
#[test]
fn files_are_valid_as_the_schema_says() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let cases = [
        ("", true),
        ("model = \"m\"\nmax_turns = 3\nconfine = true\ntimeout = 90\ntimeout_ = 1", false),
        ("model = \"m\"\nmax_turns = 3\nconfine = true\ntimeout = 90", true),
        ("timeout = \"15m\"", true),
        ("timeout = \"soon\"", false),
        ("timeout = 0", false),
        ("model = \" \"", false),
        ("base_url = \"ftp://h\"", false),
        ("base_url = \"https://h/v1\"", true),
        ("network = \"on\"", true),
        ("network = \"all\"", false),
        ("network = { allow = [\"*.example.com:443\"], presets = [\"cargo\"] }", true),
        ("network = { alow = [] }", false),
        ("mode = \"ask\"", true),
        ("mode = \"aks\"", false),
        ("compact_at = 101", false),
        ("compact_at = true", false),
        ("[profiles.a]\nmode = \"plan\"", true),
        ("[profiles.a]\nprofile = \"b\"", false),
        ("[profiles.\"a/b\"]", false),
        ("[profiles.\"a.toml\"]", false),
        ("[key_command]\nopenai = [\"pass\", \"show\", \"\"]", true),
        ("[key_command]\nopenai = []", false),
        ("[key_command]\nopenai = [\"\"]", false),
        ("[key_command]\nacme = [\"x\"]", false),
        ("tool_dirs = [\"tools\", \"/opt/tools\"]", true),
        ("tool_dirs = \"tools\"", false),
        ("tool_dirs = [\" \"]", false),
        ("[profiles.a]\ntool_dirs = [\"tools\"]", false),
    ];
    for (text, is_valid) in cases {
        let value: Value = toml::from_str(text).unwrap();
        assert_eq!(validator.is_valid(&value), is_valid, "schema: {text}");
        let problems = File::parse("f", Path::new("/"), text).problems;
        assert_eq!(problems.is_empty(), is_valid, "parser: {text}: {problems:?}");
    }
}

/// Removing the marks of comments yields a valid file.
#[test]
fn the_template_is_valid_and_sets_nothing() {
    assert_eq!(File::parse("f", Path::new("/"), TEMPLATE).settings, []);
    let lines =
        TEMPLATE.lines().filter_map(|line| line.strip_prefix("#")).filter(|line| !line.starts_with(' '));
    let text = lines.collect::<Vec<_>>().join("\n");
    let file = File::parse("f", Path::new("/"), &text);
    assert_eq!(file.problems, []);
    assert!(file.settings.len() >= 3 && !file.profiles.is_empty(), "{file:?}");
}
