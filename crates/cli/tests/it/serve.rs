//! `pintle serve`: sessions for clients elsewhere, which outlive the server.

mod image;
#[cfg(feature = "client")]
mod kills;
mod shared;

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::{Value, json};

use crate::harness::{Harness, pintle, run};

/// Time limit for a session to reach a state.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command that has to be asked about, and ends.
const TURNS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "echo made >made" }
    [[turn]]
    text = "It is made."
    "#;

pub(crate) fn command(harness: &Harness, flags: &[&str]) -> Command {
    let mut command = pintle(&["serve", "--provider", "anthropic", "--toolset", "spec"]);
    command.args(["--base-url", &harness.server.base_url(harness.dialect)]).args(flags);
    command.current_dir(harness.path("")).env("ANTHROPIC_API_KEY", crate::harness::KEY);
    command.env("PINTLE_STATE_DIR", harness.path(".state")).env("PINTLE_CONFIG_DIR", harness.path(".config"));
    command
}

/// Waits for the line with which a server says where it listens.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

/// A server on an address.
struct Served {
    child: Child,
    authority: String,
    token: String,
}

impl Served {
    fn start(harness: &Harness) -> Self {
        Self::of(command(harness, &["--listen", "127.0.0.1:0"]))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let line = first_line(&mut child);
        let (authority, token) = line
            .trim()
            .strip_prefix("http://")
            .unwrap()
            .split_once("/#token=")
            .unwrap_or_else(|| panic!("{line}"));
        Self { child, authority: authority.to_owned(), token: token.to_owned() }
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let stream = TcpStream::connect(&self.authority).unwrap();
        let bearer = format!("authorization: Bearer {}\r\n", self.token);
        exchange(stream, &self.authority, method, path, &bearer, body)
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.request("GET", path, None);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Waits until the session says so.
    fn wait(&self, id: &str, is_reached: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let session = self.get(&format!("/v1/sessions/{id}"));
            if is_reached(&session) {
                return session;
            }
            assert!(Instant::now() < end, "{session}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn signal(&mut self, signal: Signal) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn exchange(
    mut stream: impl std::io::Read + std::io::Write,
    host: &str,
    method: &str,
    path: &str,
    more: &str,
    body: Option<&Value>,
) -> (u16, String) {
    let body = body.map(Value::to_string).unwrap_or_default();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}content-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[test]
fn a_killed_server_leaves_its_sessions_to_the_next_one() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let mut served = Served::start(&harness);
    let wanted = json!({"message": {"text": "Make it"}, "mode": "ask"});
    let (status, body) = served.request("POST", "/v1/sessions", Some(&wanted));
    assert_eq!(status, 201, "{body}");
    let id = serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap().to_owned();
    let waiting = served.wait(&id, |session| session["pending_approvals"] == json!(1));
    assert_eq!((&waiting["mode"], &waiting["live"]), (&json!("ask"), &json!(true)), "{waiting}");
    served.signal(Signal::KILL);

    let mut served = Served::start(&harness);
    served.wait(&id, |session| session["pending_approvals"] == json!(1) && session["live"] == json!(true));
    let approvals = served.get(&format!("/v1/sessions/{id}/approvals"));
    let approval = &approvals["approvals"][0];
    assert_eq!(approval["tool_name"], "shell", "{approval}");
    let call = approval["call_id"].as_str().unwrap();
    let decision = json!({"fingerprint": approval["fingerprint"], "decision": "approve"});
    let (status, body) =
        served.request("POST", &format!("/v1/sessions/{id}/approvals/{call}"), Some(&decision));
    assert_eq!(status, 202, "{body}");
    served.wait(&id, |session| session["state"] == "IDLE" && session["pending_approvals"] == json!(0));
    assert_eq!(harness.read("made"), "made\n");
    assert_eq!(served.signal(Signal::TERM), Some(0));

    // It is a session like others.
    let mut shown = pintle(&["sessions", "show", &id]);
    shown.env("PINTLE_STATE_DIR", harness.path(".state"));
    let output = run(&mut shown);
    assert!(output.stdout.contains("It is made."), "{output:?}");
}

#[test]
fn files_of_a_session_are_compared_and_restored() {
    let turns = r#"
    [[turn]]
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "made.txt", content = "made\n" }
    [[turn]]
    text = "It is made."
    "#;
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut served = Served::start(&harness);
    let (_, body) = served.request("POST", "/v1/sessions", Some(&json!({"message": {"text": "Make it"}})));
    let id = serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap().to_owned();
    served.wait(&id, |session| session["state"] == "IDLE" && session["tokens"].as_u64() > Some(0));
    assert_eq!(harness.read("made.txt"), "made\n");

    let tools = served.get(&format!("/v1/sessions/{id}/tools"));
    let names: Vec<_> = tools["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("write_file")), "{tools}");
    let costs = served.get("/v1/costs?days=2");
    let day = &costs["days"][0];
    assert_eq!(
        (&day["responses"], &costs["sessions"], &costs["is_complete"]),
        (&json!(2), &json!(1), &json!(true))
    );
    assert!(day["cost_usd"].as_f64() > Some(0.0), "{costs}");

    let diff = served.get(&format!("/v1/sessions/{id}/diff"));
    let line = json!({"kind": "add", "text": "made"});
    let hunk = json!({"old_start": 0, "new_start": 1, "lines": [line]});
    assert_eq!(diff["files"], json!([{"path": "made.txt", "change": "added", "hunks": [hunk]}]), "{diff}");
    let checkpoints = served.get(&format!("/v1/sessions/{id}/checkpoints"));
    let first = &checkpoints["checkpoints"][0];
    assert_eq!(
        (&first["reason"], &first["id"]),
        (&json!("before_call"), &diff["checkpoint"]),
        "{checkpoints}"
    );

    let restore = |wanted: &Value| {
        let (status, body) = served.request("POST", &format!("/v1/sessions/{id}/restore"), Some(wanted));
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    let wanted = json!({"turns": 0, "conversation": true, "dry_run": true});
    let (status, plan) = restore(&wanted);
    let steps = json!([{"path": "made.txt", "action": "remove"}]);
    assert_eq!((status, &plan["dry_run"], &plan["files"]), (200, &json!(true), &steps), "{plan}");
    assert_eq!(harness.read("made.txt"), "made\n", "nothing is done");

    std::fs::write(harness.path("made.txt"), "mine\n").unwrap();
    let wanted = json!({"turns": 0, "conversation": true});
    let (status, problem) = restore(&wanted);
    assert_eq!(status, 409, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("made.txt"), "{problem}");
    assert_eq!(harness.read("made.txt"), "mine\n");

    let wanted = json!({"turns": 0, "conversation": true, "force": true});
    let (status, done) = restore(&wanted);
    assert_eq!((status, &done["files"], &done["turns"]), (200, &steps, &json!(0)), "{done}");
    assert!(!harness.path("made.txt").exists());
    assert_eq!(served.get(&format!("/v1/sessions/{id}/history"))["turns"], json!([]));
    let (status, undone) = restore(&json!({"checkpoint": done["undo"]}));
    assert_eq!((status, harness.read("made.txt").as_str()), (200, "mine\n"), "{undone}");
    for wrong in
        [json!({}), json!({"turns": 0, "checkpoint": "x"}), json!({"checkpoint": "x"}), json!({"turns": 99})]
    {
        let (status, problem) = restore(&wrong);
        assert_eq!(status, 400, "{wrong}: {problem}");
    }
    assert_eq!(served.signal(Signal::TERM), Some(0));
}

#[test]
fn a_session_is_created_with_what_it_may_do() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let mut served = Served::start(&harness);
    let create = |served: &Served, more: Value| {
        let mut wanted = json!({"message": {"text": "Make it"}, "mode": "ask"});
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        served.request("POST", "/v1/sessions", Some(&wanted))
    };
    for (more, said) in [
        (json!({"rules": {"allow": ["shell("]}}), "shell("),
        (json!({"environment": "moon"}), "moon"),
        (json!({"environment": "docker:none", "directory": "here"}), "absolute path"),
        (json!({"environment": "docker:none"}), "docker"),
        (json!({"grant": {"tools": 3}}), "grant"),
    ] {
        let (status, body) = create(&served, more);
        assert!(matches!(status, 400 | 500), "{status}: {body}");
        assert!(body.contains(said), "{said}: {body}");
    }
    let listed = served.get("/v1/sessions");
    assert_eq!(listed["sessions"], json!([]), "nothing is left of them");
    let id_of = |(status, body): (u16, String)| {
        assert_eq!(status, 201, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let ended = |session: &Value| session["state"] == "IDLE" && session["tokens"].as_u64() > Some(0);
    let denied = id_of(create(&served, json!({"rules": {"deny": ["shell"]}})));
    served.wait(&denied, ended);
    let grant = json!({
        "version": 1, "id": "g", "tools": ["*"], "reads": {"roots": ["/"]}, "writes": {"roots": ["/"]},
        "effect": "write", "network": false, "environments": ["local"],
    });
    let granted = id_of(create(&served, json!({"grant": grant.clone(), "rules": {"allow": ["shell"]}})));
    served.wait(&granted, ended);
    assert!(!harness.directory.path().join("made").exists(), "neither of them may");
    let allowed = id_of(create(&served, json!({"rules": {"allow": ["shell"]}, "environment": "local"})));
    served.wait(&allowed, ended);
    assert_eq!(harness.read("made"), "made\n", "nobody was asked");

    served.signal(Signal::KILL);
    // A server with a grant of its own lets no client replace it.
    let own = harness.path("grant.json");
    std::fs::write(&own, grant.to_string()).unwrap();
    let mut held =
        Served::of(command(&harness, &["--listen", "127.0.0.1:0", "--grant", own.to_str().unwrap()]));
    let (status, body) = create(&held, json!({"grant": grant}));
    assert!(status == 400 && body.contains("the grant of the program"), "{status}: {body}");
    held.signal(Signal::KILL);

    // The next server knows what they may do.
    let served = Served::start(&harness);
    let again = json!({"text": "Make it"});
    for id in [&denied, &granted] {
        let (status, body) = served.request("POST", &format!("/v1/sessions/{id}/submit"), Some(&again));
        assert_eq!(status, 202, "{body}");
        served.wait(id, |session| session["live"] == json!(true) && ended(session));
    }
    assert_eq!(harness.read("made"), "made\n");
}

/// Returns the command with writes beyond a limit of its files as errors, and not as its end.
fn with_limits(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args());
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(command.get_current_dir().unwrap());
    shell
}

#[test]
fn a_session_that_cannot_be_kept_is_none() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let served = Served::of(with_limits(&command(&harness, &["--listen", "127.0.0.1:0"])));
    let pid = Pid::from_raw(i32::try_from(served.child.id()).unwrap()).unwrap();
    let limit = |bytes: Option<u64>| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(pid), Resource::Fsize, limit).unwrap();
    };
    let create = || served.request("POST", "/v1/sessions", Some(&json!({})));
    assert_eq!(create().0, 201);
    // As on a full disk, nothing can be written.
    limit(Some(0));
    let (status, body) = create();
    assert!(status >= 500, "{status}: {body}");
    assert!(body.contains("cannot"), "{body}");
    limit(None);
    let listed = served.get("/v1/sessions");
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(create().0, 201);
}

#[test]
fn a_socket_serves_its_user_without_a_token() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let path = harness.path("server.sock");
    let flags = ["--socket", path.to_str().unwrap()];
    let mut child = command(&harness, &flags).stdout(Stdio::piped()).spawn().unwrap();
    let line = first_line(&mut child);
    assert!(line.starts_with("listening on "), "{line}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let stream = UnixStream::connect(&path).unwrap();
    let (status, body) = exchange(stream, "pintle", "GET", "/v1/models", "", None);
    assert!(status == 200 && body.contains("claude"), "{body}");
    let page = exchange(UnixStream::connect(&path).unwrap(), "pintle", "GET", "/", "", None);
    assert!(page.0 == 200 && page.1.contains("<!doctype html>"), "{page:?}");
    let second = run(&mut command(&harness, &flags));
    assert!(second.code == Some(2) && second.stderr.contains("another server listens there"), "{second:?}");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!path.exists(), "the socket is removed");
}

#[test]
fn what_cannot_be_served_is_said() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    for (flags, words) in [
        (&["--listen", "0.0.0.0:0"][..], "connections have to be encrypted"),
        (&["--listen", "0.0.0.0:0", "--no-tls"], "clients need tokens"),
        (&["--tls-cert", "made.txt"], "--tls-key"),
        (&["--tls-cert", "made.txt", "--tls-key", "made.txt"], "expected certificates in PEM"),
        (&["--tokens", "made.txt"], "open to others"),
        (&["--no-session"], "`pintle serve` takes no --no-session"),
        (&["--socket", "made.txt"], "the file exists and is not a socket"),
        (&["Make it"], "`pintle serve` takes no prompt"),
    ] {
        std::fs::write(harness.path("made.txt"), "mine").unwrap();
        let output = run(&mut command(&harness, flags));
        assert!(output.code == Some(2) && output.stderr.contains(words), "{flags:?}: {output:?}");
    }
    assert_eq!(harness.read("made.txt"), "mine");
}

/// Makes a certificate for the loopback interface.
fn certify(harness: &Harness, name: &str) -> (String, String) {
    let [certificate, key] = ["crt", "key"].map(|ending| format!("{name}.{ending}"));
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]);
    command.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", &key]);
    let output = run(command.args(["-out", &certificate]).current_dir(harness.path("")));
    assert_eq!(output.code, Some(0), "{output:?}");
    (certificate, key)
}

#[test]
fn other_machines_need_a_token_and_get_encryption() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let tokens = |flags: &[&str]| {
        let mut command = pintle(&["tokens"]);
        let output = run(command.args(flags).env("PINTLE_CONFIG_DIR", harness.path(".config")));
        assert_eq!(output.code, Some(0), "{output:?}");
        output.stdout
    };
    let secret = tokens(&["add", "ann", "--scope", "run,read", "--expires", "1d"]);
    assert!(!harness.read(".config/tokens.json").contains(secret.trim()), "only its hash is kept");
    assert!(tokens(&["list"]).starts_with("ann  read,run  until "), "{}", tokens(&["list"]));
    let (certificate, key) = certify(&harness, "first");
    let flags =
        ["--listen", "0.0.0.0:0", "--host", "127.0.0.1", "--tls-cert", &certificate, "--tls-key", &key];
    let mut child = command(&harness, &flags).stdout(Stdio::piped()).spawn().unwrap();
    let line = first_line(&mut child);
    let port = line.trim().trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    assert_eq!(line, format!("listening on https://0.0.0.0:{port}/\n"), "no token is shown");
    let curl = |certificate: &str, more: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", certificate]).args(more);
        run(command.arg(format!("https://127.0.0.1:{port}/v1/models")).current_dir(harness.path(""))).stdout
    };
    let bearer = format!("authorization: Bearer {}", secret.trim());
    assert_eq!(curl(&certificate, &["-H", &bearer]), "200");
    assert_eq!(curl(&certificate, &[]), "401");
    assert_eq!(curl(&certificate, &["-H", &bearer, "-H", "host: evil.example"]), "403");

    // A certificate that is renewed counts without a restart, and so does a token that is revoked.
    let (renewed, its_key) = certify(&harness, "second");
    for (from, to) in [(&renewed, &certificate), (&its_key, &key)] {
        std::fs::copy(harness.path(from), harness.path(to)).unwrap();
    }
    tokens(&["revoke", "ann"]);
    let end = Instant::now() + PATIENCE;
    while curl(&renewed, &["-H", &bearer]) != "401" {
        assert!(Instant::now() < end, "the new certificate is served, and the token is worth nothing");
        std::thread::sleep(Duration::from_millis(200));
    }
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let audit = harness.read(".state/serve-audit.jsonl");
    assert_eq!(audit, "", "nothing was changed, and requests without a token are only counted");
}

#[test]
fn tokens_are_named_once() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let tokens = |flags: &[&str]| {
        let mut command = pintle(&["tokens"]);
        run(command.args(flags).env("PINTLE_CONFIG_DIR", harness.path(".config")))
    };
    let mut unseen = pintle(&["tokens", "add", "ann"]);
    unseen
        .env("PINTLE_CONFIG_DIR", harness.path(".config"))
        .stdout(std::fs::File::create("/dev/full").unwrap());
    assert_eq!(unseen.stderr(Stdio::null()).status().unwrap().code(), Some(1), "it cannot be shown");
    assert_eq!(tokens(&["add", "ann", "--tenant", "blue", "--scope", "admin"]).code, Some(0));
    let listed: Value = serde_json::from_str(&tokens(&["list", "--output", "json"]).stdout).unwrap();
    assert_eq!(
        listed,
        json!([{"name": "ann", "scopes": ["admin"], "tenant": "blue", "expires": null, "expired": false}])
    );
    for (flags, words) in [
        (&["add", "ann"][..], "token `ann` already exists"),
        (&["add", "ben", "--scope", "root"], "invalid value 'root'"),
        (&["revoke", "ben"], "no token `ben` exists"),
    ] {
        let output = tokens(flags);
        assert!(output.code == Some(2) && output.stderr.contains(words), "{flags:?}: {output:?}");
    }
}
