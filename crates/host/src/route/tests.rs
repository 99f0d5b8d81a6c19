use std::ffi::OsStr;

use super::*;

const OPENAI: ProviderName = ProviderName::Of(Provider::OpenAi);
const ANTHROPIC: ProviderName = ProviderName::Of(Provider::Anthropic);
const GEMINI: ProviderName = ProviderName::Of(Provider::Gemini);
const COMPATIBLE: ProviderName = ProviderName::Of(Provider::OpenAiCompatible);

const LOCAL: &str = "http://127.0.0.1:8080/v1";

#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    provider: Option<ProviderName>,
    model: Option<&'static str>,
    base_url: Option<&'static str>,
    script: Option<&'static str>,
    dialect: Option<Provider>,
}

fn choose(flags: Flags, variables: &[(&str, &str)]) -> Result<ModelSource, Failure> {
    let choice = ModelChoice {
        provider: flags.provider,
        model: flags.model.map(str::to_owned),
        base_url: flags.base_url.map(BaseUrl::new),
        script: flags.script.map(PathBuf::from),
        dialect: flags.dialect,
        profile: None,
        catalog: None,
    };
    let variables = variables.iter().map(|(name, value)| (*name, OsStr::new(*value)));
    let process_env = ProcessEnv::from_variables(variables);
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(ModelSource::choose(
        &choice,
        Catalog::built_in(),
        &process_env,
        &[],
    ))
}

/// Variables with their values.
type Environment = &'static [(&'static str, &'static str)];

/// Provider, model, base URL with its source, and the variable of the key.
type Selected = (Provider, String, Option<(String, &'static str)>, Option<&'static str>);

fn select(flags: Flags, variables: &[(&str, &str)]) -> Selected {
    let ModelSource::Provider(route) = choose(flags, variables).unwrap() else { panic!("a script") };
    let base_url = route.base_url.map(|base_url| (base_url.redacted(), base_url.source));
    (route.provider, route.model, base_url, route.key.map(|key| key.source))
}

#[test]
fn flags_take_precedence_over_variables() {
    let best = |provider: Provider| provider.default_model().unwrap().to_owned();
    let key = |provider, variable| (provider, best(provider), None, Some(variable));
    let none = Flags::default();
    let cases: [(Flags, Environment, Selected); 10] = [
        (none, &[("OPENAI_API_KEY", "k")], key(Provider::OpenAi, "OPENAI_API_KEY")),
        (
            none,
            &[("GEMINI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")],
            key(Provider::Anthropic, "ANTHROPIC_API_KEY"),
        ),
        (none, &[("GOOGLE_API_KEY", "k")], key(Provider::Gemini, "GOOGLE_API_KEY")),
        (
            Flags { provider: Some(GEMINI), model: Some("g"), ..none },
            &[("OPENAI_API_KEY", "k"), ("GEMINI_API_KEY", "k"), ("GOOGLE_API_KEY", "k")],
            (Provider::Gemini, "g".to_owned(), None, Some("GEMINI_API_KEY")),
        ),
        (
            Flags { base_url: Some("http://a"), ..none },
            &[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://b")],
            (
                Provider::Anthropic,
                best(Provider::Anthropic),
                Some(("http://a".to_owned(), "--base-url")),
                Some("ANTHROPIC_API_KEY"),
            ),
        ),
        (
            Flags { provider: Some(ANTHROPIC), ..none },
            &[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://b")],
            (
                Provider::Anthropic,
                best(Provider::Anthropic),
                Some(("http://b".to_owned(), "ANTHROPIC_BASE_URL")),
                Some("ANTHROPIC_API_KEY"),
            ),
        ),
        (
            Flags { base_url: Some(LOCAL), model: Some("m"), ..none },
            &[],
            (Provider::OpenAiCompatible, "m".to_owned(), Some((LOCAL.to_owned(), "--base-url")), None),
        ),
        (
            Flags { model: Some("m"), ..none },
            &[("OPENAI_BASE_URL", LOCAL)],
            (Provider::OpenAiCompatible, "m".to_owned(), Some((LOCAL.to_owned(), "OPENAI_BASE_URL")), None),
        ),
        (
            Flags { provider: Some(COMPATIBLE), model: Some("m"), ..none },
            &[("OPENAI_BASE_URL", LOCAL), ("OPENAI_API_KEY", "k")],
            (
                Provider::OpenAiCompatible,
                "m".to_owned(),
                Some((LOCAL.to_owned(), "OPENAI_BASE_URL")),
                Some("OPENAI_API_KEY"),
            ),
        ),
        (
            Flags { provider: Some(OPENAI), ..none },
            &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_BASE_URL", LOCAL)],
            key(Provider::OpenAi, "OPENAI_API_KEY"),
        ),
    ];
    for (index, (flags, variables, expected)) in cases.into_iter().enumerate() {
        assert_eq!(select(flags, variables), expected, "case {index}");
    }
}

#[test]
fn missing_and_conflicting_flags_are_rejected() {
    let none = Flags::default();
    let scripted = Some(ProviderName::Scripted);
    let cases: [(Flags, Environment, FailureKind, &str); 10] = [
        (none, &[], FailureKind::Credentials, "no API key found"),
        (none, &[("ANTHROPIC_BASE_URL", "http://b")], FailureKind::Credentials, "no API key found"),
        (
            Flags { provider: Some(ANTHROPIC), ..none },
            &[("OPENAI_API_KEY", "k")],
            FailureKind::Credentials,
            "no API key for anthropic; set ANTHROPIC_API_KEY",
        ),
        (
            none,
            &[("OPENAI_API_KEY", "two words")],
            FailureKind::Credentials,
            "the key in OPENAI_API_KEY contains a space",
        ),
        (
            Flags { provider: Some(COMPATIBLE), model: Some("m"), ..none },
            &[],
            FailureKind::Usage,
            "openai-compatible requires --base-url or OPENAI_BASE_URL",
        ),
        (
            Flags { base_url: Some(LOCAL), ..none },
            &[],
            FailureKind::Usage,
            "openai-compatible has no default model; set one with --model",
        ),
        (
            Flags { provider: scripted, ..none },
            &[],
            FailureKind::Usage,
            "--provider scripted requires --script FILE",
        ),
        (
            Flags { provider: scripted, script: Some("s"), base_url: Some(LOCAL), ..none },
            &[],
            FailureKind::Usage,
            "--base-url cannot be used with --provider scripted",
        ),
        (
            Flags { script: Some("s"), ..none },
            &[("OPENAI_API_KEY", "k")],
            FailureKind::Usage,
            "--script requires --provider scripted",
        ),
        (
            Flags { dialect: Some(Provider::Gemini), ..none },
            &[("OPENAI_API_KEY", "k")],
            FailureKind::Usage,
            "--dialect requires --provider scripted",
        ),
    ];
    for (index, (flags, variables, kind, start)) in cases.into_iter().enumerate() {
        let failure = choose(flags, variables).unwrap_err();
        assert_eq!(failure.kind(), kind, "case {index}");
        assert!(failure.message().starts_with(start), "case {index}: {failure:?}");
        assert!(!failure.message().contains("two words"), "case {index}: {failure:?}");
    }
}

const CLAUDE: &str = "claude-opus-4-6";

#[test]
fn catalog_decides_the_provider_of_a_known_model() {
    let none = Flags::default();
    let both: Environment = &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    let gateway: Environment = &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", LOCAL)];
    let cases: [(Flags, Environment, Provider); 12] = [
        (Flags { model: Some(CLAUDE), ..none }, both, Provider::Anthropic),
        (Flags { model: Some("opus"), ..none }, both, Provider::Anthropic),
        (Flags { model: Some("gpt-5.2"), ..none }, both, Provider::OpenAi),
        (
            Flags { model: Some("gpt-5.2"), ..none },
            &[("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k")],
            Provider::OpenAi,
        ),
        (
            Flags { model: Some("gemini-2.5-pro"), ..none },
            &[("OPENAI_API_KEY", "k"), ("GOOGLE_API_KEY", "k")],
            Provider::Gemini,
        ),
        (Flags { model: Some("claude-of-tomorrow"), ..none }, both, Provider::OpenAi),
        (
            Flags { model: Some("claude-of-tomorrow"), provider: Some(ANTHROPIC), ..none },
            both,
            Provider::Anthropic,
        ),
        (Flags { model: Some(CLAUDE), provider: Some(ANTHROPIC), ..none }, both, Provider::Anthropic),
        (Flags { model: Some(CLAUDE), provider: Some(OPENAI), ..none }, gateway, Provider::OpenAi),
        (
            Flags { model: Some(CLAUDE), provider: Some(OPENAI), base_url: Some(LOCAL), ..none },
            both,
            Provider::OpenAi,
        ),
        (
            Flags { model: Some(CLAUDE), provider: Some(COMPATIBLE), base_url: Some(LOCAL), ..none },
            both,
            Provider::OpenAiCompatible,
        ),
        (Flags { model: Some(CLAUDE), base_url: Some(LOCAL), ..none }, &[], Provider::OpenAiCompatible),
    ];
    for (index, (flags, variables, expected)) in cases.into_iter().enumerate() {
        assert_eq!(select(flags, variables).0, expected, "case {index}");
    }
}

#[test]
fn only_a_named_provider_with_a_base_url_is_a_gateway() {
    let none = Flags::default();
    let keys: Environment = &[("OPENAI_API_KEY", "k")];
    let with_url: Environment = &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", LOCAL)];
    for (flags, variables, expected) in [
        (none, keys, false),
        (none, with_url, false),
        (Flags { base_url: Some(LOCAL), ..none }, keys, false),
        (Flags { provider: Some(OPENAI), ..none }, keys, false),
        (Flags { provider: Some(OPENAI), ..none }, with_url, true),
        (Flags { provider: Some(OPENAI), base_url: Some(LOCAL), ..none }, keys, true),
    ] {
        let ModelSource::Provider(route) = choose(flags, variables).unwrap() else { panic!("a script") };
        assert_eq!(route.is_gateway(), expected, "{flags:?} {variables:?}");
        // A gateway can start with a model of another vendor.
        let other = choose(Flags { model: Some(CLAUDE), ..flags }, variables);
        let starts = matches!(other, Ok(ModelSource::Provider(route)) if route.provider == Provider::OpenAi);
        assert_eq!(starts, expected, "{flags:?} {variables:?}");
    }
}

#[test]
fn a_model_that_the_catalog_does_not_have_is_a_warning_unless_its_provider_was_chosen() {
    let none = Flags { model: Some("claude-opus-4-66"), ..Flags::default() };
    let keys: Environment = &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    let with_url: Environment = &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", LOCAL)];
    let cases: [(Flags, Environment, Option<&str>); 11] = [
        (none, keys, Some("openai")),
        (none, &[("ANTHROPIC_API_KEY", "k")], Some("anthropic")),
        (none, &[("GEMINI_API_KEY", "k")], Some("gemini")),
        // A session that starts with a known model sends others to its provider.
        (Flags { model: Some(CLAUDE), ..none }, keys, Some("anthropic")),
        (Flags { model: None, ..none }, keys, Some("openai")),
        (Flags { provider: Some(OPENAI), ..none }, keys, None),
        (Flags { base_url: Some(LOCAL), ..none }, keys, None),
        (Flags { base_url: Some(LOCAL), ..none }, &[], None),
        (none, with_url, None),
        (none, &[("OPENAI_BASE_URL", LOCAL)], None),
        (Flags { provider: Some(COMPATIBLE), ..none }, with_url, None),
    ];
    for (flags, variables, expected) in cases {
        let ModelSource::Provider(route) = choose(flags, variables).unwrap() else { panic!("a script") };
        let warning = route.unknown_model("claude-opus-4-66", Catalog::built_in());
        let expected = expected.map(|provider| {
            format!(
                "model `claude-opus-4-66` is not in the catalog and is sent to {provider}; `--provider NAME` selects \
                 another provider, and `pintle models` lists the known models; did you mean `claude-opus-4-6`?"
            )
        });
        assert_eq!(warning, expected, "{flags:?} {variables:?}");
        assert_eq!(route.unknown_model(CLAUDE, Catalog::built_in()), None, "{flags:?} {variables:?}");
        let far = route.unknown_model("qqq", Catalog::built_in());
        assert!(far.is_none_or(|far| far.ends_with("lists the known models")), "{flags:?} {variables:?}");
    }
    let script = Route::scripted(Provider::OpenAi, "m".to_owned(), LOCAL.to_owned());
    assert_eq!(script.unknown_model("m", Catalog::built_in()), None);
}

#[test]
fn prompts_and_tools_are_those_of_the_selected_provider() {
    let cases: [(Option<&'static str>, Environment, Provider); 8] = [
        (None, &[], Provider::OpenAi),
        (None, &[("ANTHROPIC_API_KEY", "k")], Provider::Anthropic),
        (Some(CLAUDE), &[], Provider::Anthropic),
        (Some(CLAUDE), &[("OPENAI_API_KEY", "k")], Provider::Anthropic),
        (Some(CLAUDE), &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], Provider::Anthropic),
        (Some("m"), &[("GEMINI_API_KEY", "k")], Provider::Gemini),
        (Some("m"), &[("OPENAI_BASE_URL", LOCAL)], Provider::OpenAiCompatible),
        (Some("m"), &[("OPENAI_BASE_URL", LOCAL), ("OPENAI_API_KEY", "k")], Provider::OpenAi),
    ];
    for (model, variables, expected) in cases {
        let given = variables.iter().map(|(name, value)| (*name, OsStr::new(*value)));
        let displayed = displayed_provider(None, model, &ProcessEnv::from_variables(given)).unwrap();
        assert_eq!(displayed, expected, "{model:?} {variables:?}");
        if let Ok(ModelSource::Provider(route)) = choose(Flags { model, ..Flags::default() }, variables) {
            assert_eq!(route.provider, expected, "{model:?} {variables:?}");
        }
    }
}

#[test]
fn known_model_without_a_key_for_its_provider_is_rejected() {
    let none = Flags::default();
    let of_model = Flags { model: Some(CLAUDE), ..none };
    let openai: Environment = &[("OPENAI_API_KEY", "k")];
    let cases: [(Flags, Environment, FailureKind, &[&str]); 6] = [
        (
            Flags { base_url: Some(LOCAL), ..of_model },
            &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")],
            FailureKind::Usage,
            &["--base-url may be meant for openai", "--provider anthropic"],
        ),
        (
            of_model,
            openai,
            FailureKind::Credentials,
            &[CLAUDE, "served by anthropic", "ANTHROPIC_API_KEY", "--provider openai"],
        ),
        (
            of_model,
            &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", LOCAL)],
            FailureKind::Credentials,
            &[CLAUDE, "ANTHROPIC_API_KEY"],
        ),
        (of_model, &[], FailureKind::Credentials, &[CLAUDE, "ANTHROPIC_API_KEY"]),
        (
            Flags { model: Some("gemini-2.5-pro"), ..none },
            openai,
            FailureKind::Credentials,
            &["served by gemini", "GEMINI_API_KEY or GOOGLE_API_KEY"],
        ),
        (
            Flags { provider: Some(OPENAI), ..of_model },
            openai,
            FailureKind::Usage,
            &[CLAUDE, "not by openai", "--provider anthropic"],
        ),
    ];
    for (index, (flags, variables, kind, parts)) in cases.into_iter().enumerate() {
        let failure = choose(flags, variables).unwrap_err();
        assert_eq!(failure.kind(), kind, "case {index}");
        for part in parts {
            assert!(failure.message().contains(part), "case {index}: {part} in {failure:?}");
        }
    }
}

#[test]
fn invalid_base_url_is_a_usage_failure() {
    for url in ["nonsense", "ftp://host/v1"] {
        let flags = Flags { base_url: Some(url), model: Some("m"), ..Flags::default() };
        let ModelSource::Provider(route) = choose(flags, &[]).unwrap() else { panic!("a script") };
        let failure = route.client(Client::builder()).unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Usage);
        assert!(failure.message().starts_with("--base-url: configuration error"), "{failure:?}");
    }
}

#[test]
fn keys_are_redacted() {
    let key = ApiKey { secret: Secret::new("sk-secret"), source: "OPENAI_API_KEY" };
    assert!(!format!("{key:?}").contains("sk-secret"));
}
