use super::*;
use crate::money::Money;
use crate::usage::Usage;

/// Start of an entry for a new model, with all required fields.
const NEW: &str = r#"{"id": "new", "provider": "openai", "context_window": 1000"#;

fn message(json: &str) -> String {
    let error = Catalog::built_in().merged_with(json).unwrap_err();
    let mut text = error.message().to_owned();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[test]
fn the_built_in_catalog_is_valid_and_searchable() {
    let strict = Catalog::from_json(SHIPPED).expect("the built-in file is valid");
    assert_eq!(&strict, Catalog::built_in());
    for (provider, best) in
        [("anthropic", "claude-opus-5-5"), ("openai", "gpt-6.2-sol"), ("gemini", "gemini-4-argon")]
    {
        for capability in
            [None, Some(Capability::Tools), Some(Capability::Vision), Some(Capability::Reasoning)]
        {
            assert_eq!(get_latest_model(provider, capability).unwrap().id, best);
        }
        assert!(list_models(Some(provider)).count() >= 10);
        assert!(list_models(Some(provider)).all(|model| model.provider == provider));
    }
    assert_eq!(list_models(None).count(), strict.list(None).count());
    assert_eq!(get_model_info("gpt-5.2-2025-12-11").unwrap().id, "gpt-5.2", "by an alias");
    assert_eq!(get_model_info("no-such-model"), None);
    assert_eq!(get_latest_model("nobody", None), None);
}

#[test]
fn the_models_of_the_specification_are_listed() {
    for (id, provider, name, context_window) in [
        ("claude-opus-4-6", "anthropic", "Claude Opus 4.6", 1_000_000),
        ("claude-sonnet-4-5", "anthropic", "Claude Sonnet 4.5", 200_000),
        ("gpt-5.2", "openai", "GPT-5.2", 400_000),
        ("gpt-5.2-codex", "openai", "GPT-5.2 Codex", 400_000),
        ("gemini-3.1-pro-preview", "gemini", "Gemini 3.1 Pro Preview", 1_048_576),
        ("gemini-3-flash-preview", "gemini", "Gemini 3 Flash (Preview)", 1_048_576),
    ] {
        let model = get_model_info(id).unwrap();
        assert_eq!((model.provider.as_str(), model.display_name.as_str()), (provider, name));
        assert_eq!(model.context_window, context_window, "{id}");
        assert!(model.supports_tools && model.supports_vision && model.supports_reasoning, "{id}");
        assert_eq!(list_models(Some(provider)).filter(|listed| listed.id == id).count(), 1, "{id}");
    }
}

#[test]
fn every_built_in_value_has_a_source_and_is_plausible() {
    for model in list_models(None) {
        let (id, sources) = (&model.id, &model.sources);
        assert!(sources.limits.is_some() && sources.capabilities.is_some(), "{id}");
        assert_eq!(sources.prices.is_some(), model.input_cost_per_million.is_some(), "{id}");
        assert_eq!(sources.knowledge_cutoff.is_some(), model.knowledge_cutoff.is_some(), "{id}");
        assert_eq!(sources.retires_on.is_some(), model.retires_on.is_some(), "{id}");
        assert_eq!(model.input_cost_per_million.is_some(), model.output_cost_per_million.is_some(), "{id}");
        assert!(model.max_output.is_some_and(|limit| limit <= model.context_window), "{id}");
        assert!(model.price_tiers.iter().all(|tier| tier.above_input_tokens < model.context_window), "{id}");
    }
}

#[test]
fn built_in_names_are_unique() {
    let mut names: Vec<&String> =
        list_models(None).flat_map(|model| model.aliases.iter().chain([&model.id])).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn equal_names_of_two_providers_are_distinguished() {
    let catalog = Catalog::built_in()
        .merged_with(
            r#"[{"id": "gpt-5.2", "provider": "azure", "context_window": 1000, "aliases": ["opus"]}]"#,
        )
        .unwrap();
    assert_eq!(catalog.find("azure", "gpt-5.2").unwrap().context_window, 1000);
    assert_eq!(catalog.find("openai", "gpt-5.2").unwrap().context_window, 400_000);
    assert_eq!(catalog.find("anthropic", "opus").unwrap().id, "claude-opus-5-5");
    assert_eq!(catalog.find("gemini", "gpt-5.2"), None);
}

#[test]
fn an_override_changes_named_fields_and_adds_models() {
    let built_in = get_model_info("gpt-5.2").unwrap();
    let catalog = Catalog::built_in()
        .merged_with(&format!(
            r#"[{NEW}, "supports_tools": true}},
                {{"id": "gpt-5.2", "provider": "openai", "input_cost_per_million": 1, "knowledge_cutoff": null}}]"#
        ))
        .unwrap();
    let changed = catalog.find("openai", "gpt-5.2").unwrap();
    let mut expected = built_in.clone();
    expected.input_cost_per_million = Some(1.0);
    expected.knowledge_cutoff = None;
    expected.sources.prices = None;
    expected.sources.knowledge_cutoff = None;
    assert_eq!(changed, &expected, "other fields are unchanged");

    let mut new = ModelInfo::new("openai", "new", 1000);
    new.supports_tools = true;
    assert_eq!(catalog.latest("openai", Some(Capability::Tools)), Some(&new), "new models come first");
    assert_eq!(catalog.latest("openai", Some(Capability::Vision)).unwrap().id, "gpt-6.2-sol");
    let order = |catalog: &Catalog| catalog.list(None).map(|model| model.id.clone()).collect::<Vec<_>>();
    assert_eq!(order(&catalog)[1..], order(Catalog::built_in()), "overrides keep the order");
    assert_eq!(catalog.merged_with("[]").unwrap(), catalog);

    let sourced = format!(r#"[{NEW}, "sources": {{"limits": "a letter"}}, "max_output": 7}}]"#);
    let sourced = Catalog::from_json(&sourced).unwrap();
    assert_eq!(sourced.get("new").unwrap().sources.limits.as_deref(), Some("a letter"));
}

#[test]
fn errors_name_line_and_field() {
    let after = |fields: &str| message(&format!("[\n  {NEW},\n   {fields}}}\n]"));
    let cases = [
        (message("["), "line 1 of the model catalog: expected a list of models: EOF while parsing a list"),
        (message("{}"), "line 1 of the model catalog: expected a list of models: invalid type: map"),
        (message("[\n 7]"), "line 2 of the model catalog: expected an object: invalid type"),
        (message("[{\n}]"), "line 1 of the model catalog: expected `id` with a string"),
        (message("[{\"id\": 1}]"), "line 1 of the model catalog: expected `id` with a string"),
        (message(r#"[{"id": "x"}]"#), "line 1 of the model catalog: expected `provider` with a string"),
        (
            message(r#"[{"id": "x", "provider": "y"}]"#),
            "line 1 of the model catalog: the new model `x` needs `context_window`",
        ),
        (
            message(&format!("[{NEW}}},\n{NEW}}}]")),
            "line 2 of the model catalog: the model `new` is listed twice",
        ),
        (
            after(r#""max_output": "many""#),
            "line 3 of the model catalog: invalid `max_output`: invalid type: string \"many\", expected u64",
        ),
        (
            after("\"colour\": \"blue\""),
            "line 3 of the model catalog: invalid `colour`: unknown field `colour`, expected one of `id`",
        ),
        (
            after("\n\"context_window\": null"),
            "line 4 of the model catalog: invalid `context_window`: missing field `context_window`",
        ),
        (after("\"max_output\": 0"), "line 3 of the model catalog: `max_output` must be at least 1"),
        (
            after("\"input_cost_per_million\": -1"),
            "line 3 of the model catalog: `input_cost_per_million` must not be negative",
        ),
        (after("\"aliases\": [\"\"]"), "line 3 of the model catalog: `aliases` must not be empty"),
        (
            after("\"price_tiers\": [{\"above_input_tokens\": 2}, {\"above_input_tokens\": 1}]"),
            "line 3 of the model catalog: `price_tiers` must begin with the shortest prompts",
        ),
        (
            after("\"price_tiers\": [{}]"),
            "line 3 of the model catalog: invalid `price_tiers`: missing field `above_input_tokens`",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn a_long_file_is_parsed_in_linear_time() {
    let entry = |index| format!("{{\"id\": \"m{index}\", \"provider\": \"p\",\n\"context_window\": 7}}");
    let entries: Vec<String> = (0..5_000).map(entry).collect();
    let text = format!("[{}]", entries.join(",\n"));
    let start = std::time::Instant::now();
    let catalog = Catalog::from_json(&text).unwrap();
    assert_eq!(catalog.merged_with(&text).unwrap(), catalog);
    // Counting lines for each field, or searching all models for each entry, would take minutes.
    assert!(start.elapsed() < std::time::Duration::from_secs(15), "{:?}", start.elapsed());
}

/// Model with a price for each kind of token, ten times higher above 1,000 tokens.
fn priced_model() -> ModelInfo {
    let json = r#"[{"id": "m", "provider": "p", "context_window": 10000,
        "input_cost_per_million": 1000000, "output_cost_per_million": 2000000,
        "cache_read_cost_per_million": 3000000, "cache_write_cost_per_million": 4000000,
        "price_tiers": [{"above_input_tokens": 1000, "input_cost_per_million": 10000000,
            "output_cost_per_million": 20000000, "cache_read_cost_per_million": 30000000,
            "cache_write_cost_per_million": 40000000},
            {"above_input_tokens": 5000, "output_cost_per_million": 5}]}]"#;
    Catalog::from_json(json).unwrap().list(None).next().unwrap().clone()
}

fn usage(input: u64, output: u64, read: Option<u64>, written: Option<u64>) -> Usage {
    let mut usage = Usage::new(input, output);
    usage.cache_read_tokens = read;
    usage.cache_write_tokens = written;
    usage
}

#[test]
fn each_kind_of_token_is_charged_once() {
    let cases = [
        (usage(0, 0, None, None), Some(0.0)),
        (usage(10, 1, None, None), Some(12.0)),
        (usage(10, 1, Some(4), Some(2)), Some(4.0 + 2.0 + 12.0 + 8.0)),
        (usage(3, 0, Some(4), None), Some(12.0)),
        (usage(1000, 1, None, None), Some(1002.0)),
        (usage(1001, 1, None, None), Some(10_030.0)),
        (usage(1001, 0, Some(1001), None), Some(30_030.0)),
        (usage(1000, 0, Some(1), None), Some(999.0 + 3.0)),
        (usage(1001, 0, Some(1), Some(1)), Some(9990.0 + 30.0 + 40.0)),
        (usage(5001, 1, None, None), None),
    ];
    for (usage, expected) in cases {
        let cost = priced_model().cost(&usage);
        assert_eq!(cost, expected.map(Money::from_dollars), "{usage:?}");
    }
}

#[test]
fn an_unknown_price_stays_unknown() {
    let catalog = Catalog::built_in();
    let mut usage = Usage::new(1_000_000, 0);
    assert_eq!(catalog.cost("openai", "no-such-model", &usage), None);
    assert_eq!(catalog.cost("openai-compatible", "gpt-5.2", &usage), None, "another provider's model");
    assert_eq!(catalog.cost("openai", "gpt-5.2", &usage), Some(Money::from_micros(1_750_000)));
    usage.cache_write_tokens = Some(0);
    assert_eq!(
        catalog.cost("openai", "gpt-5.2", &usage),
        Some(Money::from_micros(1_750_000)),
        "unused kinds need no price"
    );
    usage.cache_write_tokens = Some(1);
    assert_eq!(
        catalog.cost("openai", "gpt-5.2", &usage),
        Some(Money::from_micros(1_750_000)),
        "without a write price, the input price applies"
    );
    assert_eq!(ModelInfo::new("p", "m", 1).cost(&Usage::new(1, 0)), None);
}
