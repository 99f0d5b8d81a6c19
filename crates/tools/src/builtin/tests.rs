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
        assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {schema}");
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
        assert!((100..2000).contains(&definition.description.len()), "{}", definition.name);
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
          "description": "Whether to ignore case. Default: false.",
          "type": "boolean"
        },
        "glob_filter": {
          "description": "Search only files that match this glob, for instance `*.py`.",
          "type": "string"
        },
        "max_results": {
          "description": "The most matching lines to return; in the other output modes, the most files. Default: 100.",
          "minimum": 1,
          "type": "integer"
        },
        "output_mode": {
          "description": "What to return: the matching lines (`content`), the paths of the files with a match (`files_with_matches`), or these with the number of their matching lines (`count`). Default: `content`.",
          "enum": [
            "content",
            "files_with_matches",
            "count"
          ],
          "type": "string"
        },
        "path": {
          "description": "The directory or file to search. Default: the working directory.",
          "type": "string"
        },
        "pattern": {
          "description": "The regular expression to search for.",
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
        assert!((200..2000).contains(&definition.description.len()), "{}", definition.name);
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
    read_file: 666 bytes, 1f0b44920e28f4d18888f43dcc3b31fb
    write_file: 282 bytes, 0cff8ed173d914f8c80010fe60bf9673
    edit_file: 757 bytes, c9d4b2a120cfbdd6c23c03981eb24908
    apply_patch: 1076 bytes, dc322627ac6e42e42e505fdcdc63c21a
    shell: 683 bytes, 24e853a995f6c84d3d1a4c3f78057ee5
    grep: 564 bytes, 14ff2e4e093460c4d948902349943bb3
    glob: 473 bytes, 9be01ec88ac3303ade30273f542de5de
    list_dir: 284 bytes, bfa584a2a96b7f25f4336a83779cad56
    read_many_files: 310 bytes, eba282b5e9b37fc397a507ef6a76857a
    shell_start: 354 bytes, a57cad2be030cc4e6dca5aa714e461f8
    shell_read: 204 bytes, 0c115bfe974c962632f2ca04963c795f
    shell_write: 266 bytes, dae482f56f4a9518475d9aecb74e4e36
    shell_stop: 163 bytes, f5df5aee81d9c4fe8a01a5a7ecc5e6ab
    shell_list: 157 bytes, 4a80ab418d2e49ea497a396ed4f9196d
    ask_user: 301 bytes, adcf905a83317fba3b034b477fe32a4b
    update_plan: 292 bytes, 3a3807b45b2f4b59ea25adbf05c91ad1
    web_fetch: 317 bytes, 1855be1ff99d6eccef0d4fecdc032dcb
    web_search: 288 bytes, 61b1e6ad2f23208a60ddc1861bc5bb2b
    ");
}
