use super::*;

fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once("pintle").chain(line.split_whitespace()))
}

#[test]
fn clap_definition_is_valid() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}

#[test]
fn run_flags_have_defaults() {
    let Command::Run(run) = parse("run -").unwrap().command else { panic!("not a run") };
    assert_eq!(run.prompt.prompt.as_deref(), Some("-"));
    assert_eq!((run.environment.env, run.environment.dir), (EnvSpec::Local, None));
    assert_eq!((run.toolset, run.output), (ToolsetName::Native, OutputFormat::Text));
    assert_eq!((run.max_turns, run.max_tool_rounds, run.quiet, run.verbose), (0, 0, false, false));
    assert!(run.model.provider.is_none());
}

#[test]
fn flags_are_parsed() {
    let line = "run --provider openai-compatible --base-url http://127.0.0.1:1/v1 --model m --dir d --max-turns 3 \
                --max-tool-rounds 4 --reasoning-effort xhigh --output stream-json --verbose fix";
    let Command::Run(run) = parse(line).unwrap().command else { panic!("not a run") };
    assert_eq!(run.model.provider, Some(ProviderName::Of(Provider::OpenAiCompatible)));
    assert_eq!(run.model.base_url.as_deref(), Some("http://127.0.0.1:1/v1"));
    assert_eq!((run.max_turns, run.max_tool_rounds), (3, 4));
    assert_eq!(run.model.reasoning_effort.as_deref(), Some("xhigh"));
    assert_eq!((run.output, run.verbose), (OutputFormat::StreamJson, true));

    let line = "ask --provider scripted --script s.toml --dialect gemini --system s why";
    let Command::Ask(ask) = parse(line).unwrap().command else { panic!("not an ask") };
    assert_eq!(
        (ask.model.provider, ask.model.dialect),
        (Some(ProviderName::Scripted), Some(Provider::Gemini))
    );
    assert_eq!((ask.system.as_deref(), ask.prompt.prompt.as_deref()), (Some("s"), Some("why")));

    let Command::Mock(mock) = parse("mock serve --script s.toml").unwrap().command else {
        panic!("not a mock")
    };
    let MockCommand::Serve(serve) = mock.command;
    assert!(serve.listen.ip().is_loopback());
}
