//! Files of the user and of the project that cannot be understood.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;

use super::server::{TestServer, session_path, token};
use super::user::{KEY, User};

const ANSWER: &str = "[[turn]]\ntext = \"Done.\"";

/// The missing file could contain a denial.
#[test]
fn a_link_that_leads_nowhere_stops_the_run() {
    for file in [
        ".config/pintle/rules.toml",
        ".config/pintle/hooks.toml",
        ".config/pintle/budget.toml",
        ".config/pintle/config.toml",
        ".config/pintle/mcp.json",
        "project/.pintle/rules.toml",
        "project/.pintle/hooks.toml",
    ] {
        let user = User::new(ANSWER);
        std::fs::create_dir_all(user.at(file).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/nonexistent-volume/file", user.at(file)).unwrap();
        let output = user.run_command("Go").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let name = file.rsplit('/').next().unwrap();
        assert!(!output.status.success() && said.contains(name), "{file}: {said}");
        assert_eq!(user.model.requests().len(), 0, "{file}: the model is not asked");
    }
}

/// Each mistake is named with its line, by a run and by the checks of the installation.
#[test]
fn each_mistake_in_the_configuration_is_named() {
    let user = User::new(ANSWER);
    let file = user.at(".config/pintle/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "modle = 1\n[profile.review]\nmode = \"plan\"\n").unwrap();
    for arguments in [&["run", "Go"][..], &["doctor", "--offline"]] {
        let output = user.command(arguments).output().unwrap();
        let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(!output.status.success(), "{arguments:?}: {printed}");
        for part in ["config.toml: line 1,", "config.toml: line 2,", "did you mean `[profiles.review]`?"] {
            assert!(printed.contains(part), "{arguments:?}: {part}: {printed}");
        }
    }
}

/// Rules for one server would apply to the other.
#[test]
fn a_server_of_a_project_never_has_the_names_of_one_of_the_user() {
    let user = User::new(ANSWER);
    let server =
        |name: &str, program: &str| format!(r#"{{"mcpServers": {{"{name}": {{"command": "{program}"}}}}}}"#);
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::write(user.at(".config/pintle/mcp.json"), server("my-server", "mine")).unwrap();
    std::fs::write(user.project().join(".mcp.json"), server("my_server", "theirs")).unwrap();
    user.pintle(&["trust"]);
    let listed = user.pintle(&["mcp", "list"]);
    assert!(listed.contains("mine") && !listed.contains("theirs"), "{listed}");
    let left_out = listed.lines().find(|line| line.starts_with("left out")).unwrap();
    for named in [".mcp.json", "my_server", "my-server", ".config/pintle/mcp.json"] {
        assert!(left_out.contains(named), "{left_out}");
    }
}

/// Without a configuration and without a key, the ways to a model are named. A stored key is used from then on.
#[test]
fn a_first_start_names_the_ways_to_a_model() {
    let user = User::new(ANSWER);
    let without_key = |mut command: Command| {
        command.env_remove("ANTHROPIC_API_KEY");
        command
    };
    for arguments in [&["run", "Go"][..], &["ask", "Go"]] {
        let output = without_key(user.command(arguments)).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {printed}");
        for part in ["no API key found", "pintle login", "openai-compatible", "cargo in PATH: pintle demo"] {
            assert!(printed.contains(part), "{arguments:?}: {part}: {printed}");
        }
    }
    assert_eq!(user.model.requests().len(), 0);

    let mut login = without_key(user.command(&["login", "anthropic", "--stdin"]));
    let mut login = login.stdin(Stdio::piped()).spawn().unwrap();
    login.stdin.take().unwrap().write_all(format!("{KEY}\n").as_bytes()).unwrap();
    assert!(login.wait().unwrap().success());
    let output = without_key(user.run_command("Go")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("Done."));
}

/// The server was started in another project. A reopened session and a new one have the configuration of the same project.
#[test]
fn a_session_of_a_server_has_the_configuration_of_its_own_project() {
    let user = User::new(&"[[turn]]\ntext = \"Done.\"\n".repeat(2));
    let other = user.at("other");
    std::fs::create_dir(&other).unwrap();
    assert!(Command::new("git").args(["init", "--quiet"]).current_dir(&other).status().unwrap().success());
    for (project, toolset) in [(user.project(), "native"), (other.clone(), "spec")] {
        std::fs::create_dir(project.join(".pintle")).unwrap();
        std::fs::write(project.join(".pintle/config.toml"), format!("toolset = \"{toolset}\"\n")).unwrap();
    }
    let secret = token(&user, "ann", &["--scope", "read,run"]);
    let root = other.display().to_string();
    for is_reopened in [false, true] {
        let mut served = TestServer::start(&user, &["--root", &root]);
        let body = json!({"directory": root});
        let (status, body) = served.request(&secret, "POST", "/v1/sessions", &body);
        assert_eq!(status, 201, "{body}");
        let path = session_path(&body);
        if is_reopened {
            drop(served);
            served = TestServer::start(&user, &["--root", &root]);
        }
        let text = json!({"text": "Go"});
        let (status, body) = served.request(&secret, "POST", &format!("{path}/submit"), &text);
        assert_eq!(status, 202, "{body}");
        served.follow_until(&secret, &format!("{path}/events"), &["PROCESSING_END"]);
        let request = user.request(usize::from(is_reopened));
        assert!(request.contains("\"read_file\""), "{is_reopened}: {request}");
    }
}
