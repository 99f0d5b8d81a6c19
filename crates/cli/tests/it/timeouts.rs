//! A server that lives on without an answer.

use std::thread;
use std::time::{Duration, Instant};

use pintle_testkit::{FaultScript, FaultServer};
use tokio::runtime::Runtime;

use crate::lab::{KEY, pintle, say};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const DRIP: Duration = Duration::from_millis(20);

#[test]
fn a_model_call_has_the_time_that_is_given() {
    let request = || FaultScript::new().read_request();
    let comments = request().write(HEAD).repeat(": ping\n\n", 1_000_000, DRIP);
    let headers = request().write("HTTP/1.1 200 OK\r\nx: ").repeat("a", 1_000_000, DRIP);
    let silence = request().write(HEAD).await_close();
    let cases = [
        (comments, "the response stalled: no content for 2s"),
        (headers, "within 2s"),
        (silence, "no response within 2s"),
    ];
    thread::scope(|scope| {
        for (script, words) in &cases {
            for subcommand in ["run", "ask"] {
                scope.spawn(move || gives_up(subcommand, script.clone(), words));
            }
        }
    });
}

fn gives_up(subcommand: &str, script: FaultScript, words: &str) {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(FaultServer::start([script])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = pintle(&[subcommand, "--provider", "anthropic", "--base-url", &server.url()]);
    command.args(["--timeout", "2s", "Well?"]).env("ANTHROPIC_API_KEY", KEY).current_dir(folder.path());
    let begun = Instant::now();
    let said = say(&mut command);
    assert_eq!(said.code, Some(1), "{subcommand}: {said:?}");
    assert!(said.err.contains(words), "{subcommand}: {said:?}");
    assert!(said.err.contains("--timeout sets how long"), "{subcommand}: {said:?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{subcommand}");
    let records = runtime.block_on(server.finish());
    assert_eq!(records.len(), 1, "{subcommand}: a time-out is not retried");
}

#[test]
fn a_time_out_that_is_none_is_refused() {
    for (value, words) in [("0", "from 1ms to 24h"), ("soon", "90s"), ("2d", "15m")] {
        let said = say(&mut pintle(&["ask", "--timeout", value, "Well?"]));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(words), "{said:?}");
    }
}
