use std::sync::Arc;

use pintle_llm::{Fingerprint, ToolDefinition};
use serde_json::json;

use super::*;
use crate::tool::DynTool;

/// Lists a tool's parameters with their types; a star marks those that are required.
fn parameters(tool: &dyn DynTool) -> String {
    let definition = tool.definition().unwrap();
    let required = definition.parameters["required"].as_array().unwrap_or(&Vec::new()).clone();
    let properties = definition.parameters["properties"].as_object().unwrap();
    let listed = properties.iter().map(|(name, schema)| {
        assert_ne!(schema.get("description"), Some(&json!("")), "{name}");
        let star = if required.contains(&json!(name)) { "*" } else { "" };
        format!("{name}{star}: {}", schema["type"].as_str().unwrap())
    });
    format!("{}({})", definition.name, listed.collect::<Vec<_>>().join(", "))
}

#[test]
fn names_and_parameters_match_the_specification() {
    let tools: [&dyn DynTool; 10] = [
        &ReadFile::new(),
        &WriteFile::new(),
        &EditFile::new(),
        &EditFile::gemini(),
        &ApplyPatch::new(),
        &Shell::new(),
        &Grep::new(),
        &Glob::new(),
        &ListDir::new(),
        &ReadManyFiles::new(),
    ];
    let listed: Vec<String> = tools.iter().map(|tool| parameters(*tool)).collect();
    insta::assert_snapshot!(listed.join("\n"), @"
    read_file(file_path*: string, limit: integer, offset: integer)
    write_file(content*: string, file_path*: string)
    edit_file(file_path*: string, new_string*: string, old_string*: string, replace_all: boolean)
    edit_file(expected_replacements: integer, file_path*: string, instruction: string, new_string*: string, old_string*: string, replace_all: boolean)
    apply_patch(patch*: string)
    shell(command*: string, description: string, timeout_ms: integer)
    grep(case_insensitive: boolean, glob_filter: string, max_results: integer, output_mode: string, path: string, pattern*: string)
    glob(path: string, pattern*: string)
    list_dir(depth: integer, path: string)
    read_many_files(paths*: array)
    ");
}

#[derive(Debug)]
struct NoWeb;

#[async_trait::async_trait]
impl WebClient for NoWeb {
    async fn fetch(&self, _: FetchRequest) -> Result<WebPage, WebError> {
        Err(WebError::new(WebErrorKind::Failed, "there is no web here"))
    }
}

#[async_trait::async_trait]
impl WebSearchClient for NoWeb {
    async fn search(&self, _: SearchQuery) -> Result<SearchResults, WebError> {
        Err(WebError::new(WebErrorKind::Failed, "there is no web here"))
    }
}

#[test]
fn the_other_tools_have_plain_parameters() {
    let web = Arc::new(NoWeb);
    let (fetch, search) = (WebFetch::new(web.clone()), WebSearch::new(web));
    let tools: [&dyn DynTool; 9] = [
        &ShellStart::new(),
        &ShellRead::new(),
        &ShellWrite::new(),
        &ShellStop::new(),
        &ShellList::new(),
        &AskUser::new(),
        &UpdatePlan::new(),
        &fetch,
        &search,
    ];
    let effect = |tool: &dyn DynTool| {
        format!("{:?}{}", tool.effect(), if tool.is_repeatable() { ", repeatable" } else { "" })
    };
    let listed: Vec<String> =
        tools.iter().map(|tool| format!("{}: {}", parameters(*tool), effect(*tool))).collect();
    insta::assert_snapshot!(listed.join("\n"), @"
    shell_start(command*: string, description: string): Execute
    shell_read(id*: integer, wait_ms: integer): Read
    shell_write(close: boolean, id*: integer, text*: string): Execute
    shell_stop(id*: integer): Execute, repeatable
    shell_list(): Read, repeatable
    ask_user(options: array, question*: string): Read
    update_plan(explanation: string, plan*: array): Read, repeatable
    web_fetch(url*: string): Network, repeatable
    web_search(max_results: integer, query*: string): Network, repeatable
    ");
    for tool in tools {
        let definition = tool.definition().unwrap();
        assert!((40..1200).contains(&definition.description.len()), "{}", definition.name);
    }
}

#[test]
fn the_background_tools_are_registered_in_order() {
    let mut registry = ToolRegistry::new();
    register_background(&mut registry).unwrap();
    let names: Vec<&str> = registry.names().collect();
    assert_eq!(names, ["shell_start", "shell_read", "shell_write", "shell_stop", "shell_list"]);
}

#[test]
fn the_schema_of_grep_is_plain() {
    let definition = Grep::new().definition().unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&definition.parameters).unwrap(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "case_insensitive": {
          "type": "boolean"
        },
        "glob_filter": {
          "description": "Only matching files, such as `*.py`.",
          "type": "string"
        },
        "max_results": {
          "description": "Most lines, or files. Default: 100.",
          "minimum": 1,
          "type": "integer"
        },
        "output_mode": {
          "description": "Lines (`content`, the default), paths, or paths with the number of lines.",
          "enum": [
            "content",
            "files_with_matches",
            "count"
          ],
          "type": "string"
        },
        "path": {
          "description": "Directory or file. Default: the working directory.",
          "type": "string"
        },
        "pattern": {
          "type": "string"
        }
      },
      "required": [
        "pattern"
      ],
      "type": "object"
    }
    "#);
}

#[test]
fn the_core_tools_are_registered_in_order() {
    let mut registry = ToolRegistry::new();
    register_core(&mut registry).unwrap();
    let names: Vec<&str> = registry.names().collect();
    assert_eq!(names, ["read_file", "write_file", "edit_file", "shell", "grep", "glob"]);
}

#[test]
fn descriptions_have_a_reasonable_length() {
    let mut registry = ToolRegistry::new();
    register_core(&mut registry).unwrap();
    for definition in &registry.definitions() {
        assert!((150..1200).contains(&definition.description.len()), "{}", definition.name);
        assert_eq!(definition.description.trim(), definition.description, "{}", definition.name);
    }
}

/// The texts are in `prompts/builtin/`. A change shows here as another size and hash.
#[test]
fn descriptions_match_their_reviewed_hashes() {
    let web = Arc::new(NoWeb);
    let (fetch, search) = (WebFetch::new(web.clone()), WebSearch::new(web));
    let tools: [&dyn DynTool; 18] = [
        &ReadFile::new(),
        &WriteFile::new(),
        &EditFile::new(),
        &ApplyPatch::new(),
        &Shell::new(),
        &Grep::new(),
        &Glob::new(),
        &ListDir::new(),
        &ReadManyFiles::new(),
        &ShellStart::new(),
        &ShellRead::new(),
        &ShellWrite::new(),
        &ShellStop::new(),
        &ShellList::new(),
        &AskUser::new(),
        &UpdatePlan::new(),
        &fetch,
        &search,
    ];
    let shown: Vec<String> = tools
        .iter()
        .map(|tool| {
            let ToolDefinition { name, description, .. } = tool.definition().unwrap();
            format!(
                "{name}: {} bytes, {}",
                description.len(),
                Fingerprint::from_bytes(description.as_bytes())
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    read_file: 250 bytes, 6f5f8c62170d83b41b60f5db04cbb5fb
    write_file: 184 bytes, 78c1c3b7bfb80e5652690a7d0fef82bc
    edit_file: 287 bytes, 35fd836757d66e99f94e731ba2da7adb
    apply_patch: 750 bytes, 96dfe2965bf8a6a68fb952caa2d1af28
    shell: 372 bytes, d1bb57b338861f8efade50a46d3d394d
    grep: 245 bytes, 53bd4dc62295e8e239cb379a8561f901
    glob: 202 bytes, 3afed347bf82430074d4ae3d05a03070
    list_dir: 156 bytes, 2af13ca8faf871232a81fc7c4694ac6a
    read_many_files: 151 bytes, 99a68664bdbc19f8dd3c252daac2ac80
    shell_start: 137 bytes, bbcc8c34c411ef3a9d3e9836af99851a
    shell_read: 116 bytes, 1fdb602494818abac18bae4f58d1e00c
    shell_write: 111 bytes, 4059de37f174f3baf096ad09f2d0d2da
    shell_stop: 56 bytes, e6fe3174fc430923d48a6f6e395c48e7
    shell_list: 101 bytes, ae93f14188ced1462f7edf961c06cca9
    ask_user: 210 bytes, 6a9dbd21f20d5634ee143c648ace6d77
    update_plan: 202 bytes, 00a21c7c6f69221aab3c9b6174f4b08d
    web_fetch: 133 bytes, 28d544d85e47c1b9b8d5307eef59fc9f
    web_search: 182 bytes, 7e93cd8879aaaf90eeb4f58999d5bda8
    ");
}
