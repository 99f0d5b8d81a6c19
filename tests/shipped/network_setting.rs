//! The setting `network` with lists of hosts: commands, web tools, servers and grants of the built command.

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::hosts_of_commands::start_server;
use super::user::User;

/// A server on this machine, and the runtime that it needs.
struct Served {
    port: u16,
    // Dropped first.
    _tasks: JoinSet<()>,
    _runtime: Runtime,
}

impl Served {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let mut tasks = JoinSet::new();
        let port = runtime.block_on(start_server(&mut tasks));
        Self { port, _tasks: tasks, _runtime: runtime }
    }

    /// Returns a script that requests the server and another host, and then fetches a page of another host.
    fn turns(&self) -> String {
        let port = self.port;
        format!(
            r#"
            [[turn]]
            [[turn.call]]
            tool = "Bash"
            arguments = {{ command = "env -u NO_PROXY -u no_proxy curl -sS -m 10 http://127.0.0.1:{port}/ http://other.example/ | sed s/served/qu''ux/" }}
            [[turn]]
            [[turn.call]]
            tool = "WebFetch"
            arguments = {{ url = "https://other.example/page", prompt = "x" }}
            [[turn]]
            text = "Done."
            "#
        )
    }

    fn lists(&self) -> String {
        format!("network = {{ allow = [\"127.0.0.1:{}\"], presets = [\"cargo\"] }}\n", self.port)
    }
}

/// Creates a user with this configuration.
fn user(turns: &str, config: &str) -> User {
    let user = User::new(turns);
    let file = user.at(".config/pintle/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, config).unwrap();
    user
}

#[test]
fn commands_and_web_tools_reach_the_hosts_of_the_setting() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let served = Served::start();
    let user = user(&served.turns(), &served.lists());
    user.run("Go");
    let result = user.request(1);
    assert!(result.contains("quux"), "{result}");
    assert!(result.contains("- other.example:80: no rule names it"), "{result}");
    let result = user.request(2);
    assert!(result.contains("other.example may not be reached: no rule names it"), "{result}");
}

/// A flag replaces the lists, and a grant narrows what is allowed.
#[test]
fn flags_and_grants_narrow_the_lists() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let served = Served::start();
    for (config, flags, network, is_served) in [
        (served.lists(), &["--network", "off"][..], "true".to_owned(), false),
        (served.lists(), &[], "false".to_owned(), false),
        (served.lists(), &[], "{\"allow\": [\"other.test\"]}".to_owned(), false),
        (served.lists(), &[], format!("{{\"allow\": [\"127.0.0.1:{}\"]}}", served.port), true),
        (
            String::new(),
            &["--network", "on"],
            format!("{{\"allow\": [\"127.0.0.1:{}\"]}}", served.port),
            true,
        ),
        (String::new(), &["--network", "on"], "{\"allow\": [\"other.test\"]}".to_owned(), false),
        (String::new(), &[], format!("{{\"allow\": [\"127.0.0.1:{}\"]}}", served.port), false),
    ] {
        let user = user(&served.turns(), &config);
        let granted = user.at("grant.json");
        let text = format!(
            r#"{{"version": 1, "id": "g", "tools": ["*"], "reads": {{"roots": ["/"]}}, "writes": {{"roots": ["/"]}},
                "effect": "execute", "network": {network}, "environments": ["local"]}}"#
        );
        std::fs::write(&granted, text).unwrap();
        let output = user.run_command("Go").args(flags).arg("--grant").arg(&granted).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{flags:?} {network}: {output:?}");
        let result = user.request(1);
        assert_eq!(result.contains("quux"), is_served, "{flags:?} {network}: {result}");
    }
}

#[test]
fn lists_of_hosts_are_refused_where_they_cannot_be_enforced() {
    let config = "network = { allow = [\"a.example\"] }\n";
    for flags in [
        &["--no-sandbox"][..],
        &["--sandbox", "writes"],
        &["--env", "docker:box"],
        &["--env", "ssh:host.invalid"],
    ] {
        let user = user("[[turn]]\ntext = \"Done.\"\n", config);
        let output = user.run_command("Go").args(flags).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {error}");
        assert!(error.contains("cannot limit the network to a list of hosts"), "{flags:?}: {error}");
        assert_eq!(user.model.requests().len(), 0, "{flags:?}");
    }
}

#[test]
fn a_server_of_another_host_is_left_out() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = user("[[turn]]\ntext = \"Done.\"\n", "network = { allow = [\"a.example\"] }\n");
    let declared = r#"{"mcpServers": {"far": {"url": "https://b.example/mcp"}}}"#;
    std::fs::write(user.at(".config/pintle/mcp.json"), declared).unwrap();
    let output = user.run_command("Go").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    let expected = "server `far` is left out: its host b.example may not be reached: no rule names it";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn an_invalid_host_is_a_problem_of_the_configuration() {
    let user = user("[[turn]]\ntext = \"Done.\"\n", "network = { allow = [\"https://a.example\"] }\n");
    let output = user.run_command("Go").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && error.contains("`network`: invalid host `https://a.example`"),
        "{error}"
    );
    assert_eq!(user.model.requests().len(), 0);
}

/// Rules of a project limit the network, and need no trust to do so.
#[test]
fn rules_limit_the_network_of_settings_and_flags() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let served = Served::start();
    let port = served.port;
    for (rules, flags, is_served) in [
        ("network = { allow = [\"other.test\"] }".to_owned(), &["--network", "on"][..], false),
        ("network = { allow = [\"other.test\"] }".to_owned(), &[], false),
        (format!("network = {{ allow = [\"127.0.0.1:{port}\"] }}"), &[], true),
        (format!("network = {{ allow = [\"127.0.0.1:{port}\"] }}"), &["--network", "on"], true),
        (format!("network = {{ allow = [\"127.0.0.1:{port}\"] }}"), &["--network", "off"], false),
    ] {
        let user = user(&served.turns(), &served.lists());
        std::fs::create_dir_all(user.project().join(".pintle")).unwrap();
        std::fs::write(user.project().join(".pintle/rules.toml"), &rules).unwrap();
        let output = user.run_command("Go").args(flags).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{flags:?} {rules}: {output:?}");
        let result = user.request(1);
        assert_eq!(result.contains("quux"), is_served, "{flags:?} {rules}: {result}");
    }
    let user = user(&served.turns(), "");
    std::fs::create_dir_all(user.project().join(".pintle")).unwrap();
    std::fs::write(user.project().join(".pintle/rules.toml"), "network = { allow = [\"a.example\"] }")
        .unwrap();
    let output = user.run_command("Go").arg("--no-sandbox").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("cannot limit the network to a list of hosts"), "{error}");
}
