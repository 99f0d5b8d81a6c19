//! `--timeout` against servers that never respond.

use std::thread;
use std::time::{Duration, Instant};

use pintle_testkit::{FaultScript, FaultServer};
use tokio::runtime::Runtime;

use crate::harness::{KEY, pintle, run};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const DRIP: Duration = Duration::from_millis(20);

#[test]
fn model_calls_time_out() {
    let request = || FaultScript::new().read_request();
    let comments = request().write(HEAD).repeat(": ping\n\n", 1_000_000, DRIP);
    let headers = request().write("HTTP/1.1 200 OK\r\nx: ").repeat("a", 1_000_000, DRIP);
    let silence = request().write(HEAD).await_close();
    let cases = [
        (comments, "the response stalled: no content for 1s"),
        (headers, "within 1s"),
        (silence, "no response within 1s"),
    ];
    thread::scope(|scope| {
        for (script, words) in &cases {
            for subcommand in ["run", "ask"] {
                scope.spawn(move || times_out(subcommand, script.clone(), words));
            }
        }
    });
}

fn times_out(subcommand: &str, script: FaultScript, words: &str) {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(FaultServer::start([script])).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut command = pintle(&[subcommand, "--provider", "anthropic", "--base-url", &server.url()]);
    command.args(["--timeout", "1s", "Well?"]).env("ANTHROPIC_API_KEY", KEY).current_dir(directory.path());
    let started = Instant::now();
    let output = run(&mut command);
    assert_eq!(output.code, Some(1), "{subcommand}: {output:?}");
    assert!(output.stderr.contains(words), "{subcommand}: {output:?}");
    assert!(output.stderr.contains("raise the limit with --timeout"), "{subcommand}: {output:?}");
    assert!(started.elapsed() < Duration::from_secs(30), "{subcommand}");
    let records = runtime.block_on(server.finish());
    assert_eq!(records.len(), 1, "{subcommand}: a timeout is not retried");
}

#[test]
fn invalid_timeout_is_rejected() {
    for (value, words) in [("0", "from 1ms to 24h"), ("soon", "90s"), ("2d", "15m")] {
        let output = run(&mut pintle(&["ask", "--timeout", value, "Well?"]));
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(words), "{output:?}");
    }
}
