//! `--max-tokens`, `--max-cost`, `--max-time`, and a request that cannot fit the window.

use pintle_testkit::Dialect;

use crate::lab::{Model, say, say_with_input};

const TWO_ROUNDS: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sleep 0.2\" }\n\
                          [[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sleep 600\" }\n\
                          [[turn]]\ntext = \"Done.\"\n";

#[test]
fn a_run_stops_at_what_it_may_spend() {
    for (flags, told) in [
        (["--max-tokens", "10"], "tokens are spent, the limit is 10\n"),
        (["--max-cost", "0.0001"], "are spent, the limit is $0.0001\n"),
        (["--max-time", "100ms"], "have passed, the limit is 100 ms\n"),
    ] {
        let model = Model::new(Dialect::AnthropicMessages, TWO_ROUNDS);
        let said = say(model.command("run", &["Go"]).args(flags));
        assert_eq!(said.code, Some(3), "{flags:?}: {said:?}");
        assert!(said.out.contains(told), "{flags:?}: {said:?}");
        assert!(said.out.contains("[stopped at a limit on what may be spent]"), "{flags:?}: {said:?}");
        assert!(said.err.contains("--max-tokens, --max-cost and --max-time set them"), "{said:?}");
    }
}

#[test]
fn a_request_that_cannot_fit_is_not_sent() {
    // The window of a compatible server's unknown model has 32,768 tokens.
    let model = Model::new(Dialect::ChatCompletions, "[[turn]]\ntext = \"Done.\"\n");
    let log = "one line of a log, and another one after it\n".repeat(40_000);
    std::fs::write(model.path("prompt"), &log).unwrap();
    let file = model.path("prompt");
    let said = say(&mut model.command("run", &["--prompt-file", file.to_str().unwrap()]));
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.err.contains("larger than the model's context window, and was not sent"), "{said:?}");
    assert!(model.server.requests().is_empty());
}

#[test]
fn what_is_piped_in_is_cut_to_what_may_fit() {
    let model = Model::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Long.\"\n");
    let log = "one line of a log, and another one after it\n".repeat(100_000);
    let said = say_with_input(&mut model.command("run", &["Explain this"]), &log);
    assert_eq!(said.code, Some(0), "{said:?}");
}
