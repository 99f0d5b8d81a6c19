use super::*;

fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once("pintle").chain(line.split_whitespace()))
}

#[test]
fn the_definition_is_consistent() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}

#[test]
fn a_run_has_defaults() {
    let Command::Run(run) = parse("run -").unwrap().command else { panic!("not a run") };
    assert_eq!(run.prompt.prompt.as_deref(), Some("-"));
    assert_eq!((run.place.env, run.place.dir), (Place::Local, None));
    assert_eq!((run.toolset, run.output), (ToolsetName::Native, OutputFormat::Text));
    assert_eq!((run.max_turns, run.max_tool_rounds, run.quiet, run.verbose), (0, 0, false, false));
    assert!(run.model.provider.is_none());
}

#[test]
fn flags_are_read() {
    let line = "run --provider openai-compatible --base-url http://127.0.0.1:1/v1 --model m --dir d --max-turns 3 \
                --max-tool-rounds 4 --reasoning-effort xhigh --output stream-json --verbose fix";
    let Command::Run(run) = parse(line).unwrap().command else { panic!("not a run") };
    assert_eq!(run.model.provider, Some(ProviderName::Of(Provider::OpenAiCompatible)));
    assert_eq!(run.model.base_url.as_deref(), Some("http://127.0.0.1:1/v1"));
    assert_eq!((run.max_turns, run.max_tool_rounds), (3, 4));
    assert_eq!(run.model.reasoning_effort.as_deref(), Some("xhigh"));
    assert_eq!((run.output, run.verbose), (OutputFormat::StreamJson, true));

    let line = "ask --provider scripted --script s.toml --dialect gemini --system s why";
    let Command::Ask(ask) = parse(line).unwrap().command else { panic!("not a question") };
    assert_eq!(
        (ask.model.provider, ask.model.dialect),
        (Some(ProviderName::Scripted), Some(Provider::Gemini))
    );
    assert_eq!((ask.system.as_deref(), ask.prompt.prompt.as_deref()), (Some("s"), Some("why")));

    let Command::Mock(mock) = parse("mock serve --script s.toml").unwrap().command else { panic!("no mock") };
    let MockCommand::Serve(serve) = mock.command;
    assert!(serve.listen.ip().is_loopback());
}

#[test]
fn a_password_in_a_place_is_never_repeated() {
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
            let failure = refused(&Arguments::try_parse_from(words).unwrap_err());
            assert!(!failure.sentence().contains("hunter2"), "{value}: {}", failure.sentence());
            assert!(failure.sentence().contains("for '--env <PLACE>'"), "{value}: {}", failure.sentence());
        }
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let rows = [
        (
            "run --provider acme x",
            "invalid value 'acme' for '--provider <NAME>' \
             [possible values: openai, anthropic, gemini, openai-compatible, scripted]; see `pintle --help`",
        ),
        (
            "run --env podman:box x",
            "invalid value 'podman:box' for '--env <PLACE>': expected local, docker:CONTAINER or \
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
    for (line, sentence) in rows {
        assert_eq!(refused(&parse(line).unwrap_err()).sentence(), sentence, "{line}");
    }
    let failure = refused(&parse("run --env ssh:me:hunter2@host x").unwrap_err());
    assert_eq!(
        failure.sentence(),
        "invalid value 'ssh:me:…@host' for '--env <PLACE>': found a `:` in the user, expected ssh:[USER@]HOST[:PORT]; \
         there is no place for a password, keys are used; see `pintle --help`"
    );
    let failure = refused(&parse("run --modle m x").unwrap_err());
    assert!(failure.sentence().starts_with("unexpected argument '--modle' found"), "{failure:?}");
    assert!(failure.sentence().contains("'--model'"), "{failure:?}");
    for line in ["run --model= x", "ask --reasoning-effort= x"] {
        let failure = refused(&parse(line).unwrap_err());
        assert!(failure.sentence().starts_with("a value is required for"), "{failure:?}");
    }
}
