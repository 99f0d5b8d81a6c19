//! `pintle serve`, and what its tokens can reach.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::sessions::segments;
use super::user::User;

/// A server in the project of its user.
pub(super) struct TestServer {
    child: Child,
    authority: String,
}

impl TestServer {
    pub(super) fn start(user: &User, flags: &[&str]) -> Self {
        Self::start_with_log(user, flags, Stdio::inherit())
    }

    /// Starts a server with another standard error output.
    pub(super) fn start_with_log(user: &User, flags: &[&str], log: Stdio) -> Self {
        let url = user.model.base_url(pintle_testkit::Dialect::AnthropicMessages);
        let mut command = user.command(&["serve", "--listen", "127.0.0.1:0", "--provider", "anthropic"]);
        command.args(["--base-url", &url]).args(flags).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let authority = line.split_once("://").and_then(|(_, line)| line.split_once('/'));
        Self { authority: authority.unwrap_or_else(|| panic!("{line}")).0.to_owned(), child }
    }

    /// Sends a request with a token, and returns the status and the body.
    pub(super) fn request(&self, token: &str, method: &str, path: &str, body: &Value) -> (u16, String) {
        let mut stream = self.send(token, method, path, body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Reads an event stream until it has contained all of these texts.
    pub(super) fn follow_until(&self, token: &str, path: &str, texts: &[&str]) {
        let stream = self.send(token, "GET", path, &json!({}));
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let (mut lines, mut seen) = (BufReader::new(stream).lines(), String::new());
        while !texts.iter().all(|text| seen.contains(text)) {
            seen.push_str(&lines.next().unwrap_or_else(|| panic!("{seen}")).unwrap());
        }
    }

    /// Creates a session with a first message and returns its path.
    pub(super) fn create_with(&self, token: &str, text: &str) -> String {
        let (status, body) = self.request(token, "POST", "/v1/sessions", &json!({"message": {"text": text}}));
        assert_eq!(status, 201, "{body}");
        session_path(&body)
    }

    /// Returns the address and port.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) fn send(&self, token: &str, method: &str, path: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(&self.authority).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.authority,
            body.len()
        )
        .unwrap();
        stream
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of a session that an answer describes.
pub(super) fn session_path(body: &str) -> String {
    let session: Value = serde_json::from_str(body).unwrap();
    format!("/v1/sessions/{}", session["id"].as_str().unwrap_or_else(|| panic!("{body}")))
}

pub(super) fn token(user: &User, name: &str, flags: &[&str]) -> String {
    let printed = user.pintle(&[&["tokens", "add", name], flags].concat());
    printed.split_whitespace().find(|word| word.starts_with("pintle_")).unwrap().to_owned()
}

#[test]
fn a_token_works_only_where_its_server_lets_sessions_work() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    for name in ["other", ".ssh", "project/below"] {
        std::fs::create_dir_all(user.at(name)).unwrap();
    }
    std::os::unix::fs::symlink(user.at(".ssh"), user.project().join("link")).unwrap();
    let secret = token(&user, "ann", &["--scope", "read,run,approve"]);
    let of_tenant = token(&user, "bob", &["--scope", "read,run", "--tenant", "acme"]);
    let at = |name: &str| user.at(name).display().to_string();
    let create = |served: &TestServer, secret: &str, directory: &str| {
        served.request(secret, "POST", "/v1/sessions", &json!({"directory": directory}))
    };
    let served = TestServer::start(&user, &[]);
    for (directory, status) in [
        (at("project"), 201),
        (at("project/below"), 201),
        (at("project/../other"), 403),
        (at("project/link"), 403),
        (at(".config/pintle"), 403),
        (at(".ssh"), 403),
        (at(".local/state/pintle/sessions"), 403),
        ("/".to_owned(), 403),
        ("/proc/self".to_owned(), 422),
        (at("project/missing"), 400),
        (at("missing"), 403),
    ] {
        let (answered, body) = create(&served, &secret, &directory);
        assert_eq!(answered, status, "{directory}: {body}");
    }
    let (_, body) = create(&served, &secret, &at("project/below"));
    let id = serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap().to_owned();
    drop(served);
    // Hidden files stay hidden where a root has them, and an older session is read and not resumed.
    let (everywhere, of_acme) = (at(""), format!("acme={}", at("other")));
    let served = TestServer::start(&user, &["--root", &everywhere, "--root", &of_acme]);
    for hidden in [".ssh", ".config/pintle", ".local/state/pintle"] {
        let (answered, body) = create(&served, &secret, &at(hidden));
        assert!(matches!(answered, 400 | 403), "{hidden}: {answered} {body}");
    }
    assert_eq!(create(&served, &secret, &at("other")).0, 201);
    assert_eq!(create(&served, &of_tenant, &at("other")).0, 201);
    assert_eq!(create(&served, &of_tenant, &at("project")).0, 403);
    drop(served);
    let served = TestServer::start(&user, &["--root", &at("other")]);
    let path = format!("/v1/sessions/{id}");
    assert_eq!(served.request(&secret, "GET", &path, &json!({})).0, 200);
    let (answered, body) =
        served.request(&secret, "POST", &format!("{path}/submit"), &json!({"text": "Go on"}));
    assert_eq!(answered, 403, "{body}");
    for (method, route, body) in [
        ("GET", "diff?turns=0", json!({})),
        ("POST", "restore", json!({"turns": 0, "dry_run": true})),
        ("POST", "restore", json!({"turns": 0, "force": true})),
        ("POST", "fork", json!({"turns": 0})),
    ] {
        let (answered, answer) = served.request(&secret, method, &format!("{path}/{route}"), &body);
        assert_eq!(answered, 403, "{route} {body}: {answer}");
    }
}

#[test]
fn a_token_without_approve_widens_nothing_and_changes_are_on_record_under_its_name() {
    let user = User::new(&"[[turn]]\ntext = \"Done.\"\n".repeat(2));
    let runner = token(&user, "ann", &["--scope", "read,run"]);
    let approver = token(&user, "eve", &["--scope", "read,run,approve"]);
    let served = TestServer::start(&user, &[]);
    let create = |secret: &str, body: &Value| served.request(secret, "POST", "/v1/sessions", body);
    assert_eq!(create(&runner, &json!({"mode": "auto"})).0, 403);
    assert_eq!(create(&runner, &json!({"mode": "plan"})).0, 201);
    for (model, status) in [("no-such-model", 422), ("gpt-5.2", 422), ("opus", 201)] {
        let (answered, body) = create(&runner, &json!({"model": model}));
        assert!(answered == status && body.contains(model), "{model}: {answered} {body}");
    }
    let (status, body) = create(&runner, &json!({}));
    assert_eq!(status, 201, "{body}");
    let id = serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/sessions/{id}");
    let change = |secret: &str, mode: &str| served.request(secret, "PATCH", &path, &json!({"mode": mode})).0;
    assert_eq!(change(&runner, "auto"), 403);
    assert_eq!(change(&runner, "plan"), 200);
    assert_eq!(change(&runner, "edit"), 403, "it would be wider than now");
    assert_eq!(change(&approver, "edit"), 200);
    let set_model = |model: &str| served.request(&runner, "PATCH", &path, &json!({"model": model}));
    for (model, expected) in [("gpt-5.2", "anthropic"), ("no-such-model", "/v1/models")] {
        let (status, body) = set_model(model);
        assert_eq!(status, 422, "{model}: {body}");
        assert!(body.contains(model) && body.contains(expected), "{body}");
    }
    let (status, body) = set_model("opus");
    assert_eq!((status, body.contains("\"model\":\"claude-opus-5-5\"")), (200, true), "{body}");
    let fork = |id: &str, secret: &str| {
        served.request(secret, "POST", &format!("/v1/sessions/{id}/fork"), &json!({"turns": 0}))
    };
    // A fork has the rules and the sandbox of its origin.
    let (status, body) = create(&approver, &json!({"rules": {"allow": ["shell(ls *)"]}}));
    assert_eq!(status, 201, "{body}");
    let allowing: Value = serde_json::from_str(&body).unwrap();
    let unheld = user.run_command("Go").args(["--mode", "edit", "--no-sandbox", "--output", "json"]).output();
    let unheld: Value = serde_json::from_slice(&unheld.unwrap().stdout).unwrap();
    for origin in [&allowing["id"], &unheld["session_id"]] {
        let origin = origin.as_str().unwrap_or_else(|| panic!("{allowing} {unheld}"));
        let (status, body) = fork(origin, &runner);
        assert!(status == 403 && body.contains("the fork inherits"), "{origin}: {status} {body}");
        assert_eq!(fork(origin, &approver).0, 201, "{origin}");
    }
    let (status, body) = create(&approver, &json!({"rules": {"deny": ["shel"]}}));
    assert!(status == 400 && body.contains("of rules.deny") && !body.contains("--deny"), "{status} {body}");
    // A fork of a fork has the rules as well.
    let (_, body) = fork(allowing["id"].as_str().unwrap(), &approver);
    let forked: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(fork(forked["id"].as_str().unwrap(), &runner).0, 403, "{forked}");
    if pintle_test_conditions::BUBBLEWRAP.is_present() {
        assert_eq!(change(&approver, "auto"), 200);
        // A fork has the present mode of its origin.
        let (status, body) = fork(&id, &runner);
        assert!(status == 403 && body.contains("mode auto"), "{status} {body}");
        let (status, body) = fork(&id, &approver);
        assert_eq!(status, 201, "{body}");
        let (_, body) = served.request(&runner, "GET", &session_path(&body), &json!({}));
        assert!(body.contains("\"mode\":\"auto\""), "{body}");
        let output = user.run_command("Go").args(["--mode", "auto", "--output", "json"]).output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let wide = result["session_id"].as_str().unwrap_or_else(|| panic!("{result}"));
        assert_eq!((fork(wide, &runner).0, fork(wide, &approver).0), (403, 201));
    }
    let (_, audit) = served.request(&approver, "GET", &format!("{path}/audit"), &json!({}));
    assert!(audit.contains("\"ann\"") && audit.contains("\"eve\""), "{audit}");
}

#[test]
fn a_fork_has_the_mode_and_the_rules_of_its_origin() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let touch = "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = \"touch ran\" }\n";
    let user = User::new(&format!("{touch}[[turn]]\ntext = \"Done.\"\n"));
    let runner = token(&user, "ann", &["--scope", "read,run"]);
    let approver = token(&user, "eve", &["--scope", "read,run,approve"]);
    let denying = json!({"rules": {"deny": ["shell"]}});
    let create = |served: &TestServer, body: &Value| {
        let (status, body) = served.request(&approver, "POST", "/v1/sessions", body);
        assert_eq!(status, 201, "{body}");
        session_path(&body)
    };
    let fork = |served: &TestServer, path: &str| {
        let (status, body) = served.request(&runner, "POST", &format!("{path}/fork"), &json!({"turns": 0}));
        assert_eq!(status, 201, "{body}");
        session_path(&body)
    };
    let has_mode = |served: &TestServer, path: &str, mode: &str| {
        let (_, body) = served.request(&runner, "GET", path, &json!({}));
        assert!(body.contains(&format!("\"mode\":\"{mode}\"")), "{mode}: {body}");
    };

    // A narrower mode than the default, from the creation or from a change.
    let served = TestServer::start(&user, &[]);
    let asking = create(&served, &json!({"mode": "ask"}));
    has_mode(&served, &fork(&served, &asking), "ask");
    drop(served);
    let served = TestServer::start(&user, &["--mode", "auto"]);
    let planning = create(&served, &json!({"mode": "plan"}));
    has_mode(&served, &fork(&served, &fork(&served, &planning)), "plan");
    let changed = create(&served, &json!({}));
    assert_eq!(served.request(&runner, "PATCH", &changed, &json!({"mode": "plan"})).0, 200);
    has_mode(&served, &fork(&served, &changed), "plan");

    // The denials hold in forks, and in the session itself after a restart.
    let denied = create(&served, &denying);
    let forked = fork(&served, &fork(&served, &denied));
    drop(served);
    let served = TestServer::start(&user, &["--mode", "auto"]);
    let (status, body) = served.request(&runner, "POST", &format!("{forked}/submit"), &json!({"text": "Go"}));
    assert_eq!(status, 202, "{body}");
    served.follow_until(&runner, &format!("{forked}/events"), &["PROCESSING_END"]);
    assert!(!user.project().join("ran").exists());
    let (_, journal) = served.request(&runner, "GET", &format!("{forked}/journal"), &json!({}));
    assert!(journal.contains("\"permission\":\"deny\""), "{journal}");
    drop(served);
    // The denials also hold in a fork by the command.
    let id = denied.rsplit('/').next().unwrap();
    let user = user.with_turns(&format!("{touch}[[turn]]\ntext = \"Done.\"\n"));
    let output = user.run_command("Go").args(["--fork", id, "--mode", "auto"]).output().unwrap();
    assert!(!user.project().join("ran").exists(), "{output:?}");
}

#[test]
fn no_server_beyond_loopback_runs_commands_unheld_and_unasked() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    token(&user, "ann", &["--scope", "run"]);
    let flags =
        ["serve", "--listen", "0.0.0.0:0", "--host", "here", "--no-tls", "--no-sandbox", "--mode", "auto"];
    let output = user.command(&flags).args(["--provider", "anthropic"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("--allow-unsandboxed-network"), "{said}");

    // The same by the configuration, and by a worker that authenticates no requests.
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::write(user.at(".config/pintle/config.toml"), "sandbox = \"off\"\nmode = \"auto\"\n").unwrap();
    let by_configuration = "give --sandbox auto, since the configuration turns the sandbox off";
    for (flags, remedy) in [
        (&["serve", "--listen", "0.0.0.0:0", "--host", "here", "--no-tls"][..], by_configuration),
        (&["worker", "--listen", "0.0.0.0:0"], by_configuration),
        (&["worker", "--listen", "0.0.0.0:0", "--no-sandbox"], "leave out --no-sandbox"),
    ] {
        let output = user.command(flags).args(["--provider", "anthropic"]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        let is_refused = output.status.code() == Some(2) && error.contains("--allow-unsandboxed-network");
        assert!(is_refused && error.contains(remedy), "{flags:?}: {error}");
    }
}

/// Returns the author of the newest input of this kind in a journal.
fn author_of(journal: &str, input: &str) -> Option<String> {
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let line = lines.rev().find(|line| line["input"] == input)?;
    Some(line["author"].as_str()?.to_owned())
}

#[test]
fn each_change_is_on_record_with_the_principal_that_made_it() {
    let user = User::new(&"[[turn]]\ntext = \"Done.\"\n".repeat(3));
    let ann = token(&user, "ann", &["--scope", "read,run"]);
    let eve = token(&user, "eve", &["--scope", "read,run"]);
    let served = TestServer::start(&user, &[]);
    let hello = json!({"message": {"text": "Hello"}});
    let (status, body) = served.request(&ann, "POST", "/v1/sessions", &hello);
    assert_eq!(status, 201, "{body}");
    let id = serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/sessions/{id}");
    let read = |what: &str| served.request(&ann, "GET", &format!("{path}/{what}"), &json!({})).1;
    let wait_for = |what: &str, is_there: &dyn Fn(&str) -> bool| {
        let started = std::time::Instant::now();
        while !is_there(&read("journal")) {
            assert!(started.elapsed().as_secs() < 60, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let replies = |journal: &str| journal.matches("\"input\":\"model_replied\"").count();
    wait_for("the first answer", &|journal| replies(journal) == 1);
    for (method, route, body, input) in [
        ("POST", "/submit", json!({"text": "Hello again"}), "submit"),
        ("PATCH", "", json!({"model": "claude-opus-4-6"}), "configure"),
        ("PATCH", "", json!({"effort": "low"}), "configure"),
        ("POST", "/compact", json!({}), "compact"),
        ("POST", "/interrupt", json!({}), "interrupt"),
        ("POST", "/rewind", json!({"turns": 2}), "rewind"),
        ("POST", "/abort", json!({}), "abort"),
    ] {
        let before = read("journal").lines().count();
        let (status, answer) = served.request(&eve, method, &format!("{path}{route}"), &body);
        assert!(matches!(status, 200 | 202), "{route} {body}: {status} {answer}");
        if route == "/interrupt" {
            // Nothing runs, so it changes nothing.
            continue;
        }
        let is_new = |journal: &str| {
            let new: Vec<&str> = journal.lines().skip(before).collect();
            author_of(&new.join("\n"), input).as_deref() == Some("eve")
        };
        wait_for(&format!("{route} {body}"), &is_new);
        if route == "/submit" {
            wait_for("the second answer", &|journal| replies(journal) == 2);
            let history: Value = serde_json::from_str(&read("history")).unwrap();
            let authors: Vec<&Value> =
                history["turns"].as_array().unwrap().iter().map(|turn| &turn["author"]).collect();
            assert_eq!(authors, [&json!("ann"), &Value::Null, &json!("eve"), &Value::Null], "{history}");
            served.follow_until(&ann, &format!("{path}/events"), &[r#""author":"ann""#, r#""author":"eve""#]);
        }
    }
    assert!(!read("journal").contains(r#""input":"interrupt""#));
}

#[test]
fn a_connection_with_tls_has_http2_and_several_streams() {
    if !pintle_test_conditions::HTTP2_CLIENT.is_present() {
        return;
    }
    let user = User::new(&"[[turn]]\ntext = \"Done.\"\n".repeat(2));
    let ann = token(&user, "ann", &["--scope", "read,run"]);
    let (certificate, key) = (user.at("server.pem"), user.at("server.key"));
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let mut made = Command::new("openssl");
    made.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    made.args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]);
    let made = made.args(["-keyout", key, "-out", certificate]).output().unwrap();
    assert!(made.status.success(), "{made:?}");

    let served = TestServer::start(&user, &["--tls-cert", certificate, "--tls-key", key]);
    let at = |path: &str| format!("https://{}{path}", served.authority);
    let curl = |arguments: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["--disable", "--silent", "--show-error", "--http2", "--max-time", "60"]);
        curl.args(["--noproxy", "*", "--cacert", certificate]);
        curl.args(["--header", &format!("authorization: Bearer {ann}")]).args(arguments);
        curl
    };
    // Two requests in one connection.
    let models = at("/v1/models");
    let form = "%{http_version} %{num_connects} %{http_code}\n";
    let mut twice = curl(&["--write-out", form]);
    let output =
        twice.args(["--output", "/dev/null", &models, "--output", "/dev/null", &models]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 1 200\n2 0 200\n", "{output:?}");

    let create = || {
        let message = json!({"message": {"text": "Go"}}).to_string();
        let url = at("/v1/sessions");
        let arguments = ["--header", "content-type: application/json", "--data", &message, &url];
        let output = curl(&arguments).output().unwrap();
        let body = String::from_utf8(output.stdout).unwrap();
        session_path(&body).rsplit('/').next().unwrap().to_owned()
    };
    let (one, other) = (create(), create());
    let url = at(&format!("/v1/streams?follow=a:session:{one},b:session:{other},all:sessions"));
    let mut child = curl(&["--no-buffer", &url]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut seen, mut ended) = (String::new(), [false, false]);
    let mut stream = String::new();
    while ended != [true, true] || !seen.contains(r#""stream":"all""#) {
        let line = lines.next().unwrap_or_else(|| panic!("{seen}")).unwrap();
        if let Some(data) = line.strip_prefix("data: ") {
            let data: Value = serde_json::from_str(data).unwrap();
            // The line before the event names its stream.
            if let Some(name) = data["stream"].as_str() {
                stream = name.to_owned();
            } else if data["kind"] == "PROCESSING_END" {
                ended[usize::from(stream == "b")] = true;
            }
        }
        seen.push_str(&line);
        seen.push('\n');
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_costs_of_a_deleted_session_stay() {
    let user = User::new(&"[[turn]]\ntext = \"Done.\"\n".repeat(2));
    let eve = token(&user, "eve", &["--scope", "read,run,admin"]);
    let served = TestServer::start(&user, &[]);
    let costs = || {
        let (status, body) = served.request(&eve, "GET", "/v1/costs", &json!({}));
        assert_eq!(status, 200, "{body}");
        let mut costs: Value = serde_json::from_str(&body).unwrap();
        for day in costs["days"].as_array_mut().unwrap() {
            // The last digit of a sum depends on its order.
            day["cost_usd"] = json!((day["cost_usd"].as_f64().unwrap() * 1e9).round());
        }
        costs
    };
    let paths = ["Go", "Go again"].map(|text| {
        let path = served.create_with(&eve, text);
        served.follow_until(&eve, &format!("{path}/events"), &["PROCESSING_END"]);
        path
    });
    let before = costs();
    assert_eq!((&before["sessions"], &before["is_complete"]), (&json!(2), &json!(true)), "{before}");
    let responses = |costs: &Value| -> u64 {
        costs["days"].as_array().unwrap().iter().filter_map(|day| day["responses"].as_u64()).sum()
    };
    assert_eq!(responses(&before), 2, "{before}");
    for path in &paths {
        let (status, body) = served.request(&eve, "DELETE", path, &json!({}));
        assert_eq!(status, 204, "{body}");
        assert_eq!(served.request(&eve, "GET", path, &json!({})).0, 404);
        assert_eq!(costs()["days"], before["days"], "after the deletion of {path}");
    }
    // The kept costs are no sessions.
    let pruned = user.pintle(&["sessions", "prune", "--all", "--keep", "0"]);
    assert!(pruned.starts_with("deleted 0 of "), "{pruned}");
    assert_eq!(costs(), before);
}

#[test]
fn a_damaged_session_is_read_and_forked_up_to_the_damage() {
    let user = User::new(&"[[turn]]\ntext = \"Done.\"\n".repeat(3));
    let ann = token(&user, "ann", &["--scope", "read,run,approve"]);
    let bob = token(&user, "bob", &["--scope", "read,run"]);
    let output = user.run_command("First").args(["--output", "json"]).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = result["session_id"].as_str().unwrap_or_else(|| panic!("{result}"));
    assert!(user.run_command("Second").args(["--resume", id]).status().unwrap().success());
    // A crash of the machine leaves zeros.
    let last = segments(&user, id).pop().unwrap();
    let mut bytes = std::fs::read(&last).unwrap();
    bytes[..300].fill(0);
    std::fs::write(&last, bytes).unwrap();

    let served = TestServer::start(&user, &[]);
    let path = format!("/v1/sessions/{id}");
    let get = |what: &str| served.request(&ann, "GET", &format!("{path}/{what}"), &json!({}));
    let (status, body) = get("history");
    assert_eq!(status, 200, "{body}");
    let history: Value = serde_json::from_str(&body).unwrap();
    assert!(body.contains("First") && !body.contains("Second") && history["damage"].is_string(), "{body}");
    served.follow_until(&ann, &format!("{path}/events"), &["PROCESSING_END", "event: problem"]);
    for (format, expected) in [("jsonl", "First"), ("markdown", "cannot be read"), ("html", "cannot be read")]
    {
        let (status, body) = get(&format!("export?format={format}"));
        assert!(status == 200 && body.contains(expected), "{format}: {status} {body}");
    }
    // The session itself does not continue, and the client reads how it can.
    let remedy = format!("`POST {path}/fork` with `{{\\\"turns\\\": 2}}`");
    for (method, what, body) in [
        ("POST", "rewind", json!({"turns": 1})),
        ("POST", "submit", json!({"text": "Third"})),
        ("GET", "diff?turns=0", json!({})),
        ("POST", "restore", json!({"turns": 0})),
        ("POST", "fork", json!({"turns": 3})),
    ] {
        let (status, answer) = served.request(&ann, method, &format!("{path}/{what}"), &body);
        let is_explained = answer.contains("is damaged at line") && answer.contains(&remedy);
        assert!(status == 409 && is_explained && !answer.contains("pintle "), "{what}: {status} {answer}");
    }
    // The damaged part may contain denials.
    let (status, body) = served.request(&bob, "POST", &format!("{path}/fork"), &json!({"turns": 2}));
    assert!(status == 403 && body.contains("is damaged") && body.contains("`approve`"), "{status} {body}");
    let fork = |turns: u32| served.request(&ann, "POST", &format!("{path}/fork"), &json!({"turns": turns}));
    let (status, body) = fork(2);
    assert_eq!(status, 201, "{body}");
    let forked = session_path(&body);
    let (status, body) = served.request(&ann, "POST", &format!("{forked}/submit"), &json!({"text": "Third"}));
    assert_eq!(status, 202, "{body}");
    served.follow_until(&ann, &format!("{forked}/events"), &["PROCESSING_END"]);
    let request = user.request(2);
    assert!(
        request.contains("First") && request.contains("Third") && !request.contains("Second"),
        "{request}"
    );
}

/// Writes files below the home of the user, with their directories.
fn write_below_home(user: &User, files: &[(&str, &str)]) {
    for (name, text) in files {
        std::fs::create_dir_all(user.at(name).parent().unwrap()).unwrap();
        std::fs::write(user.at(name), text).unwrap();
    }
}

#[test]
fn hidden_and_denied_files_are_neither_shown_nor_restored() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(
        "[[turn]]\n[[turn.call]]\ntool = \"Write\"\n\
         arguments = { file_path = \"visible\", content = \"visible-after\" }\n[[turn]]\ntext = \"Done.\"\n",
    );
    let ann = token(&user, "ann", &["--scope", "read,run"]);
    let rules = (".config/pintle/rules.toml", "deny = [\"@read(**/.env)\"]\n");
    let before =
        [(".ssh/key", "key-before"), (".env", "env-before"), (".pintle/rules.toml", "# rules-before\n")];
    write_below_home(&user, &[&before[..], &[rules, ("visible", "visible-before")]].concat());
    let mut command = user.run_command("Go");
    let output = command.args(["--output", "json"]).current_dir(user.at("")).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = result["session_id"].as_str().unwrap_or_else(|| panic!("{output:?}"));
    let after = [(".ssh/key", "key-after"), (".env", "env-after"), (".pintle/rules.toml", "# rules-after\n")];
    write_below_home(&user, &after);
    token(&user, "eve", &["--scope", "read"]);
    let tokens = || std::fs::read_to_string(user.at(".config/pintle/tokens.json")).unwrap();
    let tokens_before = tokens();

    let home = user.at("").display().to_string();
    let served = TestServer::start(&user, &["--root", &home]);
    let path = format!("/v1/sessions/{id}");
    let (status, diff) = served.request(&ann, "GET", &format!("{path}/diff"), &json!({}));
    assert!(status == 200 && diff.contains("visible-before") && diff.contains("visible-after"), "{diff}");
    for secret in ["key-", "env-", "tokens.json", ".ssh"] {
        assert!(!diff.contains(secret), "{secret}: {diff}");
    }
    let forced = json!({"turns": 0, "force": true});
    let (status, done) = served.request(&ann, "POST", &format!("{path}/restore"), &forced);
    assert_eq!(status, 200, "{done}");
    let read = |name: &str| std::fs::read_to_string(user.at(name)).unwrap();
    assert_eq!(read("visible"), "visible-before", "{done}");
    for (name, text) in after {
        assert_eq!(read(name), text, "{done}");
    }
    assert_eq!(tokens(), tokens_before);
}

#[test]
fn files_that_flags_of_a_server_name_are_hidden_from_its_sessions() {
    let file_tools = "[[turn]]\n\
        [[turn.call]]\ntool = \"Read\"\narguments = { file_path = \"tokens.json\" }\n\
        [[turn.call]]\ntool = \"Write\"\narguments = { file_path = \"tokens.json\", content = \"{}\" }\n\
        [[turn.call]]\ntool = \"Read\"\narguments = { file_path = \"audit.jsonl\" }\n";
    let command = "[[turn.call]]\ntool = \"Bash\"\n\
        arguments = { command = \"cat tokens.json audit.jsonl; echo x >>tokens.json; true\" }\n";
    let end = "[[turn]]\ntext = \"Done.\"\n";
    for (flags, calls) in [
        (["--mode", "auto"].as_slice(), format!("{file_tools}{command}{end}")),
        (["--no-sandbox"].as_slice(), format!("{file_tools}{end}")),
    ] {
        if flags.contains(&"auto") && !pintle_test_conditions::BUBBLEWRAP.is_present() {
            continue;
        }
        let user = User::new(&calls);
        let secret = token(&user, "name-in-the-file", &["--scope", "read,run,approve"]);
        let tokens = user.project().join("tokens.json");
        std::fs::copy(user.at(".config/pintle/tokens.json"), &tokens).unwrap();
        let before = std::fs::read_to_string(&tokens).unwrap();
        let named = ["--tokens", "tokens.json", "--audit-log", "audit.jsonl"];
        let served = TestServer::start(&user, &[flags, &named[..]].concat());
        let path = served.create_with(&secret, "Go");
        served.follow_until(&secret, &format!("{path}/events"), &["PROCESSING_END"]);
        let request = user.request(1);
        assert!(request.matches("is hidden").count() >= 3, "{flags:?}: {request}");
        assert!(!request.contains("name-in-the-file"), "{flags:?}: {request}");
        assert_eq!(std::fs::read_to_string(&tokens).unwrap(), before, "{flags:?}");
    }
}

/// Waits until this number of calls of a session waits for a decision, and returns their descriptions.
fn wait_for_approvals(served: &TestServer, token: &str, path: &str, count: usize) -> Vec<Value> {
    let started = std::time::Instant::now();
    loop {
        let (_, body) = served.request(token, "GET", &format!("{path}/approvals"), &json!({}));
        let list: Value = serde_json::from_str(&body).unwrap();
        let approvals = list["approvals"].as_array().unwrap_or_else(|| panic!("{body}"));
        if approvals.len() == count {
            return approvals.clone();
        }
        assert!(started.elapsed().as_secs() < 60, "{body}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn an_approval_holds_for_the_file_that_the_name_led_to() {
    let calls = ["here/x", "file"].map(|name| {
        format!(
            "[[turn.call]]\ntool = \"Write\"\narguments = {{ file_path = \"{name}\", content = \"x\" }}\n"
        )
    });
    let turns = format!("[[turn]]\n{}[[turn]]\ntext = \"Done.\"\n", calls.concat());
    for is_redirected in [false, true] {
        let user = User::new(&turns);
        for name in ["project/inside", "outside"] {
            std::fs::create_dir(user.at(name)).unwrap();
        }
        let link = |name: &str, target: &str| {
            let path = user.project().join(name);
            let _missing = std::fs::remove_file(&path);
            std::os::unix::fs::symlink(target, path).unwrap();
        };
        link("here", "inside");
        link("file", "inside/y");
        let eve = token(&user, "eve", &["--scope", "read,run,approve"]);
        let served = TestServer::start(&user, &[]);
        let wanted = json!({"message": {"text": "Go"}, "mode": "ask"});
        let (status, body) = served.request(&eve, "POST", "/v1/sessions", &wanted);
        assert_eq!(status, 201, "{body}");
        let path = session_path(&body);
        let approvals = wait_for_approvals(&served, &eve, &path, 2);
        if is_redirected {
            link("here", "../outside");
            link("file", "../outside/y");
        }
        for approval in approvals {
            let decision = json!({"fingerprint": approval["fingerprint"], "decision": "approve"});
            let call = approval["call_id"].as_str().unwrap();
            let (status, body) = served.request(&eve, "POST", &format!("{path}/approvals/{call}"), &decision);
            assert_eq!(status, 202, "{body}");
        }
        served.follow_until(&eve, &format!("{path}/events"), &["PROCESSING_END"]);
        let answered = user.request(1);
        for name in ["x", "y"] {
            assert!(!user.at("outside").join(name).exists(), "{name}: {answered}");
            let inside = user.project().join("inside").join(name);
            assert_eq!(inside.exists(), !is_redirected, "{name}: {answered}");
        }
        let refusals =
            answered.matches("now leads to another location than when the call was decided on").count();
        assert_eq!(refusals, if is_redirected { 2 } else { 0 }, "{answered}");
    }
}
