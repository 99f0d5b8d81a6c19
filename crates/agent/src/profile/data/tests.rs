use serde_json::json;

use super::*;

fn read(value: Value) -> ProfileData {
    serde_json::from_value(value).unwrap()
}

fn profile(data: &ProfileData) -> ProviderProfile {
    data.profile(None, Catalog::built_in()).unwrap()
}

#[test]
fn omitted_fields_keep_the_values_of_the_base_profile() {
    for family in ModelFamily::ALL {
        for toolset in [Toolset::Spec, Toolset::Native] {
            let mut data = ProfileData::new("house", family);
            data.toolset = toolset;
            let own = data.profile(Some("m"), Catalog::built_in()).unwrap();
            let base = family.profile("m").with_toolset(toolset);
            assert_eq!((own.id.as_str(), own.provider.as_str()), ("house", family.name()));
            assert_eq!(own.tools(), base.tools(), "{family:?} {toolset:?}");
            assert_eq!(own.base_instructions, base.base_instructions);
            assert_eq!((own.doc_files, own.skill_dirs), (base.doc_files, base.skill_dirs));
            assert_eq!(own.context_window_size, base.context_window_size);
            assert_eq!(own.supports_parallel_tool_calls, base.supports_parallel_tool_calls);
            assert!(own.text_tool_calls.is_empty());
        }
    }
}

#[test]
fn every_field_is_applied() {
    let data = read(json!({
        "name": "house.small-1",
        "extends": "anthropic",
        "provider": "gateway",
        "model": "m-1",
        "display_name": "Model One",
        "knowledge_cutoff": "May 2025",
        "toolset": "native",
        "tools": ["Read", "Edit"],
        "system_prompt": "Be careful.",
        "project_documents": ["HOUSE.md"],
        "skill_directories": [],
        "parallel_tool_calls": false,
        "streaming": false,
        "reasoning": false,
        "context_window": 8192,
        "max_output_tokens": 1024,
        "text_tool_calls": ["hermes", "json"],
        "provider_options": {"gateway": {"seed": 7}},
    }));
    let profile = profile(&data);
    assert_eq!(profile.tools().iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["Read", "Edit"]);
    assert_eq!((profile.id.as_str(), profile.provider.as_str()), ("house.small-1", "gateway"));
    assert_eq!((profile.model.as_str(), &*profile.base_instructions), ("m-1", "Be careful."));
    assert_eq!(profile.display_name.as_deref(), Some("Model One"));
    assert_eq!(profile.knowledge_cutoff.as_deref(), Some("May 2025"));
    assert_eq!((profile.doc_files.len(), profile.skill_dirs.len()), (1, 0));
    assert!(!profile.supports_parallel_tool_calls && !profile.supports_streaming);
    assert!(!profile.supports_reasoning);
    assert_eq!((profile.context_window_size, profile.max_output_tokens), (8192, Some(1024)));
    assert_eq!(profile.text_tool_calls, [TextToolCallForm::Hermes, TextToolCallForm::Json]);
    assert_eq!(profile.provider_options["gateway"]["seed"], 7);
    let written = serde_json::to_value(&data).unwrap();
    assert_eq!(read(written), data);
}

#[test]
fn configured_fields_override_the_catalog() {
    let mut data = ProfileData::new("house", ModelFamily::Anthropic);
    data.context_window = Some(50_000);
    let profile = data.profile(Some("opus"), Catalog::built_in()).unwrap();
    assert_eq!((profile.model.as_str(), profile.context_window_size), ("claude-opus-5-5", 50_000));
    assert!(profile.max_output_tokens.is_some() && profile.display_name.is_some());
    let other = profile.with_model("some-other");
    assert_eq!(other.context_window_size, 50_000, "the configured window is kept for an unknown model");
}

#[test]
fn an_unusable_field_is_reported_with_the_expected_value() {
    let cases = [
        (
            json!({"name": ""}),
            "`name`: found \"\", expected letters, digits, `-`, `_` and `.`, at most 64 of them",
        ),
        (
            json!({"name": "a b"}),
            "`name`: found \"a b\", expected letters, digits, `-`, `_` and `.`, at most 64 of them",
        ),
        (json!({"name": "gemini"}), "`name`: found `gemini`, which is built in, expected another name"),
        (json!({"model": ""}), "`model`: found none, expected the name of a model"),
        (
            json!({"tools": ["shel"], "system_prompt": "x"}),
            "`tools`: found `shel`, expected some of read_file, write_file, edit_file, shell, grep, glob",
        ),
        (
            json!({"tools": ["grep", "grep"], "system_prompt": "x"}),
            "`tools`: found `grep` twice, expected each once",
        ),
        (
            json!({"tools": ["grep"]}),
            "`tools`: found no `system_prompt`, expected one that refers to these tools only",
        ),
        (
            json!({"system_prompt_file": "p.md"}),
            "`system_prompt_file`: found p.md, which was not read: expected its text in `system_prompt`",
        ),
        (
            json!({"system_prompt_file": "p.md", "system_prompt": "x"}),
            "`system_prompt_file`: found `system_prompt` as well, expected one of the two",
        ),
        (json!({"context_window": 100}), "`context_window`: found 100 tokens, expected 2048 at least"),
        (json!({"max_output_tokens": 0}), "`max_output_tokens`: found 0, expected 1 at least"),
        (
            json!({"max_output_tokens": 8192, "context_window": 8192}),
            "`max_output_tokens`: found 8192, expected less than the window of 8192 tokens",
        ),
        (
            json!({"provider_options": {"openai": 3}}),
            "`provider_options`: found 3 for `openai`, expected an object",
        ),
    ];
    for (changes, expected) in cases {
        let mut value = json!({"name": "house", "extends": "openai-compatible", "model": "m"});
        value.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let error = read(value).profile(None, Catalog::built_in()).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
}

#[test]
fn unknown_fields_and_values_fail_to_deserialise() {
    let cases = [
        (json!({"extends": "openai"}), "missing field `name`"),
        (json!({"name": "a"}), "missing field `extends`"),
        (json!({"name": "a", "extends": "llama"}), "unknown variant `llama`, expected one of `openai`"),
        (
            json!({"name": "a", "extends": "openai", "modle": "m"}),
            "unknown field `modle`, expected one of `name`",
        ),
        (
            json!({"name": "a", "extends": "openai", "toolset": "both"}),
            "unknown variant `both`, expected `spec` or `native`",
        ),
        (
            json!({"name": "a", "extends": "openai", "text_tool_calls": ["xml"]}),
            "unknown variant `xml`, expected one of `hermes`",
        ),
        (
            json!({"name": "a", "extends": "openai", "context_window": "8k"}),
            "invalid type: string \"8k\", expected u64",
        ),
    ];
    for (value, expected) in cases {
        let error = serde_json::from_value::<ProfileData>(value).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
