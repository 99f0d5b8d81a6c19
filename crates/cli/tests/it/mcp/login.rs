//! Logins to servers, with a real authorization server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use pintle_testkit::Dialect;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Home, IDLE};
use crate::harness::{CommandOutput, Harness, pintle};

/// An MCP server that needs a token, with its authorization servers, in Python.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/src/auth/tests/server.py");

/// A browser whose user agrees to everything.
const BROWSER: &str = "import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n";

/// Server `web` of a user, that needs a login.
struct Guarded {
    home: Home,
    harness: Harness,
    process: Child,
    /// That of the MCP server.
    origin: String,
}

impl Guarded {
    fn start(turns: &str, faults: &[&str]) -> Self {
        let mut process = Command::new("python3")
            .arg(SERVER)
            .args(faults)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let [origin, _issuer, _other]: [String; 3] = serde_json::from_str(&line).unwrap();
        let (home, harness) = (Home::new(), Harness::new(Dialect::AnthropicMessages, turns));
        std::fs::write(home.0.path().join("browser.py"), BROWSER).unwrap();
        let guarded = Self { home, harness, process, origin };
        guarded.declare("/mcp");
        guarded
    }

    fn declare(&self, path: &str) {
        let url = format!("{}{path}", self.origin);
        self.mcp(&["add", "web", &url, "--replace"], 0);
    }

    /// Runs `pintle mcp`, which must end with this code. Its output has no token.
    fn mcp(&self, arguments: &[&str], code: i32) -> CommandOutput {
        let output = self.home.mcp(&self.harness, arguments);
        require_no_token(&format!("{output:?}"));
        assert_eq!(output.code, Some(code), "{arguments:?}: {output:?}");
        output
    }

    fn with_browser(&self, arguments: &[&str]) -> CommandOutput {
        let browser = format!("python3 {}", self.home.0.path().join("browser.py").display());
        let mut command = pintle(&["mcp"]);
        let output = self.home.of(command.args(arguments).env("BROWSER", browser));
        require_no_token(&format!("{output:?}"));
        output
    }

    fn log_in(&self) -> CommandOutput {
        let output = self.with_browser(&["login", "web"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        output
    }

    /// Changes the state of the servers, and returns the requests that they had.
    fn control(&self, change: &str) -> Vec<Value> {
        let authority = self.origin.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(authority).unwrap();
        let request =
            format!("GET /control?{change}=1 HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Returns the files with tokens.
    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.home.0.path().join("state/server-tokens"));
        let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn require_no_token(text: &str) {
    assert!(!text.contains("access-") && !text.contains("refresh-"), "{text}");
}

#[test]
fn a_login_lets_commands_in_until_the_logout() {
    let guarded = Guarded::start(IDLE, &[]);
    let listed = guarded.mcp(&["list"], 0);
    assert!(!listed.stdout.contains("logged in"), "{listed:?}");
    let refused = guarded.mcp(&["tools", "web", "--network", "on"], 1);
    let hint = "MCP server `web` requires a login: `pintle mcp login web` logs in";
    assert!(refused.stderr.contains(hint), "{refused:?}");

    let login = guarded.log_in();
    assert_eq!(login.stdout, "logged in to server `web` with the scopes: read\n", "{login:?}");
    assert!(login.stderr.contains("log in to server `web` at http://127.0.0.1:"), "{login:?}");
    let files = guarded.files();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(guarded.mcp(&["list"], 0).stdout.contains("; logged in; "));
    assert!(guarded.mcp(&["tools", "web", "--network", "on"], 0).stdout.starts_with("web  2 tools\n"));

    // A token that has ended is renewed, and the new one is kept.
    let before = std::fs::read_to_string(&files[0]).unwrap();
    guarded.control("expire");
    guarded.mcp(&["tools", "web", "--network", "on"], 0);
    assert_ne!(std::fs::read_to_string(&files[0]).unwrap(), before);
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);

    // The same name with another URL is another server.
    guarded.declare("/mcp?other=1");
    let sent = guarded.control("log").len();
    guarded.mcp(&["tools", "web", "--network", "on"], 1);
    let log = guarded.control("log");
    assert!(
        log.len() > sent && log[sent..].iter().all(|request| request["authorization"].is_null()),
        "{log:?}"
    );

    guarded.declare("/mcp");
    assert!(guarded.mcp(&["logout", "web"], 0).stdout.contains("removed the tokens of server `web`"));
    assert_eq!(guarded.files(), Vec::<PathBuf>::new());
    guarded.mcp(&["tools", "web", "--network", "on"], 1);
    assert!(guarded.mcp(&["logout", "web"], 0).stdout.contains("there are no tokens"));
    let rows = guarded.mcp(&["list", "--output", "json"], 0).stdout;
    let rows: Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(rows["servers"][0]["logged_in"], false, "{rows}");
}

#[test]
fn a_session_uses_tokens_that_its_tools_do_not_see() {
    // Only the level full hides files.
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "mcp__web__read"
        arguments = {}
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "cat STATE/server-tokens/*.json || echo not there" }
        [[turn]]
        [[turn.call]]
        tool = "mcp__web__write"
        arguments = {}
        [[turn]]
        text = "Done."
        "#;
    // The directory of the user is known once there is one.
    let state = tempfile::tempdir().unwrap();
    let turns = turns.replace("STATE", state.path().to_str().unwrap());
    let guarded = Guarded::start(&turns, &[]);
    std::os::unix::fs::symlink(state.path(), guarded.home.0.path().join("state")).unwrap();
    guarded.log_in();
    guarded.mcp(&["tools", "web", "--network", "on"], 0);
    guarded.control("expire");
    let mut command = guarded.harness.command("run", &["--network", "on", "Go"]);
    command.env("PINTLE_CONFIG_DIR", guarded.home.0.path().join("config"));
    let output = crate::harness::run(command.env("PINTLE_STATE_DIR", state.path()));
    assert_eq!(output.code, Some(0), "{output:?}");
    require_no_token(&format!("{output:?}"));
    let requests = guarded.harness.server.requests();
    requests.iter().for_each(|request| require_no_token(&request.body.to_string()));
    let answers = requests[3].body["messages"].to_string();
    assert!(answers.contains("not there"), "{answers}");
    let refused = "requires a new login with the scope `write`: `pintle mcp login web` logs in";
    assert!(answers.contains(refused), "{answers}");
    let calls = guarded.control("log");
    let is_call = |request: &&Value| request["body"].as_str().unwrap_or_default().contains("tools/call");
    assert!(calls.iter().filter(is_call).all(|call| call["authorization"].is_string()));
    assert!(
        calls.iter().any(|call| call["path"] == "/token" && call["body"].to_string().contains("refresh-"))
    );

    // The next login asks for the scope as well.
    assert!(guarded.log_in().stdout.contains("with the scopes: read write"));
}

/// Each use renews the tokens, and a refresh token that is used twice is refused.
#[test]
fn processes_that_renew_at_once_lose_no_token() {
    let guarded = Guarded::start(IDLE, &["short"]);
    guarded.log_in();
    let listing = || {
        let mut command = pintle(&["mcp", "tools", "web", "--network", "on"]);
        command.current_dir(guarded.harness.path(""));
        let command = guarded.home.apply(&mut command);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = std::iter::repeat_with(listing).take(4).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // Only the newest refresh token gets another one.
    guarded.control("expire");
    guarded.mcp(&["tools", "web", "--network", "on"], 0);
    assert_eq!(guarded.files().len(), 1);
}

#[test]
fn an_interrupted_login_leaves_nothing() {
    let guarded = Guarded::start(IDLE, &[]);
    let mut command = pintle(&["mcp", "login", "web"]);
    let mut child = guarded.home.apply(&mut command).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let port: u16 = line
        .split_once("redirect_uri=http%3A%2F%2F127.0.0.1%3A")
        .and_then(|(_, rest)| rest.split_once("%2F")?.0.parse().ok())
        .unwrap_or_else(|| panic!("no redirect in {line}"));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert_eq!(guarded.files(), Vec::<PathBuf>::new());
}

#[test]
fn logins_that_cannot_be_say_why() {
    let guarded = Guarded::start(IDLE, &["denies"]);
    let refused = guarded.with_browser(&["login", "web"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("refused with access_denied: Not today."), "{refused:?}");
    assert_eq!(guarded.files(), Vec::<PathBuf>::new());
    let header = "Authorization: Bearer x";
    guarded.mcp(&["add", "keyed", "https://example.com/mcp", "-H", header], 0);
    guarded.mcp(&["add", "program", "--", "true"], 0);
    for (arguments, problem) in [
        (["login", "keyed"], "declares an `Authorization` header"),
        (["login", "program"], "server `program` is the command `true`: expected a remote server"),
        (["logout", "program"], "expected a remote server"),
        (["login", "other"], "no server `other` is declared"),
    ] {
        let output = guarded.mcp(&arguments, 2);
        assert!(output.stderr.contains(problem), "{arguments:?}: {output:?}");
    }
    let open = Guarded::start(IDLE, &["open"]);
    let output = open.mcp(&["login", "web"], 1);
    assert!(output.stderr.contains("the server asks for no login"), "{output:?}");
    let closed = Guarded::start(IDLE, &["closed"]);
    let output = closed.mcp(&["login", "web"], 1);
    assert!(output.stderr.contains("register a client, and set `clientId`"), "{output:?}");
}
