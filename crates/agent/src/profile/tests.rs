use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{
    CommandScript, ExecutionEnvironment, ExecutionEnvironmentExt as _, LocalEnvironment, MemoryEnvironment,
};
use pintle_llm::{ToolCall, ToolDefinition};
use pintle_tools::builtin::{
    FetchRequest, SearchQuery, SearchResults, WebClient, WebError, WebErrorKind, WebPage, WebSearchClient,
};
use pintle_tools::pipeline::{JudgedCall, execute, prepare};
use pintle_tools::{Effect, ToolContext, ToolError, ToolOutput, TruncationLimits};
use serde_json::json;

use super::*;
use crate::prompt::LayerKind;
use crate::protocol::{Skill, SubagentLimits};

fn all() -> [ProviderProfile; 4] {
    [
        ProviderProfile::openai("m"),
        ProviderProfile::anthropic("m"),
        ProviderProfile::gemini("m"),
        ProviderProfile::openai_compatible("m"),
    ]
}

#[test]
fn each_family_has_its_tools_and_documents() {
    let cases: [(&str, &[&str], &[&str], bool); 4] = [
        (
            "openai",
            &["read_file", "apply_patch", "write_file", "shell", "grep", "glob"],
            &["AGENTS.md", ".codex/instructions.md"],
            true,
        ),
        (
            "anthropic",
            &["read_file", "write_file", "edit_file", "shell", "grep", "glob"],
            &["AGENTS.md", "CLAUDE.md"],
            true,
        ),
        (
            "gemini",
            &["read_file", "read_many_files", "write_file", "edit_file", "shell", "grep", "glob", "list_dir"],
            &["AGENTS.md", "GEMINI.md"],
            true,
        ),
        (
            "openai-compatible",
            &["read_file", "write_file", "edit_file", "shell", "grep", "glob"],
            &["AGENTS.md"],
            false,
        ),
    ];
    for (profile, (id, tools, doc_files, parallel)) in all().into_iter().zip(cases) {
        assert_eq!((profile.id.as_str(), profile.provider.as_str()), (id, id));
        assert_eq!(profile.tools().iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), tools, "{id}");
        assert_eq!(profile.doc_files, doc_files, "{id}");
        assert_eq!(profile.supports_parallel_tool_calls, parallel, "{id}");
        assert!(profile.supports_streaming && profile.provider_options.is_empty(), "{id}");
    }
}

fn native() -> [ProviderProfile; 4] {
    all().map(|profile| profile.with_toolset(Toolset::Native))
}

/// Every profile in both toolsets with these options, the specification's toolset first.
fn in_both_toolsets(options: &ToolsetOptions) -> impl Iterator<Item = ProviderProfile> + use<> {
    let of = |toolset| all().map(|profile| profile.with_toolset_options(toolset, options));
    of(Toolset::Spec).into_iter().chain(of(Toolset::Native))
}

/// All optional tools.
fn all_options() -> ToolsetOptions {
    let search = SearchBy::Client(Arc::new(NoWeb));
    let options = ToolsetOptions::new().with_web(Arc::new(NoWeb)).with_search(search);
    options.with_questions(true).with_plan(true).with_background(true)
}

#[derive(Debug)]
struct NoWeb;

#[async_trait]
impl WebClient for NoWeb {
    async fn fetch(&self, _: FetchRequest) -> Result<WebPage, WebError> {
        Err(WebError::new(WebErrorKind::Failed, "no web access"))
    }
}

#[async_trait]
impl WebSearchClient for NoWeb {
    async fn search(&self, _: SearchQuery) -> Result<SearchResults, WebError> {
        Err(WebError::new(WebErrorKind::Failed, "no web access"))
    }
}

#[test]
fn optional_tools_have_the_familys_names() {
    let without: Vec<Vec<String>> =
        in_both_toolsets(&ToolsetOptions::new()).map(|profile| names(&profile)).collect();
    let more = in_both_toolsets(&all_options()).zip(&without).map(|(profile, without)| {
        let added = names(&profile).into_iter().filter(|name| !without.contains(name));
        format!("{}: {}", profile.id, added.collect::<Vec<_>>().join(" "))
    });
    insta::assert_snapshot!(more.collect::<Vec<_>>().join("\n"), @"
    openai: shell_start shell_read shell_write shell_stop shell_list web_fetch web_search update_plan ask_user
    anthropic: shell_start shell_read shell_write shell_stop shell_list web_fetch web_search update_plan ask_user
    gemini: shell_start shell_read shell_write shell_stop shell_list web_fetch web_search update_plan ask_user
    openai-compatible: shell_start shell_read shell_write shell_stop shell_list web_fetch web_search update_plan ask_user
    openai: request_user_input web_search
    anthropic: WebFetch WebSearch AskUserQuestion
    gemini: web_fetch shell_start shell_read shell_write shell_stop shell_list google_web_search update_plan ask_user
    openai-compatible: shell_start shell_read shell_write shell_stop shell_list web_fetch web_search update_plan ask_user
    ");
}

#[test]
fn provider_search_is_set_and_removed_with_the_toolset() {
    let searching = ToolsetOptions::new().with_search(SearchBy::Provider);
    for toolset in [Toolset::Spec, Toolset::Native] {
        for (profile, kind) in
            all().into_iter().zip([Some("web_search"), Some("web_search_20250305"), None, None])
        {
            let id = profile.id.clone();
            let profile =
                profile.with_toolset_options(toolset, &searching).with_toolset_options(toolset, &searching);
            let tools = profile.provider_options.get(&id).map(|options| options["tools"].clone());
            let kinds: Option<Vec<Value>> = tools
                .map(|tools| tools.as_array().unwrap().iter().map(|tool| tool["type"].clone()).collect());
            assert_eq!(kinds, kind.map(|kind| vec![json!(kind)]), "{id}");
            assert!(profile.with_toolset(toolset).provider_options.is_empty(), "{id}");
        }
    }
    let own = json!({"tools": [{"type": "code_interpreter"}], "service_tier": "flex"});
    let profile = ProviderProfile::openai("m").with_provider_options("openai", own.clone());
    let with = profile.with_toolset_options(Toolset::Native, &searching);
    assert_eq!(with.provider_options["openai"]["tools"].as_array().unwrap().len(), 2);
    assert_eq!(with.with_toolset(Toolset::Native).provider_options["openai"], own);
}

#[test]
fn skill_tools_use_the_configured_directories() {
    for (profile, name) in
        [(ProviderProfile::anthropic("m"), "Skill"), (ProviderProfile::gemini("m"), "activate_skill")]
    {
        assert!(profile.clone().with_skill_dirs(["x"]).tool_registry.get(name).is_none());
        let profile = profile.with_toolset(Toolset::Native);
        let before = names(&profile);
        let moved = profile.with_skill_dirs(["house/skills"]);
        assert_eq!(names(&moved), before, "same names, same order");
    }
}

fn names(profile: &ProviderProfile) -> Vec<String> {
    profile.tools().iter().map(|tool| tool.name.clone()).collect()
}

#[test]
fn native_toolsets_have_the_agents_tools() {
    let cases: [&[&str]; 4] = [
        &["exec_command", "write_stdin", "update_plan", "apply_patch", "view_image"],
        &[
            "TaskOutput",
            "Bash",
            "Glob",
            "Grep",
            "Read",
            "Edit",
            "Write",
            "NotebookEdit",
            "TodoWrite",
            "TaskStop",
            "Skill",
        ],
        &[
            "list_directory",
            "read_file",
            "read_many_files",
            "search_file_content",
            "glob",
            "replace",
            "write_file",
            "run_shell_command",
            "activate_skill",
        ],
        // Models behind Chat Completions have no agent of their own.
        &["read_file", "write_file", "edit_file", "shell", "grep", "glob"],
    ];
    for ((profile, spec), tools) in native().into_iter().zip(all()).zip(cases) {
        assert_eq!(names(&profile), tools, "{}", profile.id);
        let back = profile.with_toolset(Toolset::Spec);
        assert_eq!((names(&back), &back.base_instructions), (names(&spec), &spec.base_instructions));
    }
    let own = ProviderProfile::new("house", "m").with_base_instructions("Be careful.").with_tool(CustomShell);
    let own = own.unwrap().with_toolset(Toolset::Native);
    assert_eq!(
        (names(&own).as_slice(), &*own.base_instructions),
        (["shell".into()].as_slice(), "Be careful.")
    );
}

/// A limit for a kind applies whatever the name of the tool.
#[tokio::test]
async fn output_limits_apply_by_kind() {
    let directory = tempfile::tempdir().unwrap();
    let cases = [
        ("exec_command", "cmd"),
        ("Bash", "command"),
        ("run_shell_command", "command"),
        ("shell", "command"),
    ];
    for (profile, (name, parameter)) in native().into_iter().zip(cases) {
        assert_eq!(profile.tool_registry.get(name).unwrap().kind(), "shell");
        let env = local(directory.path());
        let mut arguments = Map::new();
        arguments.insert(parameter.to_owned(), "seq 1 1000".into());
        let call = ToolCall::new("c1", name, arguments);
        let prepared = prepare(&profile.tool_registry, &[], env.as_ref(), &call).await;
        let JudgedCall::Ready { call, .. } = prepared else { panic!("{prepared:?}") };
        let limits = TruncationLimits::default().with_chars("shell", 100);
        let execution = execute(&call, &ToolContext::new(env, "c1"), &limits).await;
        assert!(execution.result.text().len() < 500, "{name}: {}", execution.result.text());
        assert!(execution.output.len() > 3_000, "{name}");
    }
}

#[test]
fn prompts_mention_exactly_the_available_tools() {
    let profiles = || all().into_iter().chain(native()).chain(in_both_toolsets(&all_options()));
    let mut all_names: Vec<String> =
        profiles().flat_map(|p| p.tools()).map(|tool| tool.name.clone()).collect();
    all_names.sort();
    all_names.dedup();
    for profile in profiles() {
        let text = &profile.base_instructions;
        let environment = EnvironmentContext::new("/p", "linux", "Linux 6.18.0", "2026-11-21");
        let skills = vec![Skill::new("forms", "Fill in forms.", "/p/.agents/skills/forms/SKILL.md")];
        let docs = ProjectDocs::default().with_skills(skills);
        let prompt = profile.build_system_prompt(&environment, &docs, None);
        // A model would call any tool that its prompt mentions.
        for name in &all_names {
            let is_mentioned = prompt.contains(&format!("`{name}`"));
            assert_eq!(is_mentioned, profile.tool_registry.get(name).is_some(), "{name} in {}", profile.id);
        }
        for file in &profile.doc_files {
            let parent_covers = file.starts_with(".codex/");
            assert!(parent_covers || text.contains(file.as_str()), "{file} in {}", profile.id);
        }
        assert!(text.len() < 5_500, "{} has {} bytes", profile.id, text.len());
        assert!(text.starts_with("You are a coding agent run by Pintle"), "{}", profile.id);
    }
}

#[test]
fn prompts_list_tools_after_the_environment() {
    let environment = EnvironmentContext::new("/p", "linux", "Linux 6.18.0", "2026-11-21");
    for profile in all().into_iter().chain(native()) {
        let layers = profile.prompt_layers(&environment, &ProjectDocs::default(), None);
        let kinds: Vec<LayerKind> = layers.iter().map(|layer| layer.kind).collect();
        assert_eq!(kinds, [LayerKind::BaseInstructions, LayerKind::Environment, LayerKind::Tools]);
        let offered = profile.offered_tools(false);
        let names = offered.iter().map(|tool| format!("- `{}`: ", tool.name));
        let listed = layers[2].text.lines().filter(|line| line.starts_with("- `"));
        assert!(
            names.eq(listed.map(|line| line[..line.find(": ").unwrap() + 2].to_owned())),
            "{}",
            profile.id
        );
    }
}

#[test]
fn a_tool_for_skills_is_offered_if_there_are_some() {
    let environment = EnvironmentContext::new("/p", "linux", "Linux 6.18.0", "2026-11-21");
    let skills = vec![Skill::new("forms", "Fill in forms.", "/p/.agents/skills/forms/SKILL.md")];
    let docs = ProjectDocs::default().with_skills(skills);
    let [_, anthropic, gemini, _] = native();
    for (profile, name) in [(anthropic, "Skill"), (gemini, "activate_skill")] {
        let has = |tools: &ToolList| tools.iter().any(|tool| tool.name == name);
        assert!(has(&profile.offered_tools(true)) && !has(&profile.offered_tools(false)), "{name}");
        assert_eq!(profile.offered_tools(true), profile.tools());
        for (docs, is_listed) in [(&docs, true), (&ProjectDocs::default(), false)] {
            let prompt = profile.build_system_prompt(&environment, docs, None);
            assert_eq!(prompt.contains(&format!("`{name}`")), is_listed, "{name}");
        }
        assert!(profile.tool_registry.get(name).is_some(), "{name} can be called");
    }
}

#[test]
fn facts_come_from_the_catalog() {
    for id in ["openai", "anthropic", "gemini"] {
        let best = ProviderProfile::default_model(id).unwrap();
        let info = Catalog::built_in().get(best).unwrap();
        let profile = match id {
            "openai" => ProviderProfile::openai(best),
            "anthropic" => ProviderProfile::anthropic(best),
            _ => ProviderProfile::gemini(best),
        };
        assert_eq!(profile.display_name.as_ref(), Some(&info.display_name));
        assert_eq!(profile.knowledge_cutoff, info.knowledge_cutoff);
        assert_eq!(profile.context_window_size, info.context_window);
        assert_eq!(profile.max_output_tokens, info.max_output);
        assert_eq!(profile.supports_reasoning, info.supports_reasoning);
        assert!(info.supports_tools);
    }
    assert_eq!(ProviderProfile::default_model("openai-compatible"), None);
}

#[test]
fn a_profile_without_prices_has_none_for_any_model() {
    let profile = ProviderProfile::anthropic("opus");
    assert!(profile.pricing.is_some());
    let other = ProviderProfile::default_model("anthropic").unwrap();
    let unpriced = profile.without_prices();
    assert_eq!(unpriced.pricing, None);
    let switched = unpriced.with_model(other);
    assert_eq!((switched.pricing.as_ref(), switched.display_name.is_some()), (None, true));
    assert_eq!(switched.with_catalog(Catalog::built_in()).pricing, None);
}

#[test]
fn with_model_updates_the_facts() {
    let profile = ProviderProfile::anthropic("opus");
    assert_eq!(profile.model, "claude-opus-5-5", "an alias becomes the identifier");
    let unknown = profile.with_model("claude-next");
    assert_eq!(unknown.model, "claude-next");
    assert_eq!((unknown.display_name.as_ref(), unknown.max_output_tokens), (None, None));
    assert_eq!((unknown.context_window_size, unknown.supports_reasoning), (200_000, true));

    let other_provider = ProviderProfile::openai_compatible("claude-sonnet-4-5");
    assert_eq!(other_provider.display_name.as_deref(), Some("Claude Sonnet 4.5"));
    let foreign_alias = ProviderProfile::openai_compatible("sonnet");
    assert_eq!((foreign_alias.model.as_str(), foreign_alias.context_window_size), ("sonnet", 32_768));

    let entry = r#"[{"id": "local", "provider": "openai-compatible", "display_name": "Local", "context_window": 8192,
        "supports_tools": true, "supports_vision": false, "supports_reasoning": true, "max_output": 4096}]"#;
    let local = ProviderProfile::openai_compatible("local").with_catalog(&Catalog::from_json(entry).unwrap());
    assert_eq!((local.context_window_size, local.max_output_tokens), (8192, Some(4096)));
    assert!(local.supports_reasoning);
}

#[test]
fn a_custom_profile_keeps_its_settings() {
    let mut profile = ProviderProfile::new("house", "m")
        .with_provider("gateway")
        .with_doc_files(["HOUSE.md"])
        .with_provider_options("anthropic", json!({"beta_headers": ["context-1m-2025-08-07"]}))
        .with_base_instructions("Be careful.");
    profile.context_window_size = 10_000;
    let profile = profile.with_model("m2");
    assert_eq!((profile.id.as_str(), profile.provider.as_str()), ("house", "gateway"));
    assert_eq!((profile.model.as_str(), profile.context_window_size), ("m2", 10_000));
    assert_eq!(profile.doc_files, ["HOUSE.md"]);
    assert_eq!(profile.provider_options["anthropic"]["beta_headers"][0], "context-1m-2025-08-07");
    assert!(profile.tools().is_empty());
}

/// A custom tool named `shell`.
#[derive(Debug)]
struct CustomShell;

#[async_trait]
impl DynTool for CustomShell {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let parameters = json!({"type": "object", "properties": {"line": {"type": "string"}}});
        ToolDefinition::new("shell", "Runs in our sandbox.", parameters)
            .map_err(|source| DefinitionError::refused("shell", source))
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    async fn call_json(&self, arguments: Value, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(format!("sandboxed {}", arguments["line"])))
    }
}

/// Calls one of the profile's tools, checks whether it fails, and returns its output.
async fn call(
    profile: &ProviderProfile,
    env: Arc<dyn ExecutionEnvironment>,
    name: &str,
    arguments: Value,
    is_error: bool,
) -> String {
    let call = ToolCall::new("c1", name, arguments.as_object().unwrap().clone());
    let prepared = prepare(&profile.tool_registry, &[], env.as_ref(), &call).await;
    let JudgedCall::Ready { call, .. } = prepared else { panic!("{prepared:?}") };
    let execution = execute(&call, &ToolContext::new(env, "c1"), &TruncationLimits::default()).await;
    assert_eq!(execution.error.is_some(), is_error, "{:?}", execution.result);
    execution.output.to_text_lossy().unwrap()
}

fn local(directory: &Path) -> Arc<LocalEnvironment> {
    Arc::new(LocalEnvironment::builder(directory).build().unwrap())
}

#[tokio::test]
async fn a_custom_tool_replaces_one_of_its_name() {
    let before: Vec<String> =
        ProviderProfile::openai("m").tools().iter().map(|tool| tool.name.clone()).collect();
    let profile = ProviderProfile::openai("m").with_tool(CustomShell).unwrap();
    let after: Vec<String> = profile.tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(before, after, "same names, same order");
    let environment = EnvironmentContext::new("/p", "linux", "Linux 6.18.0", "2026-11-21");
    let prompt = profile.build_system_prompt(&environment, &ProjectDocs::default(), None);
    assert!(prompt.contains("- `shell`: Runs in our sandbox.\n"), "{prompt}");
    let directory = tempfile::tempdir().unwrap();
    let output = call(&profile, local(directory.path()), "shell", json!({"line": "ls"}), false).await;
    assert_eq!(output, "sandboxed \"ls\"");
    assert!(ProviderProfile::openai("m").without_tool("shell").tool_registry.get("shell").is_none());
}

#[tokio::test(start_paused = true)]
async fn commands_have_the_familys_default_timeout() {
    for (profile, milliseconds) in all().into_iter().zip([10_000, 120_000, 10_000, 10_000]) {
        let env = MemoryEnvironment::new("/p").with_commands(|_| CommandScript::exit(0).hang());
        let output = call(&profile, Arc::new(env), "shell", json!({"command": "sleep 600"}), true).await;
        let message = format!("timed out after {milliseconds}ms");
        assert!(output.contains(&message), "{}: {output}", profile.id);
        let seconds = format!("{} seconds", milliseconds / 1000);
        assert!(profile.base_instructions.contains(&seconds), "{} does not say {seconds}", profile.id);
    }
}

#[tokio::test]
async fn the_example_patch_of_the_prompt_applies() {
    let profile = ProviderProfile::openai("m");
    patch_applies(&profile, "patch").await;
    patch_applies(&profile.with_toolset(Toolset::Native), "input").await;
}

async fn patch_applies(profile: &ProviderProfile, parameter: &str) {
    let text = &profile.base_instructions;
    let start = text.find("*** Begin Patch\n").unwrap();
    let patch = &text[start..start + text[start..].find("\n```").unwrap()];
    let directory = tempfile::tempdir().unwrap();
    let env = local(directory.path());
    let server = "impl Server {\n    pub fn accept(&mut self, request: Request) -> Result<usize, Error> {\n        \
        self.queue.push(request);\n        Ok(0)\n    }\n}\n";
    for (name, content) in [
        ("src/server.rs", server),
        ("src/old_name.rs", "//! The old name.\n"),
        ("src/unused.rs", "//! Unused.\n"),
    ] {
        env.write_file(Path::new(name), content).await.unwrap();
    }
    call(profile, env.clone(), "apply_patch", json!({ parameter: patch }), false).await;
    let read = async |name: &str| env.read_file(Path::new(name), None, None).await.ok();
    assert!(read("src/server.rs").await.unwrap().contains("Ok(self.queue.len())"));
    assert_eq!(read("src/new_name.rs").await.as_deref(), Some("//! The new name.\n"));
    assert!(read("docs/limits.md").await.is_some());
    assert_eq!((read("src/unused.rs").await, read("src/old_name.rs").await), (None, None));
}

#[tokio::test]
async fn a_small_window_limits_documents_and_output() {
    let directory = tempfile::tempdir().unwrap();
    let env = local(directory.path());
    for (name, content) in [("AGENTS.md", "a".repeat(40_000)), ("long.txt", "x".repeat(60_000))] {
        env.write_file(Path::new(name), &content).await.unwrap();
    }
    let cases = [
        (2_048, 1_024, 1, 1_024),
        (8_192, 4_096, 4, 4_096),
        (32_768, 16_384, 16, 16_384),
        (99_000, 32_768, 32, 49_152),
        (128_000, 32_768, 32, 50_000),
    ];
    // Window in tokens; bytes of documents; KiB in the marker; characters of output.
    for (window, documents, marked, output) in cases {
        let profile = ProviderProfile::openai_compatible("m").with_context_window(window);
        let docs = profile.project_docs(env.as_ref(), None).await;
        assert_eq!(docs.documents[0].content.len(), documents, "{window}");
        let environment = EnvironmentContext::new("/p", "linux", "L", "2026-11-21");
        let prompt = profile.build_system_prompt(&environment, &docs, None);
        let marker = format!("\n[Project instructions truncated at {marked}KB]\n");
        assert!(prompt.contains(&marker), "{window}");
        let limits = profile.tool_output_limits(&TruncationLimits::new());
        let tool = profile.tool_registry.get("read_file").unwrap();
        assert_eq!(limits.rule(tool.name(), tool.kind(), tool.truncation()).chars, output, "{window}");
    }
    let profile = ProviderProfile::openai_compatible("m").with_context_window(8_192);
    let set = TruncationLimits::new().with_chars("shell", 30_000).with_lines("grep", 5);
    let limits = profile.tool_output_limits(&set);
    let chars = |name: &str| {
        let tool = profile.tool_registry.get(name).unwrap();
        limits.rule(tool.name(), tool.kind(), tool.truncation()).chars
    };
    assert_eq!((chars("shell"), chars("grep"), chars("write_file")), (30_000, 4_096, 1_000));
    assert_eq!(limits.lines, set.lines);
}

/// Prompt and tool definitions, at four characters per token.
#[test]
fn the_compatible_profile_fits_a_small_window() {
    let profile = ProviderProfile::openai_compatible("m").with_context_window(8_192);
    let environment =
        EnvironmentContext::new("/srv/a/project/of/some/depth", "linux", "Linux 6.18.0", "2026-11-21");
    let prompt = profile.build_system_prompt(&environment, &ProjectDocs::default(), None);
    let definitions = serde_json::to_string(&profile.tools()).unwrap();
    assert!(profile.base_instructions.len() < 5_500, "{}", profile.base_instructions.len());
    assert!(prompt.len() < 7_500, "{}", prompt.len());
    assert!((prompt.len() + definitions.len()) / 4 < 8_192 / 2, "{} + {}", prompt.len(), definitions.len());
}

/// Adds the tools for subagents.
fn in_session(profile: &ProviderProfile) -> ProviderProfile {
    profile.as_in_session(SubagentLimits::default())
}

/// [`BuiltInTools`] does not check definitions at run time.
#[test]
fn every_built_in_definition_is_valid() {
    let mut checked = Vec::new();
    for profile in in_both_toolsets(&all_options()).chain(in_both_toolsets(&ToolsetOptions::new())) {
        let profile = in_session(&profile);
        assert!(profile.subagent_tools.is_some_and(|_| profile.tools().len() > 6), "{}", profile.id);
        profile.tool_registry.verify_definitions().unwrap();
        checked.extend(names(&profile));
    }
    checked.sort();
    checked.dedup();
    assert_eq!(checked.len(), 48, "{checked:?}");
}

#[test]
fn profiles_share_tool_definitions() {
    for (a, b) in in_both_toolsets(&all_options()).zip(in_both_toolsets(&all_options())) {
        let (a, b) = (in_session(&a).tools(), in_session(&b).tools());
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b.iter()) {
            assert!(std::ptr::eq(a.definition(), b.definition()), "{}", a.name);
        }
    }
}
