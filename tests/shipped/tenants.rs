//! Tenants and grants of `pintle serve`, and clients without a token.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{TestServer, session_path, token};
use super::user::User;

/// Reads a file of another directory by a command and by a tool.
const READING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "cat ../bolt/secret" }
    [[turn.call]]
    tool = "Read"
    arguments = { file_path = "../bolt/secret" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_tenant_does_not_read_the_root_of_another() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(&READING.repeat(2));
    for tenant in ["acme", "bolt"] {
        std::fs::create_dir(user.at(tenant)).unwrap();
    }
    std::fs::write(user.at("bolt/secret"), "content-of-bolt").unwrap();
    let tokens =
        ["acme", "bolt"].map(|tenant| token(&user, tenant, &["--scope", "read,run", "--tenant", tenant]));
    let roots = ["acme", "bolt"].map(|tenant| format!("{tenant}={}", user.at(tenant).display()));
    let served = TestServer::start(&user, &["--mode", "auto", "--root", &roots[0], "--root", &roots[1]]);
    for (number, tenant) in ["acme", "bolt"].into_iter().enumerate() {
        let secret = &tokens[number];
        let directory = user.at(tenant).display().to_string();
        let request = json!({"directory": directory, "message": {"text": "Go"}});
        let (status, body) = served.request(secret, "POST", "/v1/sessions", &request);
        assert_eq!(status, 201, "{body}");
        served.follow_until(secret, &format!("{}/events", session_path(&body)), &["PROCESSING_END"]);
        let results = user.request(2 * number + 1);
        let count = results.matches("content-of-bolt").count();
        assert!(if tenant == "bolt" { count >= 2 } else { count == 0 }, "{tenant}: {results}");
        assert_eq!(results.contains("is hidden from this session"), tenant == "acme", "{tenant}: {results}");
    }
}

#[test]
fn a_tenant_chooses_no_other_environment() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let secret = token(&user, "bob", &["--scope", "read,run,approve", "--tenant", "acme"]);
    let served = TestServer::start(&user, &[]);
    let create = |environment: &str| {
        served.request(&secret, "POST", "/v1/sessions", &json!({"environment": environment}))
    };
    for environment in ["ssh:localhost", "docker:web"] {
        let (status, body) = create(environment);
        assert!(status == 403 && body.contains("tenants have no other"), "{environment}: {status} {body}");
    }
    let (status, body) = create("local");
    assert_eq!(status, 201, "{body}");
}

#[test]
fn the_cookie_of_a_page_is_no_token() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let secret = token(&user, "ann", &["--scope", "read"]);
    let served = TestServer::start(&user, &[]);
    let mut answer = String::new();
    let mut stream = served.send(&secret, "POST", "/v1/login", &json!({"token": secret}));
    stream.read_to_string(&mut answer).unwrap();
    let line = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("set-cookie:"));
    let cookie = line.unwrap_or_else(|| panic!("{answer}")).split_once(':').unwrap().1.trim();
    let attributes: Vec<&str> = cookie.split("; ").skip(1).collect();
    assert!(attributes.contains(&"HttpOnly") && attributes.contains(&"SameSite=Strict"), "{cookie}");
    let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
    assert!(!value.is_empty() && !value.contains(&secret) && !secret.contains(value), "{cookie}");
    let list = |header: &str| {
        let mut stream = TcpStream::connect(served.authority()).unwrap();
        let host = served.authority();
        write!(stream, "GET /v1/sessions HTTP/1.0\r\nhost: {host}\r\n{header}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(list(&format!("cookie: {name}={value}")), "200");
    assert_eq!(list(&format!("authorization: Bearer {value}")), "401", "it is good for pages only");
    assert_eq!(list(&format!("cookie: {name}={secret}")), "401");
}

#[test]
fn slow_bodies_without_a_token_starve_no_other_client() {
    /// More than the server keeps.
    const CONNECTIONS: usize = 520;
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let secret = token(&user, "ann", &["--scope", "read"]);
    let served = TestServer::start(&user, &[]);
    let host = served.authority();
    let mut slow: Vec<TcpStream> = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(host).unwrap();
        let head = format!(
            "POST /v1/login HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).unwrap();
        slow.push(stream);
    }
    assert_eq!(served.request(&secret, "GET", "/v1/health", &json!({})).0, 200);
    assert_eq!(served.request(&secret, "GET", "/v1/sessions", &json!({})).0, 200);
    slow[0].set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut rest = Vec::new();
    let closed = slow[0].read_to_end(&mut rest);
    let is_waiting = closed.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(!is_waiting, "the oldest connection made way");
}

/// Creates a file by a command.
const TOUCHING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "touch asked" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn other_arguments_take_the_scope_run_and_are_judged_again() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(&TOUCHING.repeat(2));
    let approver = token(&user, "eve", &["--scope", "read,approve"]);
    let all = token(&user, "ann", &["--scope", "read,run,approve"]);
    let served = TestServer::start(&user, &["--mode", "ask", "--deny", "shell(touch denied)"]);
    for (number, file) in ["denied", "changed"].into_iter().enumerate() {
        let path = served.create_with(&all, "Go");
        let started = Instant::now();
        let approval = loop {
            let (_, body) = served.request(&all, "GET", &format!("{path}/approvals"), &json!({}));
            let mut list: Value = serde_json::from_str(&body).unwrap();
            match list["approvals"].as_array_mut().and_then(Vec::pop) {
                Some(approval) => break approval,
                None => assert!(started.elapsed() < Duration::from_secs(60), "{body}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let call = approval["call_id"].as_str().unwrap();
        let decision = json!({
            "fingerprint": approval["fingerprint"], "decision": "change",
            "arguments": {"command": format!("touch {file}")},
        });
        let decide =
            |secret: &str| served.request(secret, "POST", &format!("{path}/approvals/{call}"), &decision);
        let (status, body) = decide(&approver);
        assert_eq!(status, 403, "{body}");
        let (status, body) = decide(&all);
        assert_eq!(status, 202, "{body}");
        served.follow_until(&all, &format!("{path}/events"), &["PROCESSING_END"]);
        let result = user.request(2 * number + 1);
        assert_eq!(user.project().join(file).exists(), file == "changed", "{result}");
        assert!(!user.project().join("asked").exists(), "{result}");
    }
}

/// Writes a file in the directory of the grant, and one outside.
const WRITING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Write"
    arguments = { file_path = "src/made", content = "x" }
    [[turn.call]]
    tool = "Write"
    arguments = { file_path = "made", content = "x" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn the_grant_of_a_server_limits_its_sessions() {
    let user = User::new(WRITING);
    let secret = token(&user, "ann", &["--scope", "read,run,approve"]);
    let source = user.project().join("src");
    std::fs::create_dir(&source).unwrap();
    let grant = json!({
        "version": 1, "id": "g", "tools": ["*"], "reads": {"roots": ["/"]}, "writes": {"roots": [source]},
        "effect": "write", "network": true, "environments": ["local"],
    });
    let file = user.at("grant.json");
    std::fs::write(&file, grant.to_string()).unwrap();
    let served = TestServer::start(&user, &["--grant", file.to_str().unwrap()]);
    let path = served.create_with(&secret, "Go");
    served.follow_until(&secret, &format!("{path}/events"), &["PROCESSING_END"]);
    let result = user.request(1);
    assert!(source.join("made").exists() && !user.project().join("made").exists(), "{result}");
    assert!(result.contains("grant g"), "{result}");
    let (status, body) = served.request(&secret, "POST", "/v1/sessions", &json!({"grant": grant}));
    assert!(status == 400 && body.contains("grant: expected none"), "{status} {body}");
}
