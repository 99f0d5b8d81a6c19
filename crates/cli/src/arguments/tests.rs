use clap::CommandFactory as _;
use pintle_agent::{Limits, Money, Toolset};
use pintle_governance::{AtLimit, Mode, UnknownPrice};
use pintle_host::budget::BudgetChoice;
use pintle_host::config_file::keys;
use pintle_host::env_spec::EnvironmentChoice;
use pintle_host::environment::Confinement;
use pintle_host::policy::PolicyChoice;
use pintle_host::route::ModelChoice;
use pintle_host::session_limits::SessionLimits;
use pintle_host::sessions::SessionChoice;
use pintle_host::toolset::ToolsetChoice;
use pintle_host::{SandboxLevel, ValueKind, merge};

use super::*;
use crate::arguments::command_line::session_of;

fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once("pintle").chain(line.split_whitespace()))
}

#[test]
fn clap_definition_is_valid() {
    Arguments::command().debug_assert();
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

/// Returns the flags of a run.
fn run(line: &str) -> RunArgs {
    let Command::Run(run) = parse(line).unwrap().command else { panic!("not a run") };
    *run
}

#[test]
fn choices_have_the_values_of_the_flags() {
    let args = session_of(
        "pintle run --provider scripted --script s.toml --dialect gemini --model m --catalog c.json --env docker:box \
         --dir d --sandbox writes --network on --confine --mode plan --deny shell --max-tokens 5 --max-cost 2 \
         --max-calls 7 --max-time 90s --budget day.cost=3 --at-limit ask --unknown-price ask --max-turns 3 \
         --max-tool-rounds 4 --compact-at 50 --timeout 9s --toolset spec x",
    );
    let spec = merge([args.given().unwrap().into_layer()]).unwrap().spec;
    assert_eq!(
        ModelChoice::try_from(&spec).unwrap(),
        ModelChoice {
            provider: Some(ProviderName::Scripted),
            model: Some("m".to_owned()),
            base_url: None,
            script: Some("s.toml".into()),
            dialect: Some(Provider::Gemini),
            profile: None,
            catalog: Some("c.json".into()),
        }
    );
    let environment =
        EnvironmentChoice { spec: EnvSpec::Docker("box".to_owned()), directory: Some("d".into()) };
    assert_eq!(EnvironmentChoice::try_from(&spec).unwrap(), environment);
    assert_eq!(
        Confinement::from(&spec),
        Confinement { level: SandboxLevel::Writes, network: Some(true), confine: true }
    );
    assert_eq!(
        PolicyChoice::from(&spec),
        PolicyChoice { mode: Some(Mode::Plan), deny: vec!["shell".to_owned()], ..PolicyChoice::default() }
    );
    let BudgetChoice { limits, at_limit, unknown_price } = (&spec).into();
    let session =
        Limits::default().with_tokens(5).with_cost(Money::from_micros(2_000_000)).with_tool_calls(7);
    assert_eq!(limits.session, session);
    assert_eq!(limits.run, Limits::default().with_wall_time(Duration::from_secs(90)));
    assert_eq!(limits.day, Limits::default().with_cost(Money::from_micros(3_000_000)));
    assert_eq!((at_limit, unknown_price), (Some(AtLimit::Ask), Some(UnknownPrice::Ask)));
    assert_eq!(
        ToolsetChoice::from(&spec),
        ToolsetChoice { toolset: Toolset::Spec, mode: Some(Mode::Plan), has_denials: true, network: true }
    );
    assert_eq!(
        SessionLimits::from(&spec),
        SessionLimits {
            max_turns: 3,
            max_tool_rounds: 4,
            compact_at: 50,
            model_timeout: Some(Duration::from_secs(9)),
        }
    );
}

#[test]
fn a_wrong_budget_is_reported() {
    let args = session_of("pintle run --budget day.cots=2 x");
    let failure = args.given().unwrap_err();
    assert!(
        failure.message().starts_with("invalid --budget") && failure.message().contains("cost"),
        "{failure:?}"
    );
}

#[test]
fn the_sandbox_decides_about_the_network_without_a_flag() {
    for (flags, level, has_network) in [
        ("", SandboxLevel::Auto, false),
        ("--sandbox full", SandboxLevel::Full, false),
        ("--sandbox off", SandboxLevel::Off, true),
        ("--no-sandbox", SandboxLevel::Off, true),
        ("--no-sandbox --network off", SandboxLevel::Off, false),
        ("--network on", SandboxLevel::Auto, true),
    ] {
        let confinement = Confinement::from(&run(&format!("run {flags} x")).confinement);
        assert_eq!((confinement.level, confinement.has_network()), (level, has_network), "{flags}");
    }
}

#[test]
fn one_flag_selects_the_session() {
    for (flags, expected) in [
        ("", SessionChoice::New),
        ("--no-session", SessionChoice::New),
        ("--continue", SessionChoice::Newest),
        ("--resume a", SessionChoice::Resume("a".to_owned())),
        ("--fork a@3", SessionChoice::Fork("a@3".to_owned())),
    ] {
        assert_eq!(SessionChoice::from(&run(&format!("run {flags} x")).session), expected, "{flags}");
    }
}

#[test]
fn a_password_in_an_environment_is_not_repeated() {
    for value in ["ssh:me:secret@host", "docker:me:secret@host", "podman:me:secret@host"] {
        let error = parse(&format!("run --env {value} x")).unwrap_err().to_string();
        assert!(error.starts_with("error: invalid value '"), "{error}");
        assert!(error.contains("for '--env <ENV>': ") && !error.contains("secret"), "{error}");
    }
}

/// Returns values of a kind.
fn examples(kind: ValueKind) -> Vec<&'static str> {
    match kind {
        ValueKind::Text => vec!["m"],
        ValueKind::Url => vec!["http://127.0.0.1:8080/v1", "https://[::1]"],
        ValueKind::Choice(names) => names.to_vec(),
        ValueKind::Count => vec!["0", "12"],
        ValueKind::Percent => vec!["0", "100"],
        ValueKind::Time => vec!["90", "15m"],
        ValueKind::Switch => vec!["true", "false"],
        ValueKind::Path | ValueKind::Profile => vec!["dir/file.toml"],
        ValueKind::Rule => vec!["shell(ls)"],
        ValueKind::Network => vec!["on", "off"],
        ValueKind::Structure => panic!("a key has no parts"),
    }
}

/// Returns the flag that a key sets, without dashes.
fn flag_of(key: &str) -> String {
    key.replace('_', "-")
}

#[test]
fn each_value_is_one_of_the_flag() {
    let command = Arguments::command();
    let run = command.find_subcommand("run").unwrap();
    for key in keys::all() {
        let argument =
            run.get_arguments().find(|argument| argument.get_long() == Some(flag_of(key.name).as_str()));
        let argument = argument.unwrap_or_else(|| panic!("{} has no flag", key.name));
        let kind = key.row.kind;
        for value in examples(kind) {
            assert!(kind.accepts(value), "{}: {value}", key.name);
            let flag = match (kind, value) {
                (ValueKind::Switch, "true") => format!("--{}", flag_of(key.name)),
                (ValueKind::Switch, _) => continue,
                _ => format!("--{}={value}", flag_of(key.name)),
            };
            let parsed = Arguments::command().try_get_matches_from(["pintle", "run", &flag, "x"]);
            assert!(parsed.is_ok(), "{flag}: {parsed:?}");
        }
        if let (ValueKind::Choice(names), [_, ..]) = (kind, argument.get_possible_values().as_slice()) {
            let values = argument.get_possible_values();
            let values = values.iter().map(clap::builder::PossibleValue::get_name);
            // A script is named by a flag only.
            let values: Vec<&str> = values.filter(|value| *value != "scripted").collect();
            assert_eq!(names, values, "{}", key.name);
        }
    }
}

#[test]
fn defaults_are_those_of_the_flags() {
    let command = Arguments::command();
    let run = command.find_subcommand("run").unwrap();
    for key in keys::all() {
        let argument =
            run.get_arguments().find(|argument| argument.get_long() == Some(flag_of(key.name).as_str()));
        let argument = argument.unwrap();
        if argument.get_action().takes_values()
            && let Some(default) = argument.get_default_values().first()
        {
            assert_eq!(Some(key.row.default.to_string().as_str()), default.to_str(), "{}", key.name);
        }
    }
}

/// The default in a help text is the default of the row. A help text that is no instruction starts with the meaning of the row.
#[test]
fn help_agrees_with_the_rows() {
    let command = Arguments::command();
    let run = command.find_subcommand("run").unwrap();
    let first_word = |text: &str| text.split(|c: char| !c.is_alphabetic()).next().map(str::to_owned);
    let mut checked = 0;
    for row in keys::rows() {
        let has_row =
            |argument: &&clap::Arg| argument.get_long().is_some_and(|flag| row.flags.contains(&flag));
        for argument in run.get_arguments().filter(has_row) {
            let help = argument.get_help().unwrap().to_string();
            if let Some((_, default)) = help.split_once(" [default: ") {
                let default = default.trim_end_matches(']').replace("--", "");
                let expected = row.default.to_string();
                assert_eq!(default, expected.trim_matches(['(', ')']), "{}: {help}", row.path);
            }
            if argument.get_action().takes_values() && first_word(&help) == first_word(row.meaning) {
                assert!(help.starts_with(row.meaning), "{}: {help}", row.path);
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "{checked}");
}
