//! Servers that share a database: each answers for all sessions, and takes over from one that dies. Without PostgreSQL, the
//! tests are skipped.

use pintle_test_conditions::POSTGRESQL;

use super::*;

/// Starts a server whose sessions are in a schema of the database of the tests.
fn start(harness: &Harness, store: &Store) -> Served {
    let mut command = command(harness, &["--listen", "127.0.0.1:0"]);
    store.choose(&mut command);
    Served::of(command)
}

/// A schema of the database of the tests.
struct Store {
    connection: String,
    schema: String,
}

impl Store {
    fn new(name: &str) -> Option<Self> {
        if !POSTGRESQL.is_present() {
            return None;
        }
        let connection = std::env::var("PINTLE_TEST_POSTGRES").unwrap();
        Some(Self { connection, schema: format!("cli_{name}_{}", std::process::id()) })
    }

    fn choose(&self, command: &mut Command) {
        command.env("PINTLE_STORE", &self.connection).env("PINTLE_STORE_SCHEMA", &self.schema);
        // Below some seconds, a busy machine would take a living server for a dead one.
        command.env("PINTLE_STORE_LEASE", "5");
    }
}

fn create(served: &Served) -> String {
    let wanted = json!({"message": {"text": "Make it"}, "mode": "ask"});
    let (status, body) = served.request("POST", "/v1/sessions", Some(&wanted));
    assert_eq!(status, 201, "{body}");
    let created: Value = serde_json::from_str(&body).unwrap();
    created.get("id").and_then(Value::as_str).unwrap().to_owned()
}

fn approve(served: &Served, id: &str) {
    let approvals = served.get(&format!("/v1/sessions/{id}/approvals"));
    let text =
        |name: &str| approvals.pointer(&format!("/approvals/0/{name}")).and_then(Value::as_str).unwrap();
    let call = text("call_id");
    let decision = json!({"fingerprint": text("fingerprint"), "decision": "approve"});
    let (status, body) =
        served.request("POST", &format!("/v1/sessions/{id}/approvals/{call}"), Some(&decision));
    assert_eq!(status, 202, "{body}");
}

#[test]
fn a_decision_at_another_server_reaches_the_one_that_has_the_session() {
    let Some(store) = Store::new("routed") else { return };
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let (mut one, mut other) = (start(&harness, &store), start(&harness, &store));
    let id = create(&one);
    let seen = other.wait(&id, |session| session["pending_approvals"] == json!(1));
    assert_eq!(seen["live"], json!(false), "the other one has it: {seen}");
    approve(&other, &id);
    other.wait(&id, |session| session["state"] == "IDLE" && session["pending_approvals"] == json!(0));
    assert_eq!(harness.read("made"), "made\n", "the call ran once");
    assert_eq!(one.get(&format!("/v1/sessions/{id}"))["live"], json!(true));
    for server in [&mut one, &mut other] {
        assert_eq!(server.signal(Signal::TERM), Some(0));
    }
    // It is a session like others, for every command.
    let mut shown = pintle(&["sessions", "show", &id]);
    store.choose(&mut shown);
    let output = run(&mut shown);
    assert!(output.stdout.contains("It is made."), "{output:?}");
}

#[test]
fn the_sessions_of_a_dead_server_go_on_at_another() {
    let Some(store) = Store::new("taken") else { return };
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let (mut one, mut other) = (start(&harness, &store), start(&harness, &store));
    let id = create(&one);
    other.wait(&id, |session| session["pending_approvals"] == json!(1));
    one.signal(Signal::KILL);
    let taken = other.wait(&id, |session| session["live"] == json!(true));
    assert_eq!(taken["state"], "PROCESSING", "{taken}");
    other.wait(&id, |session| session["pending_approvals"] == json!(1));
    approve(&other, &id);
    other.wait(&id, |session| session["state"] == "IDLE" && session["pending_approvals"] == json!(0));
    assert_eq!(harness.read("made"), "made\n", "the call ran once");
    assert_eq!(other.signal(Signal::TERM), Some(0));
}

#[test]
fn databases_that_cannot_be_used_are_said() {
    let listing = |address: &str, more: &[(&str, &str)]| {
        let mut command = pintle(&["sessions", "list"]);
        command.env("PINTLE_STORE", address).envs(more.iter().copied());
        run(&mut command)
    };
    for (address, more, expected) in [
        ("nonsense", &[][..], "expected `postgresql://…`"),
        ("postgres://ann:hidden-word-7@db.example/pintle", &[], "the server is on another host"),
        ("postgres://ann:hidden-word-7@127.0.0.1:1/pintle", &[], "cannot use the database of PINTLE_STORE"),
        ("postgres://ann@127.0.0.1:1/pintle", &[("PINTLE_STORE_LEASE", "0")], "expected 1 to 3600 seconds"),
        ("postgres://ann@127.0.0.1:1/pintle", &[("PINTLE_STORE_PASSWORD_FILE", "/nowhere")], "/nowhere"),
    ] {
        let output = listing(address, more);
        assert_ne!(output.code, Some(0), "{address}");
        assert!(output.stderr.contains(expected), "{address}: {output:?}");
        assert!(!output.stderr.contains("hidden-word-7"), "{output:?}");
    }
}
