use clap::Parser as _;

use super::*;
use crate::args::RunArgs;

/// Returns the flags of the session of a command line, and its words.
pub(crate) fn session_of(line: &str) -> (RunArgs, CommandWords) {
    let (arguments, words) = super::parse(line.split_whitespace().map(OsString::from).collect()).unwrap();
    (arguments.command.session().unwrap().clone(), words)
}

fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once("pintle").chain(line.split_whitespace()))
}

#[test]
fn errors_never_repeat_a_password() {
    for value in [
        "ssh:me:hunter2@host",
        "ssh:me:hunter2@host:22",
        "ssh:me:hunter2@[::1]",
        "ssh:me:hunter2@",
        "ssh:me:p@ss:hunter2@host",
        "ssh:me@corp:hunter2@host",
        "ssh:-me:hunter2@host",
        "ssh::hunter2@host",
        "ssh:me:hunter2 @host",
        "ssh://me:hunter2@host",
        "ssh:ssh:me:hunter2@host",
        "me:hunter2@host",
        "docker:me:hunter2@host",
        "podman:me:hunter2@host",
    ] {
        for words in
            [vec!["pintle", "run", "--env", value, "x"], vec!["pintle", "prompt", &format!("--env={value}")]]
        {
            let failure = usage_failure(&Arguments::try_parse_from(words).unwrap_err());
            assert!(!failure.message().contains("hunter2"), "{value}: {}", failure.message());
            assert!(failure.message().contains("for '--env <ENV>'"), "{value}: {}", failure.message());
        }
    }
}

#[test]
fn usage_errors_are_one_line() {
    let cases = [
        (
            "run --provider acme x",
            "invalid value 'acme' for '--provider <NAME>' \
             [possible values: openai, anthropic, gemini, openai-compatible, scripted]; see `pintle --help`",
        ),
        (
            "run --env podman:box x",
            "invalid value 'podman:box' for '--env <ENV>': expected local, docker:CONTAINER or \
             ssh:[USER@]HOST[:PORT]; see `pintle --help`",
        ),
        (
            "run --toolset foreign x",
            "invalid value 'foreign' for '--toolset <NAME>' [possible values: native, spec]; see `pintle --help`",
        ),
        (
            "run --max-turns many x",
            "invalid value 'many' for '--max-turns <N>': invalid digit found in string; see `pintle --help`",
        ),
        (
            "run --quiet --verbose x",
            "the argument '--quiet' cannot be used with '--verbose'; see `pintle --help`",
        ),
        (
            "run --prompt-file f x",
            "the argument '--prompt-file <FILE>' cannot be used with '[PROMPT]'; see `pintle --help`",
        ),
        (
            "mock serve",
            "the following required arguments were not provided: --script <FILE>; see `pintle --help`",
        ),
        (
            "mock serve --script s --listen nowhere",
            "invalid value 'nowhere' for '--listen <ADDRESS>': invalid socket address syntax; see `pintle --help`",
        ),
    ];
    for (line, message) in cases {
        assert_eq!(usage_failure(&parse(line).unwrap_err()).message(), message, "{line}");
    }
    let failure = usage_failure(&parse("run --env ssh:me:hunter2@host x").unwrap_err());
    assert_eq!(
        failure.message(),
        "invalid value 'ssh:me:…@host' for '--env <ENV>': found a `:` in the user, expected ssh:[USER@]HOST[:PORT]; \
         passwords are not supported, use keys; see `pintle --help`"
    );
    let failure = usage_failure(&parse("run --modell m x").unwrap_err());
    assert!(failure.message().starts_with("unexpected argument '--modell' found"), "{failure:?}");
    assert!(failure.message().contains("'--model'"), "{failure:?}");
    for line in ["run --model= x", "ask --reasoning-effort= x"] {
        let failure = usage_failure(&parse(line).unwrap_err());
        assert!(failure.message().starts_with("a value is required for"), "{failure:?}");
    }
}

#[test]
fn only_the_flag_of_a_named_profile_is_removed() {
    let cases = [
        ("run --profile review x", "run x"),
        ("run --profile=review x", "run x"),
        ("run --profile other x", "run --profile other x"),
        ("run -- --profile review", "run -- --profile review"),
        ("run review", "run review"),
    ];
    for (line, expected) in cases {
        let mut args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        remove_profile(&mut args, "review");
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(args, expected, "{line}");
    }
}
