use std::collections::BTreeSet;

use clap::Parser as _;
use pintle_host::sessions::RememberedFlags;

use super::*;
use crate::arguments::RunArgs;

/// Returns the flags of the session of a command line.
pub(crate) fn session_of(line: &str) -> RunArgs {
    let arguments = super::parse(line.split_whitespace().map(OsString::from).collect()).unwrap();
    arguments.command.session().unwrap().clone()
}

/// Returns the failure of an invalid command line.
fn failure_of(words: &[&str]) -> Failure {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    usage_failure(&Arguments::try_parse_from(&words).unwrap_err(), &words)
}

fn parse_failure(line: &str) -> Failure {
    failure_of(&std::iter::once("pintle").chain(line.split_whitespace()).collect::<Vec<_>>())
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
            let failure = failure_of(&words);
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
             [possible values: openai, anthropic, gemini, openai-compatible, scripted]; see `pintle run --help`",
        ),
        (
            "run --env podman:box x",
            "invalid value 'podman:box' for '--env <ENV>': expected local, docker:CONTAINER or \
             ssh:[USER@]HOST[:PORT]; see `pintle run --help`",
        ),
        (
            "run --toolset foreign x",
            "invalid value 'foreign' for '--toolset <NAME>' [possible values: native, spec]; see `pintle run --help`",
        ),
        (
            "run --max-turns many x",
            "invalid value 'many' for '--max-turns <N>': invalid digit found in string; see `pintle run --help`",
        ),
        (
            "run --quiet --verbose x",
            "the argument '--quiet' cannot be used with '--verbose'; see `pintle run --help`",
        ),
        (
            "run --prompt-file f x",
            "the argument '--prompt-file <FILE>' cannot be used with '[PROMPT]'; see `pintle run --help`",
        ),
        (
            "mock serve",
            "the following required arguments were not provided: --script <FILE>; see `pintle mock serve --help`",
        ),
        (
            "mock serve --script s --listen nowhere",
            "invalid value 'nowhere' for '--listen <ADDRESS>': invalid socket address syntax; see `pintle mock serve --help`",
        ),
    ];
    for (line, message) in cases {
        assert_eq!(parse_failure(line).message(), message, "{line}");
    }
    let failure = parse_failure("run --env ssh:me:hunter2@host x");
    assert_eq!(
        failure.message(),
        "invalid value 'ssh:me:…@host' for '--env <ENV>': found a `:` in the user, expected ssh:[USER@]HOST[:PORT]; \
         passwords are not supported, use keys; see `pintle run --help`"
    );
    let failure = parse_failure("run --modell m x");
    assert!(failure.message().starts_with("unexpected argument '--modell' found"), "{failure:?}");
    assert!(failure.message().contains("'--model'"), "{failure:?}");
    for line in ["run --model= x", "ask --reasoning-effort= x"] {
        let failure = parse_failure(line);
        assert!(failure.message().starts_with("a value is required for"), "{failure:?}");
    }
}

#[test]
fn usage_errors_name_the_help_of_their_subcommand() {
    for (line, hint) in [
        ("--nonsense", "see `pintle --help`"),
        ("rnu", "see `pintle --help`"),
        ("sessions --nonsense", "see `pintle sessions --help`"),
        ("sessions list --limit run", "see `pintle sessions list --help`"),
        ("run --nonsense sessions", "see `pintle run --help`"),
    ] {
        let message = parse_failure(line).message();
        assert!(message.ends_with(hint), "{line}: {message}");
    }
}

#[test]
fn typed_and_remembered_flags_are_known() {
    let run = session_of(
        "pintle run --no-sandbox --max-turns 3 --mode=plan --catalog c.json --dir w --deny shell x",
    );
    let typed = ["catalog", "deny", "dir", "max-turns", "mode", "no-sandbox", "prompt"];
    assert_eq!(run.typed, BTreeSet::from(typed.map(str::to_owned)));
    let catalog = std::path::absolute("c.json").unwrap().display().to_string();
    let value = |name: &str, value: &str| (name.to_owned(), vec![value.to_owned()]);
    let remembered = [
        value("catalog", &catalog),
        value("dir", "w"),
        value("mode", "plan"),
        ("no-sandbox".to_owned(), Vec::new()),
    ];
    assert_eq!(run.session.given, RememberedFlags::from(remembered));
    let arguments =
        super::parse(["pintle", "tools", "--toolset", "spec"].map(OsString::from).into()).unwrap();
    assert_eq!(arguments.typed, BTreeSet::from(["toolset".to_owned()]));
    assert_eq!(session_of("pintle").typed, BTreeSet::new());
}
