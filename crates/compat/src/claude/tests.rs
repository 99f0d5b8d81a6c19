//! Command lines, streams and conversations, whole.

mod control;
mod options;
mod results;

use insta::assert_snapshot;
use pintle_agent::SessionId;

use super::*;
use crate::tests::scripted::{self, SESSION};

fn info() -> InitInfo {
    InitInfo {
        directory: "/project".to_owned(),
        tools: ["shell", "Read", "mcp__web__fetch", "Bash"].map(str::to_owned).to_vec(),
        mcp_servers: vec![McpServerStatus { name: "web".to_owned(), status: "connected".to_owned() }],
        model: "claude-opus-4-6".to_owned(),
        permission_mode: "default".to_owned(),
        api_key_source: "user".to_owned(),
        slash_commands: vec!["compact".to_owned()],
        skills: Vec::new(),
        agents: Vec::new(),
        version: "0.1.0".to_owned(),
    }
}

/// Returns the stream of one scripted run.
fn stream(script: &str, settings: FormatterSettings) -> String {
    let (events, outcome) = scripted::run(script);
    let mut formatter = Formatter::new(SessionId::new(SESSION), "claude-opus-4-6", settings);
    let mut lines = vec![formatter.init(&info())];
    lines.extend(events.iter().flat_map(|event| formatter.event(event)));
    lines.extend(formatter.end(&RunEnd::new(&outcome)));
    scripted::golden(&lines)
}

const READ_AND_RUN: &str = r#"
name = "read and run"
[[turn]]
reasoning = "Look first."
text = "I look."
call = [
    { tool = "Write", arguments = { file_path = "a.txt", content = "one\n" } },
    { tool = "Bash", arguments = { command = "echo hello; exit 3" } },
]
[[turn]]
call = [{ tool = "Read", arguments = { file_path = "missing.txt" } }]
[[turn]]
text = "Done."
"#;

#[test]
fn a_whole_run() {
    assert_snapshot!(stream(READ_AND_RUN, FormatterSettings::default()), @r##"
    {"agents":[],"apiKeySource":"user","claude_code_version":"0.1.0","cwd":"/project","mcp_servers":[{"name":"web","status":"connected"}],"model":"claude-opus-4-6","output_style":"default","permissionMode":"default","plugins":[],"skills":[],"slash_commands":["compact"],"subtype":"init","tools":["Bash","Read","mcp__web__fetch"],"type":"system"}
    {"message":{"content":[{"signature":"","thinking":"Look first.","type":"thinking"}],"id":"msg_c94a23857f7a781d068fbde14db5caef","model":"claude-opus-4-6","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"message":{"content":[{"text":"I look.","type":"text"}],"id":"msg_c94a23857f7a781d068fbde14db5caef","model":"claude-opus-4-6","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"message":{"content":[{"id":"toolu_0168c9c36facc8dc4c8cf0f328","input":{"content":"one\n","file_path":"a.txt"},"name":"Write","type":"tool_use"}],"id":"msg_c94a23857f7a781d068fbde14db5caef","model":"claude-opus-4-6","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"message":{"content":[{"content":"File created successfully at: a.txt","is_error":false,"tool_use_id":"toolu_0168c9c36facc8dc4c8cf0f328","type":"tool_result"}],"role":"user"},"parent_tool_use_id":null,"type":"user"}
    {"message":{"content":[{"id":"toolu_01e1d36562f55b7714d6c6a324","input":{"command":"echo hello; exit 3"},"name":"Bash","type":"tool_use"}],"id":"msg_c94a23857f7a781d068fbde14db5caef","model":"claude-opus-4-6","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"message":{"content":[{"content":"hello\n","is_error":false,"tool_use_id":"toolu_01e1d36562f55b7714d6c6a324","type":"tool_result"}],"role":"user"},"parent_tool_use_id":null,"type":"user"}
    {"message":{"content":[{"id":"toolu_014751a68efcb6457d14d6c702","input":{"file_path":"missing.txt"},"name":"Read","type":"tool_use"}],"id":"msg_a8179bb277263b71ab835192695252e1","model":"claude-opus-4-6","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"message":{"content":[{"content":"Tool error (Read): /project/missing.txt does not exist","is_error":true,"tool_use_id":"toolu_014751a68efcb6457d14d6c702","type":"tool_result"}],"role":"user"},"parent_tool_use_id":null,"type":"user"}
    {"message":{"content":[{"text":"Done.","type":"text"}],"id":"msg_7c6915fbee5d521edd314ce2386ab637","model":"claude-opus-4-6","role":"assistant","stop_reason":"end_turn","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"duration_api_ms":"MS","duration_ms":"MS","is_error":false,"modelUsage":"TOKENS","num_turns":3,"permission_denials":[],"pintle_cost_is_known":false,"result":"Done.","stop_reason":"end_turn","subtype":"success","terminal_reason":"completed","total_cost_usd":0.0,"type":"result","usage":"TOKENS"}
    "##);
}

#[test]
fn a_whole_run_with_partial_messages() {
    let script = r#"
name = "partial"
[[turn]]
reasoning = "Hm."
text = "I look."
call = [{ tool = "Bash", arguments = { command = "true" } }]
[[turn]]
text = "Done."
"#;
    let settings = FormatterSettings { partial_messages: true, ..FormatterSettings::default() };
    assert_snapshot!(stream(script, settings), @r##"
    {"agents":[],"apiKeySource":"user","claude_code_version":"0.1.0","cwd":"/project","mcp_servers":[{"name":"web","status":"connected"}],"model":"claude-opus-4-6","output_style":"default","permissionMode":"default","plugins":[],"skills":[],"slash_commands":["compact"],"subtype":"init","tools":["Bash","Read","mcp__web__fetch"],"type":"system"}
    {"event":{"message":{"content":[],"id":"msg_c94a23857f7a781d068fbde14db5caef","model":"claude-opus-4-6","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":"TOKENS"},"type":"message_start"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"content_block":{"signature":"","thinking":"","type":"thinking"},"index":0,"type":"content_block_start"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"delta":{"thinking":"Hm.","type":"thinking_delta"},"index":0,"type":"content_block_delta"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"index":0,"type":"content_block_stop"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"content_block":{"text":"","type":"text"},"index":1,"type":"content_block_start"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"delta":{"text":"I look.","type":"text_delta"},"index":1,"type":"content_block_delta"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"index":1,"type":"content_block_stop"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"content_block":{"id":"toolu_0104816d6dccdf398aec277cb6","input":{},"name":"Bash","type":"tool_use"},"index":2,"type":"content_block_start"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"delta":{"partial_json":"{\"command\":\"true\"}","type":"input_json_delta"},"index":2,"type":"content_block_delta"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"index":2,"type":"content_block_stop"},"parent_tool_use_id":null,"type":"stream_event"}
    {"message":{"content":[{"signature":"","thinking":"Hm.","type":"thinking"}],"id":"msg_c94a23857f7a781d068fbde14db5caef","model":"claude-opus-4-6","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"message":{"content":[{"text":"I look.","type":"text"}],"id":"msg_c94a23857f7a781d068fbde14db5caef","model":"claude-opus-4-6","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"event":{"delta":{"stop_reason":"tool_use","stop_sequence":null},"type":"message_delta","usage":"TOKENS"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"type":"message_stop"},"parent_tool_use_id":null,"type":"stream_event"}
    {"message":{"content":[{"id":"toolu_0104816d6dccdf398aec277cb6","input":{"command":"true"},"name":"Bash","type":"tool_use"}],"id":"msg_c94a23857f7a781d068fbde14db5caef","model":"claude-opus-4-6","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"message":{"content":[{"content":"(Bash completed with no output)","is_error":false,"tool_use_id":"toolu_0104816d6dccdf398aec277cb6","type":"tool_result"}],"role":"user"},"parent_tool_use_id":null,"type":"user"}
    {"event":{"message":{"content":[],"id":"msg_f9b883d806cc436f8d9e56fcf1f20363","model":"claude-opus-4-6","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":"TOKENS"},"type":"message_start"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"content_block":{"text":"","type":"text"},"index":0,"type":"content_block_start"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"delta":{"text":"Done.","type":"text_delta"},"index":0,"type":"content_block_delta"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"index":0,"type":"content_block_stop"},"parent_tool_use_id":null,"type":"stream_event"}
    {"message":{"content":[{"text":"Done.","type":"text"}],"id":"msg_f9b883d806cc436f8d9e56fcf1f20363","model":"claude-opus-4-6","role":"assistant","stop_reason":"end_turn","stop_sequence":null,"type":"message","usage":"TOKENS"},"parent_tool_use_id":null,"type":"assistant"}
    {"event":{"delta":{"stop_reason":"end_turn","stop_sequence":null},"type":"message_delta","usage":"TOKENS"},"parent_tool_use_id":null,"type":"stream_event"}
    {"event":{"type":"message_stop"},"parent_tool_use_id":null,"type":"stream_event"}
    {"duration_api_ms":"MS","duration_ms":"MS","is_error":false,"modelUsage":"TOKENS","num_turns":2,"permission_denials":[],"pintle_cost_is_known":false,"result":"Done.","stop_reason":"end_turn","subtype":"success","terminal_reason":"completed","total_cost_usd":0.0,"type":"result","usage":"TOKENS"}
    "##);
}
