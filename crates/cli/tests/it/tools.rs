//! `pintle tools`: tools of every profile and toolset as serialised in a request.

use serde_json::{Value, json};

use crate::harness::{pintle, run};

/// Returns the tools as sent to a provider.
fn wire_tools(provider: &str, toolset: &str) -> Vec<Value> {
    let output =
        run(&mut pintle(&["tools", "--output", "json", "--provider", provider, "--toolset", toolset]));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{provider} {toolset}");
    serde_json::from_str(&output.stdout).unwrap()
}

/// Summarises a tool on one line: its type unless it is a function, its name, and its parameters with a star if required.
fn line(tool: &Value) -> String {
    // Chat Completions nests functions one level deeper, and dialects name the schema differently.
    let function = tool.get("function").unwrap_or(tool);
    let kind = match tool["type"].as_str() {
        None | Some("function") => String::new(),
        Some(kind) => format!("<{kind}> "),
    };
    let name = function["name"].as_str().unwrap_or_default();
    let schema =
        ["parameters", "input_schema", "parametersJsonSchema"].iter().find_map(|key| function.get(key));
    let Some(schema) = schema else { return format!("{kind}{name}").trim_end().to_owned() };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let shown = properties.iter().map(|(name, property)| {
        let star = if required.contains(&json!(name)) { "*" } else { "" };
        format!("{name}{star}: {}", property["type"].as_str().unwrap_or("any"))
    });
    format!("{kind}{name}({})", shown.collect::<Vec<_>>().join(", "))
}

/// Summarises all tools, one per line.
fn lines(provider: &str, toolset: &str) -> String {
    let mut tools = wire_tools(provider, toolset);
    // Gemini wraps all functions in one object.
    if let [Value::Object(only)] = tools.as_slice()
        && let Some(Value::Array(functions)) = only.get("functionDeclarations")
    {
        tools = functions.clone();
    }
    tools.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn openai_tools() {
    insta::assert_snapshot!(lines("openai", "native"), @"
    exec_command(cmd*: string, max_output_tokens: number, tty: boolean, workdir: string, yield_time_ms: number)
    write_stdin(chars: string, max_output_tokens: number, session_id*: number, yield_time_ms: number)
    update_plan(explanation: string, plan*: array)
    <custom> apply_patch
    view_image(path*: string)
    spawn_agent(agent_type: string, message*: string)
    send_input(id*: string, interrupt: boolean, message*: string)
    wait(ids*: array, timeout_ms: number)
    close_agent(id*: string)
    <web_search>
    ");
    insta::assert_snapshot!(lines("openai", "spec"), @"
    read_file(file_path*: string, limit: integer, offset: integer)
    apply_patch(patch*: string)
    write_file(content*: string, file_path*: string)
    shell(command*: string, description: string, timeout_ms: integer)
    grep(case_insensitive: boolean, glob_filter: string, max_results: integer, output_mode: string, path: string, pattern*: string)
    glob(path: string, pattern*: string)
    shell_start(command*: string, description: string)
    shell_read(id*: integer, wait_ms: integer)
    shell_write(close: boolean, id*: integer, text*: string)
    shell_stop(id*: integer)
    shell_list()
    web_fetch(url*: string)
    web_search(max_results: integer, query*: string)
    update_plan(explanation: string, plan*: array)
    spawn_agent(max_turns: integer, model: string, task*: string, working_dir: string)
    send_input(agent_id*: string, message*: string)
    wait(agent_id*: string)
    close_agent(agent_id*: string)
    ");
}

#[test]
fn anthropic_tools() {
    insta::assert_snapshot!(lines("anthropic", "native"), @"
    TaskOutput(block: boolean, task_id*: string, timeout: number)
    Bash(command*: string, description: string, run_in_background: boolean, timeout: number)
    Glob(path: string, pattern*: string)
    Grep(-A: number, -B: number, -C: number, -i: boolean, -n: boolean, context: number, glob: string, head_limit: number, offset: number, output_mode: string, path: string, pattern*: string, type: string)
    Read(file_path*: string, limit: number, offset: number)
    Edit(file_path*: string, new_string*: string, old_string*: string, replace_all: boolean)
    Write(content*: string, file_path*: string)
    NotebookEdit(cell_id: string, cell_type: string, edit_mode: string, new_source*: string, notebook_path*: string)
    WebFetch(prompt*: string, url*: string)
    TodoWrite(todos*: array)
    WebSearch(allowed_domains: array, blocked_domains: array, query*: string)
    TaskStop(task_id*: string)
    Skill(args: string, skill*: string)
    Task(description*: string, max_turns: integer, model: string, prompt*: string, resume: string, subagent_type*: string)
    ");
    insta::assert_snapshot!(lines("anthropic", "spec"), @"
    read_file(file_path*: string, limit: integer, offset: integer)
    write_file(content*: string, file_path*: string)
    edit_file(file_path*: string, new_string*: string, old_string*: string, replace_all: boolean)
    shell(command*: string, description: string, timeout_ms: integer)
    grep(case_insensitive: boolean, glob_filter: string, max_results: integer, output_mode: string, path: string, pattern*: string)
    glob(path: string, pattern*: string)
    shell_start(command*: string, description: string)
    shell_read(id*: integer, wait_ms: integer)
    shell_write(close: boolean, id*: integer, text*: string)
    shell_stop(id*: integer)
    shell_list()
    web_fetch(url*: string)
    web_search(max_results: integer, query*: string)
    update_plan(explanation: string, plan*: array)
    spawn_agent(max_turns: integer, model: string, task*: string, working_dir: string)
    send_input(agent_id*: string, message*: string)
    wait(agent_id*: string)
    close_agent(agent_id*: string)
    ");
}

#[test]
fn gemini_tools() {
    insta::assert_snapshot!(lines("gemini", "native"), @"
    list_directory(dir_path*: string)
    read_file(file_path*: string, limit: number, offset: number)
    read_many_files(paths*: array)
    search_file_content(dir_path: string, include: string, pattern*: string)
    glob(dir_path: string, pattern*: string)
    replace(expected_replacements: number, file_path*: string, instruction*: string, new_string*: string, old_string*: string)
    write_file(content*: string, file_path*: string)
    web_fetch(prompt*: string)
    run_shell_command(command*: string, description: string, dir_path: string)
    shell_start(command*: string, description: string)
    shell_read(id*: integer, wait_ms: integer)
    shell_write(close: boolean, id*: integer, text*: string)
    shell_stop(id*: integer)
    shell_list()
    google_web_search(query*: string)
    activate_skill(name*: string)
    update_plan(explanation: string, plan*: array)
    invoke_agent(agent_name*: string, prompt*: string)
    ");
    insta::assert_snapshot!(lines("gemini", "spec"), @"
    read_file(file_path*: string, limit: integer, offset: integer)
    read_many_files(paths*: array)
    write_file(content*: string, file_path*: string)
    edit_file(expected_replacements: integer, file_path*: string, instruction: string, new_string*: string, old_string*: string, replace_all: boolean)
    shell(command*: string, description: string, timeout_ms: integer)
    grep(case_insensitive: boolean, glob_filter: string, max_results: integer, output_mode: string, path: string, pattern*: string)
    glob(path: string, pattern*: string)
    list_dir(depth: integer, path: string)
    shell_start(command*: string, description: string)
    shell_read(id*: integer, wait_ms: integer)
    shell_write(close: boolean, id*: integer, text*: string)
    shell_stop(id*: integer)
    shell_list()
    web_fetch(url*: string)
    web_search(max_results: integer, query*: string)
    update_plan(explanation: string, plan*: array)
    spawn_agent(max_turns: integer, model: string, task*: string, working_dir: string)
    send_input(agent_id*: string, message*: string)
    wait(agent_id*: string)
    close_agent(agent_id*: string)
    ");
}

#[test]
fn compatible_servers_have_one_toolset() {
    let native = lines("openai-compatible", "native");
    insta::assert_snapshot!(native, @"
    read_file(file_path*: string, limit: integer, offset: integer)
    write_file(content*: string, file_path*: string)
    edit_file(file_path*: string, new_string*: string, old_string*: string, replace_all: boolean)
    shell(command*: string, description: string, timeout_ms: integer)
    grep(case_insensitive: boolean, glob_filter: string, max_results: integer, output_mode: string, path: string, pattern*: string)
    glob(path: string, pattern*: string)
    shell_start(command*: string, description: string)
    shell_read(id*: integer, wait_ms: integer)
    shell_write(close: boolean, id*: integer, text*: string)
    shell_stop(id*: integer)
    shell_list()
    web_fetch(url*: string)
    update_plan(explanation: string, plan*: array)
    spawn_agent(max_turns: integer, model: string, task*: string, working_dir: string)
    send_input(agent_id*: string, message*: string)
    wait(agent_id*: string)
    close_agent(agent_id*: string)
    ");
    assert_eq!(lines("openai-compatible", "spec"), native);
}

#[test]
fn tools_are_shown_exactly_as_sent() {
    let of = |provider: &str, name: &str| {
        let tools = wire_tools(provider, "native");
        let functions =
            tools.first().and_then(|tool| tool["functionDeclarations"].as_array()).unwrap_or(&tools);
        let found = functions.iter().find(|tool| tool["name"] == name || tool["function"]["name"] == name);
        let mut tool = found.unwrap().clone();
        for key in ["description", "format"] {
            tool.as_object_mut().unwrap().remove(key);
        }
        if let Some(function) = tool.get_mut("function").and_then(Value::as_object_mut) {
            function.remove("description");
        }
        tool.to_string()
    };
    insta::assert_snapshot!(of("openai", "view_image"), @r#"{"name":"view_image","parameters":{"additionalProperties":false,"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"},"strict":false,"type":"function"}"#);
    insta::assert_snapshot!(of("openai", "apply_patch"), @r#"{"name":"apply_patch","type":"custom"}"#);
    insta::assert_snapshot!(of("anthropic", "WebFetch"), @r#"{"input_schema":{"additionalProperties":false,"properties":{"prompt":{"description":"What you look for, for the user. You get the whole page.","type":"string"},"url":{"description":"With `https://` or `http://`.","type":"string"}},"required":["url","prompt"],"type":"object"},"name":"WebFetch"}"#);
    insta::assert_snapshot!(of("gemini", "google_web_search"), @r#"{"name":"google_web_search","parametersJsonSchema":{"additionalProperties":false,"properties":{"query":{"type":"string"}},"required":["query"],"type":"object"}}"#);
    insta::assert_snapshot!(of("openai-compatible", "glob"), @r#"{"function":{"name":"glob","parameters":{"additionalProperties":false,"properties":{"path":{"description":"Default: the working directory.","type":"string"},"pattern":{"description":"Relative to `path`.","type":"string"}},"required":["pattern"],"type":"object"}},"type":"function"}"#);
    let provider_tool = wire_tools("openai", "native").into_iter().find(|tool| tool["type"] == "web_search");
    assert_eq!(provider_tool.unwrap(), json!({"type": "web_search", "external_web_access": true}));
}
