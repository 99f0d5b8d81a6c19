#![expect(clippy::disallowed_methods, reason = "the test writes files for the command to read")]

use pintle_agent::Toolset;
use pintle_middleware::TextToolCallForm;
use tempfile::TempDir;

use super::*;

fn write_profile(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.toml");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

/// Returns the error for a profile, without its path.
fn error(text: &str) -> String {
    let (_directory, path) = write_profile(text);
    let profile = ProfileFile::read(&path)
        .and_then(|file| file.profile(Some("m"), Catalog::built_in(), &ToolsetOptions::default()));
    let failure = profile.map(|profile| panic!("{profile:?}")).unwrap_or_else(|failure: Failure| failure);
    failure.message().replace(&path.display().to_string(), "p.toml")
}

/// The example in `docs/reference/profiles.md` is complete.
#[test]
fn documented_example_loads() {
    let page = include_str!("../../../../docs/reference/profiles.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let (directory, path) = write_profile(example);
    std::fs::write(directory.path().join("qwen-small.md"), "You repair Python programs.\n").unwrap();
    let file = ProfileFile::read(&path).unwrap();
    // It has every field, except one of two that are mutually exclusive.
    let fields = serde_json::to_value(&file.data).unwrap();
    let every =
        serde_json::from_value::<ProfileData>(serde_json::json!({"name": "a", "extends": "openai", "": 0}));
    let known = every.unwrap_err().to_string();
    let known: Vec<&str> = known.split('`').skip(3).step_by(2).collect();
    assert!(known.len() > 15, "{known:?}");
    for name in known.iter().filter(|name| **name != "system_prompt_file") {
        assert!(fields.get(name).is_some(), "{name} is missing in the example");
    }
    let profile = file.profile(None, Catalog::built_in(), &ToolsetOptions::default()).unwrap();
    assert_eq!((profile.id.as_str(), profile.provider.as_str()), ("qwen-small", "openai-compatible"));
    assert_eq!(&*profile.base_instructions, "You repair Python programs.\n");
    assert_eq!((profile.context_window_size, profile.max_output_tokens), (8192, Some(2048)));
    assert_eq!(profile.text_tool_calls, [TextToolCallForm::Hermes, TextToolCallForm::Function]);
    assert_eq!(profile.provider_options["openai-compatible"]["top_k"], 20);
    let tools = profile.tools();
    assert_eq!(profile.clone().with_toolset(Toolset::Native).tools(), tools, "its tools are its own");
}

#[test]
fn errors_have_a_position() {
    let head = "name = \"a\"\nextends = \"openai-compatible\"\n";
    let cases = [
        (
            "name = ",
            "invalid profile p.toml: line 1, column 8: string values must be quoted, expected literal string",
        ),
        (
            "name = \"a\"\nextends = 3\n",
            "invalid profile p.toml: line 2, column 11: found `3`, wanted string or table",
        ),
        (
            &format!("{head}provider = \"gateway\"\n"),
            "invalid profile p.toml: `provider`: found `gateway`, expected one of openai, anthropic, gemini, \
             openai-compatible",
        ),
        (
            &format!("{head}context_window = 1\n"),
            "invalid profile p.toml: `context_window`: found 1 tokens, expected 2048 at least",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
    let unknown = error(&format!("{head}widow = 1\n"));
    let expected =
        "invalid profile p.toml: line 3, column 1: unknown field `widow`, expected one of `name`, ";
    assert!(unknown.starts_with(expected), "{unknown}");
    let missing = error(&format!("{head}system_prompt_file = \"missing.md\"\n"));
    assert!(missing.starts_with("cannot read the system prompt "), "{missing}");
}

#[test]
fn missing_flags_come_from_the_file() {
    let (_directory, path) = write_profile("name = \"a\"\nextends = \"gemini\"\nmodel = \"m-1\"\n");
    let file = ProfileFile::read(&path).unwrap();
    let filled = file.fill(&ModelChoice::default()).unwrap();
    assert_eq!(filled.provider, Some(ProviderName::Of(Provider::Gemini)));
    assert_eq!(filled.model.as_deref(), Some("m-1"));
    let given = ModelChoice { model: Some("m-2".into()), ..ModelChoice::default() };
    assert_eq!(file.fill(&given).unwrap().model.as_deref(), Some("m-2"));
    let scripted = ModelChoice { provider: Some(ProviderName::Scripted), ..ModelChoice::default() };
    let filled = file.fill(&scripted).unwrap();
    assert_eq!((filled.provider, filled.dialect), (scripted.provider, Some(Provider::Gemini)));
    let other = ModelChoice { dialect: Some(Provider::OpenAi), ..scripted };
    let failure = file.fill(&other).unwrap_err();
    let sentence = failure.message().replace(&path.display().to_string(), "p.toml");
    assert_eq!(sentence, "--dialect openai conflicts with the profile p.toml, which is for gemini");
    let other = ModelChoice { provider: Some(ProviderName::Of(Provider::OpenAi)), ..ModelChoice::default() };
    assert!(file.fill(&other).unwrap_err().message().starts_with("--provider openai conflicts with"));
}
