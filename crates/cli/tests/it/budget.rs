//! `--max-tokens`, `--max-cost`, `--max-time`, and requests that exceed the context window.

use pintle_testkit::Dialect;

use crate::harness::{Harness, run, run_with_input};

const TWO_ROUNDS: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sleep 0.2\" }\n\
                          [[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sleep 600\" }\n\
                          [[turn]]\ntext = \"Done.\"\n";

#[test]
fn runs_stop_at_their_budget() {
    for (flags, message) in [
        (["--max-tokens", "10"], "0 tokens used, the limit is 10, and the next call needs at least "),
        (["--max-cost", "0.0001"], "$0.0000 spent, the limit is $0.0001, and the next call needs at least $"),
        (["--max-time", "100ms"], "elapsed, the limit is 100 ms\n"),
    ] {
        let harness = Harness::new(Dialect::AnthropicMessages, TWO_ROUNDS);
        let output = run(harness.command("run", &["Go"]).args(flags));
        assert_eq!(output.code, Some(3), "{flags:?}: {output:?}");
        assert!(output.stdout.contains(message), "{flags:?}: {output:?}");
        assert!(output.stdout.contains("[stopped: budget exhausted]"), "{flags:?}: {output:?}");
        assert!(output.stderr.contains("raise it with --max-tokens, --max-cost or --max-time"), "{output:?}");
    }
}

#[test]
fn oversized_request_is_not_sent() {
    // An unknown model of a compatible server has a window of 32,768 tokens.
    let harness = Harness::new(Dialect::ChatCompletions, "[[turn]]\ntext = \"Done.\"\n");
    let log = "one line of a log, and another one after it\n".repeat(40_000);
    std::fs::write(harness.path("prompt"), &log).unwrap();
    let file = harness.path("prompt");
    let output = run(&mut harness.command("run", &["--prompt-file", file.to_str().unwrap()]));
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains("exceeds the model's context window and was not sent"), "{output:?}");
    assert!(harness.server.requests().is_empty());
}

#[test]
fn long_piped_input_is_shortened() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Long.\"\n");
    let log = "one line of a log, and another one after it\n".repeat(100_000);
    let output = run_with_input(&mut harness.command("run", &["Explain this"]), &log);
    assert_eq!(output.code, Some(0), "{output:?}");
}
