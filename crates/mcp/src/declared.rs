//! Declarations of servers in files: `.mcp.json` of a project, and files of the same form.

use std::collections::BTreeMap;
use std::time::Duration;

use pintle_tools::{Effect, most_similar};
use serde_json::{Map, Value};

use crate::filter::ToolFilter;
use crate::oauth::OAuthSettings;
use crate::spec::{HttpServer, ServerName, ServerSpec, ServerTransport, StdioServer};

/// Member with the servers, by name.
const SERVERS: &str = "mcpServers";

/// Member with the schema of the file, which editors read.
const SCHEMA: &str = "$schema";

/// Keys of a server.
const KEYS: [&str; 15] = [
    "allow", "args", "command", "cwd", "deny", "disabled", "effect", "effects", "env", "headers", "oauth",
    "sandbox", "timeout", "type", "url",
];

/// Maximum time limit that a declaration can set, in seconds.
const MAX_TIMEOUT: u64 = 24 * 60 * 60;

/// Servers that a file declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeclaredServers {
    /// The servers, sorted by name. Disabled servers and servers with mistakes are left out.
    pub servers: Vec<ServerSpec>,
    /// The mistakes, each a sentence with the name of the server and the expected value.
    pub problems: Vec<String>,
    /// Unknown keys, which have no effect, each in a sentence that names the server if the key is in a server. Other
    /// programs read the same files.
    pub warnings: Vec<String>,
}

/// Parses a file with declarations of servers.
///
/// ```json
/// {"mcpServers": {
///     "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]},
///     "issues": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
/// }}
/// ```
///
/// A server has a `command` with `args`, `env` and `cwd`, or a `url` with `headers` and `oauth` (`clientId`,
/// `clientSecret`, `clientMetadataUrl` and `scopes` of [logins](crate::login())). It may also have `allow` and `deny`
/// (patterns for its tools), `effect` and `effects` (`read`, `write`, `network` or `execute`; of all its tools, and of
/// single tools), `timeout` (of a call, in seconds), `disabled`, and `sandbox`: `false` lets it run outside of the
/// sandbox. The caller decides whether a file may set that.
///
/// `${NAME}` and `${NAME:-default}` in texts are replaced with variables, as `variable` returns them.
#[must_use]
pub fn parse_declared_servers(text: &str, variable: impl Fn(&str) -> Option<String>) -> DeclaredServers {
    let mut declared = DeclaredServers::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let servers = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(mut file)) => {
            let servers = file.remove(SERVERS);
            let unknown = file.keys().filter(|key| *key != SCHEMA);
            declared.warnings.extend(unknown.map(|key| format!("ignored unknown key `{key}`")));
            match servers {
                Some(Value::Object(servers)) => servers,
                _ => {
                    let problem = format!("expected an object `{SERVERS}` with a server for each name");
                    declared.problems.push(problem);
                    return declared;
                }
            }
        }
        Ok(_) => {
            declared.problems.push(format!("expected a JSON object with `{SERVERS}`"));
            return declared;
        }
        Err(error) => {
            declared.problems.push(format!("expected JSON: {error}"));
            return declared;
        }
    };
    for (name, value) in servers {
        let mut reader = DeclarationReader {
            name: &name,
            variable: &variable,
            problems: Vec::new(),
            warnings: Vec::new(),
        };
        let server = reader.server(value);
        // An invalid declaration could allow a server more than its user intended.
        declared.servers.extend(server.filter(|_| reader.problems.is_empty()).flatten());
        declared.problems.append(&mut reader.problems);
        declared.warnings.append(&mut reader.warnings);
    }
    declared.servers.sort_by(|one, other| one.name.cmp(&other.name));
    declared
}

/// Reads the declaration of one server.
struct DeclarationReader<'a, V> {
    name: &'a str,
    variable: &'a V,
    problems: Vec<String>,
    warnings: Vec<String>,
}

impl<V: Fn(&str) -> Option<String>> DeclarationReader<'_, V> {
    fn problem(&mut self, problem: impl AsRef<str>) {
        self.problems.push(format!("server `{}`: {}", self.name, problem.as_ref()));
    }

    fn unknown_key(&mut self, key: &str) {
        self.warnings.push(format!("server `{}`: ignored unknown key {key}", self.name));
    }

    /// Returns the server; the inner `None` if it is disabled.
    fn server(&mut self, value: Value) -> Option<Option<ServerSpec>> {
        let name = match self.name.parse::<ServerName>() {
            Ok(name) => name,
            Err(error) => {
                self.problem(error.to_string());
                return None;
            }
        };
        let Value::Object(mut keys) = value else {
            self.problem("expected an object with `command` or `url`");
            return None;
        };
        for key in keys.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect::<Vec<_>>() {
            match most_similar(&key, KEYS.into_iter()).first() {
                // It could be a misspelt limit.
                Some(meant) => self.problem(format!("unknown key `{key}`; did you mean `{meant}`?")),
                None => self.unknown_key(&format!("`{key}`")),
            }
        }
        let is_disabled = self.switch(&mut keys, "disabled", false);
        let transport = self.transport(&mut keys)?;
        let mut spec = ServerSpec::new(name, transport);
        let (allow, deny) = (self.texts(&mut keys, "allow"), self.texts(&mut keys, "deny"));
        match ToolFilter::new(allow.iter().map(String::as_str), deny.iter().map(String::as_str)) {
            Ok(filter) => spec.filter = filter,
            Err(error) => self.problem(error.to_string()),
        }
        if let Some(effect) = keys.remove("effect") {
            spec.effect = self.effect("effect", &effect).unwrap_or(Effect::Execute);
        }
        for (tool, effect) in self.table(&mut keys, "effects") {
            let effect = self.effect(&format!("effects.{tool}"), &effect);
            spec.effects.extend(effect.map(|effect| (tool, effect)));
        }
        if let Some(seconds) = keys.remove("timeout") {
            match seconds.as_u64().filter(|seconds| (1..=MAX_TIMEOUT).contains(seconds)) {
                Some(seconds) => spec.call_timeout = Duration::from_secs(seconds),
                None => self.problem(format!("`timeout`: expected 1 to {MAX_TIMEOUT} seconds")),
            }
        }
        Some((!is_disabled).then_some(spec))
    }

    fn transport(&mut self, keys: &mut Map<String, Value>) -> Option<ServerTransport> {
        let kind = self.text(keys, "type");
        let (command, url) = (self.text(keys, "command"), self.text(keys, "url"));
        let is_outside = !self.switch(keys, "sandbox", true);
        match (kind.as_deref(), command, url) {
            (None | Some("stdio"), Some(command), None) => {
                let mut server =
                    StdioServer::new(command, self.texts(keys, "args")).with_outside_sandbox(is_outside);
                for (name, value) in self.text_table(keys, "env") {
                    server = server.with_env(name, value);
                }
                server.working_dir = self.text(keys, "cwd").map(Into::into);
                Some(ServerTransport::Stdio(server))
            }
            (None | Some("http" | "streamable-http"), None, Some(url)) => {
                let mut server = match HttpServer::new(&url) {
                    Ok(server) => server,
                    Err(error) => {
                        self.problem(error.to_string());
                        return None;
                    }
                };
                for (name, value) in self.text_table(keys, "headers") {
                    match server.clone().with_header(name, value) {
                        Ok(with_header) => server = with_header,
                        Err(error) => self.problem(error.to_string()),
                    }
                }
                let settings = self.oauth(keys);
                Some(ServerTransport::Http(server.with_oauth(settings)))
            }
            (Some("sse"), ..) => {
                self.problem("the transport `sse` ended with version 2024-11-05 of the protocol; expected `http` or `stdio`");
                None
            }
            (Some(kind), ..) if !matches!(kind, "stdio" | "http" | "streamable-http") => {
                self.problem(format!("unknown type `{kind}`; expected `stdio` or `http`"));
                None
            }
            _ => {
                self.problem("expected either `command` or `url`");
                None
            }
        }
    }

    fn oauth(&mut self, keys: &mut Map<String, Value>) -> OAuthSettings {
        let mut table = self.table(keys, "oauth");
        let mut settings = OAuthSettings::new();
        settings.client_id = self.text(&mut table, "clientId");
        settings.client_secret = self.text(&mut table, "clientSecret");
        settings.client_metadata_url = self.text(&mut table, "clientMetadataUrl");
        settings.scopes = self.texts(&mut table, "scopes");
        for key in table.keys() {
            self.unknown_key(&format!("`oauth.{key}`"));
        }
        settings
    }

    fn switch(&mut self, keys: &mut Map<String, Value>, key: &str, default: bool) -> bool {
        match keys.remove(key) {
            None => default,
            Some(Value::Bool(is_on)) => is_on,
            Some(_) => {
                self.problem(format!("`{key}`: expected true or false"));
                default
            }
        }
    }

    fn text(&mut self, keys: &mut Map<String, Value>, key: &str) -> Option<String> {
        let value = keys.remove(key)?;
        self.expand_variables(key, &value)
    }

    fn texts(&mut self, keys: &mut Map<String, Value>, key: &str) -> Vec<String> {
        match keys.remove(key) {
            None => Vec::new(),
            Some(Value::Array(values)) => {
                values.iter().filter_map(|value| self.expand_variables(key, value)).collect()
            }
            Some(_) => {
                self.problem(format!("`{key}`: expected an array of texts"));
                Vec::new()
            }
        }
    }

    fn table(&mut self, keys: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
        match keys.remove(key) {
            None => Map::new(),
            Some(Value::Object(table)) => table,
            Some(_) => {
                self.problem(format!("`{key}`: expected an object of texts"));
                Map::new()
            }
        }
    }

    fn text_table(&mut self, keys: &mut Map<String, Value>, key: &str) -> BTreeMap<String, String> {
        let table = self.table(keys, key);
        let texts = table
            .into_iter()
            .map(|(name, value)| (self.expand_variables(&format!("{key}.{name}"), &value), name));
        texts.filter_map(|(text, name)| Some((name, text?))).collect()
    }

    fn effect(&mut self, key: &str, value: &Value) -> Option<Effect> {
        let effect = serde_json::from_value(value.clone()).ok();
        if effect.is_none() {
            self.problem(format!("`{key}`: expected read, write, network or execute"));
        }
        effect
    }

    /// Returns a text with its variables. Its own text may be secret and is not repeated.
    fn expand_variables(&mut self, key: &str, value: &Value) -> Option<String> {
        let Value::String(text) = value else {
            self.problem(format!("`{key}`: expected a text"));
            return None;
        };
        match expand(text, self.variable) {
            Ok(text) => Some(text),
            Err(name) => {
                self.problem(format!("`{key}`: the variable `{name}` is not set"));
                None
            }
        }
    }
}

/// Returns a text with the values of its variables, or the name of the first variable without a value.
fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, remainder)) = after.split_once('}') else { break };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
        expanded.push_str(before);
        expanded.push_str(&value.or_else(|| default.map(str::to_owned)).ok_or_else(|| name.to_owned())?);
        rest = remainder;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(servers: &Value) -> DeclaredServers {
        let variable = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        parse_declared_servers(&json!({"mcpServers": servers}).to_string(), variable)
    }

    #[test]
    fn servers_are_read_with_their_variables() {
        let declared = parsed(&json!({
            "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
                "oauth": {"clientId": "id", "clientSecret": "${TOKEN}", "scopes": ["read"]}},
            "files": {
                "command": "npx", "args": ["-y", "${PACKAGE:-server}"], "env": {"KEY": "${TOKEN}"}, "cwd": "sub",
                "allow": ["read_*"], "deny": ["read_all"], "effect": "network", "effects": {"read_file": "read"},
                "timeout": 60, "sandbox": false,
            },
            "off": {"command": "x", "disabled": true},
        }));
        assert_eq!(declared.problems, Vec::<String>::new());
        let server =
            StdioServer::new("npx", ["-y", "server"]).with_env("KEY", "s3cret").with_working_dir("sub");
        let transport = ServerTransport::Stdio(server.with_outside_sandbox(true));
        let files = ServerSpec::new("files".parse().unwrap(), transport)
            .with_filter(ToolFilter::new(["read_*"], ["read_all"]).unwrap())
            .with_effect(Effect::Network)
            .with_effect_of("read_file", Effect::Read)
            .with_call_timeout(Duration::from_secs(60));
        let http = HttpServer::new("https://example.com/mcp").unwrap();
        let http = http.with_header("Authorization", "Bearer s3cret").unwrap();
        let settings = OAuthSettings::new().with_client_id("id").with_client_secret("s3cret");
        let http = http.with_oauth(settings.with_scopes(vec!["read".into()]));
        let web = ServerSpec::new("web".parse().unwrap(), ServerTransport::Http(http));
        assert_eq!(declared.servers, [files, web]);
    }

    #[test]
    fn mistakes_are_named_and_cost_only_their_server() {
        for (server, problem) in [
            (json!(7), "expected an object with `command` or `url`"),
            (json!({}), "expected either `command` or `url`"),
            (json!({"command": "a", "url": "http://b"}), "expected either `command` or `url`"),
            (json!({"command": 1}), "`command`: expected a text"),
            (json!({"command": "a", "args": "b"}), "`args`: expected an array of texts"),
            (json!({"command": "a", "env": {"K": "${NONE}"}}), "`env.K`: the variable `NONE` is not set"),
            (json!({"command": "a", "effect": "all"}), "`effect`: expected read, write, network or execute"),
            (json!({"command": "a", "timeout": 0}), "`timeout`: expected 1 to 86400 seconds"),
            (json!({"command": "a", "sandbox": "no"}), "`sandbox`: expected true or false"),
            (json!({"command": "a", "allow": ["["]}), "invalid pattern \"[\" for tools"),
            (json!({"type": "sse", "url": "http://a"}), "the transport `sse` ended"),
            (json!({"type": "ws", "url": "http://a"}), "unknown type `ws`; expected `stdio` or `http`"),
            (json!({"url": "http://me:s3cret@a"}), "invalid URL of a server"),
        ] {
            let declared = parsed(&json!({"bad": server, "good": {"command": "x"}}));
            let found = declared.problems.join("\n");
            assert!(found.contains(&format!("server `bad`: {problem}")), "{server}: {found}");
            assert!(!found.contains("s3cret"), "{found}");
            let names: Vec<&str> = declared.servers.iter().map(|server| server.name.as_str()).collect();
            assert_eq!(names, ["good"], "{server}");
        }
        for (text, problem) in [
            ("", "expected JSON: "),
            ("[]", "expected a JSON object with `mcpServers`"),
            ("{}", "expected an object `mcpServers`"),
        ] {
            let declared = parse_declared_servers(text, |_| None);
            assert!(declared.problems[0].starts_with(problem) && declared.servers.is_empty(), "{declared:?}");
        }
        assert!(parsed(&json!({"a__b": {"command": "x"}})).problems[0].contains("invalid server name"));
    }

    #[test]
    fn unknown_keys_are_warnings() {
        for (server, warning) in [
            (json!({"command": "a", "autoApprove": ["x"]}), "`autoApprove`"),
            (json!({"url": "http://a", "oauth": {"clientID": "x"}}), "`oauth.clientID`"),
        ] {
            let declared = parsed(&json!({"one": server}));
            assert_eq!(declared.problems, Vec::<String>::new(), "{server}");
            assert_eq!(declared.servers.len(), 1, "{server}");
            let [found] = declared.warnings.as_slice() else { panic!("{server}: {declared:?}") };
            let expected = format!("server `one`: ignored unknown key {warning}");
            assert!(found.starts_with(&expected), "{found}");
        }
    }

    #[test]
    fn unknown_keys_beside_the_servers_are_warnings() {
        let server = json!({"one": {"command": "a"}});
        for (file, servers, unknown) in [
            (json!({"mcpServers": server, "$schema": "https://example.com/mcp.json"}), 1, None),
            (json!({"mcpServers": server, "inputs": []}), 1, Some("inputs")),
            (json!({"mcpServers": server, "mcpserver": server}), 1, Some("mcpserver")),
            (json!({"servers": server}), 0, Some("servers")),
        ] {
            let declared = parse_declared_servers(&file.to_string(), |_| None);
            let warnings: Vec<String> =
                unknown.iter().map(|key| format!("ignored unknown key `{key}`")).collect();
            assert_eq!(declared.warnings, warnings, "{file}");
            assert_eq!(declared.servers.len(), servers, "{file}");
            assert_eq!(declared.problems.is_empty(), servers > 0, "{file}: {declared:?}");
        }
    }

    #[test]
    fn a_server_with_a_misspelt_key_is_left_out() {
        for (key, meant) in [("dney", "deny"), ("alow", "allow"), ("disbaled", "disabled"), ("agrs", "args")]
        {
            let declared = parsed(&json!({"one": {"command": "a", key: ["x"]}}));
            let expected = format!("server `one`: unknown key `{key}`; did you mean `{meant}`?");
            assert_eq!((declared.servers.len(), declared.problems), (0, vec![expected]));
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let text = "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
        let declared = parse_declared_servers(text, |_| None);
        assert!(declared.problems.is_empty() && declared.servers.len() == 1, "{declared:?}");
    }

    #[test]
    fn texts_without_an_end_of_a_variable_stay_as_they_are() {
        let variable = |name: &str| (name == "A").then(|| "a".to_owned());
        for (text, expected) in
            [("${A}-${A}", "a-a"), ("$A ${A", "$A ${A"), ("${B:-}", ""), ("${B:-x${A}", "x${A")]
        {
            assert_eq!(expand(text, variable).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(expand("${B}", variable), Err("B".to_owned()));
    }
}
