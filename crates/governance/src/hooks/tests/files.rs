//! Files of hooks: what they say, and what wrong ones are answered with.

use std::time::Duration;

use super::*;

const FILE: &str = r#"
[[PreToolUse]]
matcher = "shell | edit_*"
command = "./check.sh"
timeout = "500ms"
required = true

[[Stop]]
command = "cargo test"
timeout = "10m"

[[PreToolUse]]
command = '''
python3 hooks/all.py'''
"#;

/// Returns the parts of a command that a file sets.
fn parts(command: &HookCommand) -> (HookEvent, Option<String>, &str, Duration, bool, &str) {
    let matcher = command
        .matcher
        .as_ref()
        .map(|patterns| patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"));
    let HookCommand { event, command, timeout, is_required, source, .. } = command;
    (*event, matcher, command, *timeout, *is_required, source)
}

#[test]
fn files_have_commands_with_matchers_and_limits() {
    let commands = HookCommands::parse("hooks.toml", FILE).unwrap();
    let found: Vec<_> = commands.iter().map(parts).collect();
    let tools = Some("shell|edit_*".to_owned());
    let (short, long, usual) =
        (Duration::from_millis(500), Duration::from_secs(600), Duration::from_secs(60));
    assert_eq!(
        found,
        [
            (HookEvent::PreToolUse, tools, "./check.sh", short, true, "hooks.toml:4"),
            (HookEvent::Stop, None, "cargo test", long, false, "hooks.toml:9"),
            (HookEvent::PreToolUse, None, "python3 hooks/all.py", usual, false, "hooks.toml:13"),
        ]
    );
    assert_eq!(commands.warnings(), [""; 0]);
    let programs: Vec<PathBuf> = commands.programs(Path::new("/w")).into_iter().collect();
    assert_eq!(programs, ["/w/check.sh", "/w/hooks/all.py", "/w/test"].map(PathBuf::from));
    assert!(HookCommands::parse("hooks.toml", "").unwrap().is_empty());
}

#[test]
fn all_events_have_names() {
    for event in HookEvent::ALL {
        let commands = HookCommands::parse("h", &format!("[[{event}]]\ncommand = 'x'")).unwrap();
        assert_eq!(commands.iter().map(HookCommand::event).collect::<Vec<_>>(), [event]);
        let json =
            format!(r#"{{"hooks": {{"{event}": [{{"hooks": [{{"type": "command", "command": "x"}}]}}]}}}}"#);
        let commands = HookCommands::parse_json("h", &json).unwrap();
        assert_eq!(commands.iter().map(HookCommand::event).collect::<Vec<_>>(), [event]);
    }
}

#[test]
fn events_of_other_versions_are_warnings() {
    let text = "[[Stop]]\ncommand = 'x'\n\n[[PreToolUSe]]\nanything = 1\n\n[[Notification]]\n[Elsewhere]\n";
    let commands = HookCommands::parse("hooks.toml", text).unwrap();
    assert_eq!(commands.len(), 1);
    assert_eq!(
        commands.warnings(),
        [
            "hooks.toml: line 4: there is no event `PreToolUSe`, so its hooks never run; did you mean `PreToolUse`?",
            "hooks.toml: line 7: there is no event `Notification`, so its hooks never run",
            "hooks.toml: line 8: there is no event `Elsewhere`, so its hooks never run",
        ]
    );
}

#[test]
fn wrong_files_name_the_line_and_the_nearest_key() {
    for (text, expected) in [
        (
            "[[Stop]]\ncommand = 'x'\ntimout = '1s'\n",
            "line 3: unknown field `timout`, expected one of `matcher`, `command`, `timeout`, `required`; did you mean `timeout`?",
        ),
        (
            "[[Stop]]\n\ncomand = 'x'\n",
            "line 3: unknown field `comand`, expected one of `matcher`, `command`, `timeout`, `required`; did you mean `command`?",
        ),
        ("\n[[Stop]]\ntimeout = '1s'\n", "line 2: missing field `command`"),
        ("[[Stop]]\ncommand = 1\n", "line 2: invalid type: integer `1`, expected a string"),
        ("[[Stop]]\ncommand = ' '\n", "line 2: the command is empty"),
        (
            "[[Stop]]\ncommand = 'x'\n\ntimeout = 'soon'\n",
            "line 4: the time-out `soon` is wrong, expected one such as `500ms`, `60s` or `2m`",
        ),
        (
            "[[Stop]]\ncommand = 'x'\ntimeout = '60'\n",
            "line 3: the time-out `60` is wrong, expected one such as `500ms`, `60s` or `2m`",
        ),
        (
            "[[Stop]]\ncommand = 'x'\ntimeout = '11m'\n",
            "line 3: the time-out `11m` is wrong, expected one up to 600 s",
        ),
        (
            "[[Stop]]\ncommand = 'x'\ntimeout = '0s'\n",
            "line 3: the time-out `0s` is wrong, expected one up to 600 s",
        ),
        (
            "[[PreToolUse]]\ncommand = 'x'\nmatcher = 'shell|'\n",
            "line 3: the matcher `shell|` names no tool with ``, expected one such as `shell|edit_*`",
        ),
        (
            "[[PreToolUse]]\ncommand = 'x'\nmatcher = 'edit file'\n",
            "line 3: the matcher `edit file` names no tool with `edit file`: ' ' is in no name of a tool, expected one such as `shell|edit_*`",
        ),
        (
            "[[PreToolUse]]\ncommand = 'x'\nmatcher = 'shel.*'\n",
            "line 3: the matcher `shel.*` has `.*` in `shel.*`; `*` matches any characters, expected one such as `shell|edit_*`",
        ),
        (
            "[[SessionStart]]\ncommand = 'x'\nmatcher = 'starup'\n",
            "line 3: the matcher names the unknown source `starup`, expected one of `startup`, `resume`, `fork`",
        ),
        ("[[Stop]]\nmatcher = 'x'\ncommand = 'x'\n", "line 2: a matcher has no meaning for Stop"),
        (
            "[[PostToolUse]]\ncommand = 'x'\nrequired = true\n",
            "line 3: `required` is for PreToolUse only, not for PostToolUse",
        ),
        ("[Stop]\ncommand = 'x'\n", "line 1: invalid type: map, expected a sequence"),
        ("[[Stop]]\ncommand = 'x\n", "line 2: invalid literal string, expected `'`"),
    ] {
        let error = HookCommands::parse("hooks.toml", text).unwrap_err();
        assert_eq!(error.to_string(), format!("hooks.toml: {expected}"), "{text}");
    }
}

const JSON: &str = r#"{
  "permissions": {"deny": ["Read(.env)"]},
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash|Edit",
        "hooks": [
          {"type": "command", "command": "a", "timeout": 5},
          {"type": "command", "command": "b", "timeout": 0.5, "required": true}
        ]
      },
      {"matcher": "mcp__.*__write", "hooks": [{"type": "command", "command": "c", "statusMessage": "…"}]},
      {"matcher": "*", "hooks": [{"type": "command", "command": "d"}]}
    ],
    "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "e"}]}],
    "PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command": "f", "timeout": 600}]}]
  }
}"#;

#[test]
fn files_of_other_agents_are_read() {
    let commands = HookCommands::parse_json("settings.json", JSON).unwrap();
    let found: Vec<_> = commands.iter().map(parts).collect();
    let some = |text: &str| Some(text.to_owned());
    let seconds = Duration::from_secs_f64;
    let call = HookEvent::PreToolUse;
    assert_eq!(
        found,
        [
            (call, some("Bash|Edit"), "a", seconds(5.0), false, "settings.json:8"),
            (call, some("Bash|Edit"), "b", seconds(0.5), true, "settings.json:9"),
            (call, some("mcp__*__write"), "c", seconds(60.0), false, "settings.json:12"),
            (call, None, "d", seconds(60.0), false, "settings.json:13"),
            (HookEvent::SessionStart, some("startup"), "e", seconds(60.0), false, "settings.json:15"),
            (call, None, "f", seconds(600.0), false, "settings.json:16"),
        ]
    );
    assert_eq!(commands.warnings(), [""; 0]);
    assert!(HookCommands::parse_json("settings.json", "{}").unwrap().is_empty());
}

#[test]
fn what_is_left_out_of_files_of_other_agents_is_a_warning() {
    let text = r#"{"hooks": {
      "Stop": [{"matcher": "x", "hooks": [{"type": "prompt", "prompt": "…"},
        {"type": "command", "command": "a", "async": true, "timeout": 3600}]}],
      "PreToolUse": [{"matcher": "Bash",
        "hooks": [{"type": "command", "command": "b", "if": "Bash(git *)", "once": false}]}],
      "Notification": {"any": "form"}, "stop": []
    }}"#;
    let commands = HookCommands::parse_json("s", text).unwrap();
    assert_eq!(
        commands.iter().map(|command| (command.command(), command.timeout().as_secs())).collect::<Vec<_>>(),
        [("a", 600), ("b", 60)]
    );
    assert_eq!(
        commands.warnings(),
        [
            "s: line 2: a matcher has no meaning for Stop and is ignored",
            "s: line 2: a hook of type `prompt` is not supported, so it never runs",
            "s: line 3: `async` is not supported and is ignored",
            "s: line 3: the time-out is longer than 600 s, its limit",
            "s: line 5: `if` is not supported and is ignored",
            "s: line 5: `once` is not supported and is ignored",
            "s: line 6: there is no event `Notification`, so its hooks never run",
            "s: line 6: there is no event `stop`, so its hooks never run; did you mean `Stop`?",
        ]
    );
    let text =
        r#"{"disableAllHooks": true, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}"#;
    let commands = HookCommands::parse_json("s", text).unwrap();
    assert!(commands.is_empty());
    assert_eq!(commands.warnings(), ["s: line 1: `disableAllHooks` is set, so no hooks of this file run"]);
}

#[test]
fn wrong_files_of_other_agents_name_the_line_and_the_nearest_key() {
    let with = |group: &str| format!("{{\n \"hooks\": {{\n  \"PreToolUse\": [\n{group}\n]}}}}");
    let handler = |handler: &str| with(&format!("{{\"hooks\": [\n\n{handler}]}}"));
    let keys = "`type`, `command`, `timeout`, `required`, `statusMessage`, `description`, `if`, `async`, `asyncRewake`, `once`, `shell`";
    for (text, expected) in [
        ("{\n\"hooks\": {\n".to_owned(), "line 3: EOF while parsing an object".to_owned()),
        ("{\n\"hooks\": []}".to_owned(), "line 2: invalid type: sequence, expected an object with the hooks of each event".to_owned()),
        (
            with(r#"{"matchr": "Bash", "hooks": []}"#),
            "line 4: unknown field `matchr`, expected `matcher` or `hooks`; did you mean `matcher`?".to_owned(),
        ),
        (with(r#"{"matcher": "Bash"}"#), "line 4: missing field `hooks`".to_owned()),
        (handler(r#"{"command": "x"}"#), "line 6: missing field `type`".to_owned()),
        (handler(r#"{"type": "command"}"#), "line 6: missing field `command`".to_owned()),
        (handler(r#"{"type": "command", "command": ""}"#), "line 6: the command is empty".to_owned()),
        (
            handler("{\"type\": \"command\",\n\"command\": \"x\",\n\"timeuot\": 1}"),
            format!("line 8: unknown field `timeuot`, expected one of {keys}; did you mean `timeout`?"),
        ),
        (
            handler(r#"{"type": "command", "command": "x", "timeout": 0}"#),
            "line 6: the time-out 0 is wrong, expected a number of seconds".to_owned(),
        ),
        (
            handler(r#"{"type": "command", "command": "x", "timeout": -1e300}"#),
            format!("line 6: the time-out -1{} is wrong, expected a number of seconds", "0".repeat(300)),
        ),
        (
            with(r#"{"matcher": "(Multi|Notebook)Edit", "hooks": []}"#),
            "line 4: the matcher `(Multi|Notebook)Edit` names no tool with `(Multi`: '(' is in no name of a tool, expected one such as `shell|edit_*`".to_owned(),
        ),
        (
            "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\", \"required\": true}]}]}}".to_owned(),
            "line 1: `required` is for PreToolUse only, not for Stop".to_owned(),
        ),
    ] {
        let error = HookCommands::parse_json("s", &text).unwrap_err();
        assert_eq!(error.to_string(), format!("s: {expected}"), "{text}");
    }
}

#[tokio::test]
async fn matchers_select_names_and_kinds_of_tools() {
    let fixture = Fixture::new();
    let read = fixture.call("read_file", json!({"file_path": "a"})).await;
    let shell = fixture.shell().await;
    for (matcher, runs_for_shell, runs_for_read) in [
        ("shell", true, false),
        ("*", true, true),
        ("read_*|write_file", false, true),
        ("write_file|shell", true, false),
        ("Shell", false, false),
        ("shel", false, false),
    ] {
        let file = format!("[[PreToolUse]]\ncommand = 'true'\nmatcher = '{matcher}'\n");
        let hooks = fixture.hooks_of(HookCommands::parse("hooks.toml", &file).unwrap());
        for (call, expected) in [(&shell, runs_for_shell), (&read, runs_for_read)] {
            hooks.before_call(&fixture.session(), call, &Judgement::new()).await;
            assert_eq!(fixture.runs().len(), usize::from(expected), "{matcher} {}", call.name());
        }
    }
    let file = "[[SessionStart]]\nmatcher = 'startup|fork'\ncommand = 'true'\n";
    let hooks = fixture.hooks_of(HookCommands::parse("hooks.toml", file).unwrap());
    for (source, expected) in
        [(SessionSource::New, 1), (SessionSource::Forked, 1), (SessionSource::Resumed, 0)]
    {
        hooks.session_started(&fixture.session(), source).await;
        assert_eq!(fixture.runs().len(), expected, "{source:?}");
    }
}

#[test]
fn a_matcher_names_a_built_in_tool_by_its_name_in_any_toolset() {
    for (matcher, tool, kind, expected) in [
        ("Bash", "shell", "shell", true),
        ("shell", "Bash", "shell", true),
        ("exec_command", "Bash", "shell", true),
        ("run_shell_command", "shell", "shell", true),
        ("replace", "Edit", "edit_file", true),
        ("Edit", "apply_patch", "apply_patch", true),
        ("Write|Edit", "apply_patch", "apply_patch", true),
        ("Read", "read_many_files", "read_many_files", true),
        ("Task|Agent", "spawn_agent", "spawn_agent", true),
        ("Agent", "Task", "spawn_agent", true),
        ("Web*", "web_search", "web_search", true),
        ("Edit", "write_file", "write_file", false),
        ("WebFetch", "web_fetch", "web_fetch", true),
        ("Bash", "edit_file", "edit_file", false),
        ("mcp__x__y", "shell", "shell", false),
        ("mcp__my-server__who", "mcp__my_server__who", "mcp__my_server__who", true),
    ] {
        let toml = format!("[[PreToolUse]]\nmatcher = '{matcher}'\ncommand = 'true'\n");
        let group =
            format!(r#"{{"matcher": "{matcher}", "hooks": [{{"type": "command", "command": "true"}}]}}"#);
        let json = format!(r#"{{"hooks": {{"PreToolUse": [{group}]}}}}"#);
        let files =
            [HookCommands::parse("hooks.toml", &toml), HookCommands::parse_json("settings.json", &json)];
        let is_selected =
            files.map(|file| !file.unwrap().for_event(HookEvent::PreToolUse, &[tool, kind]).is_empty());
        assert_eq!(is_selected, [expected; 2], "{matcher} for {tool}");
    }
}

#[tokio::test]
async fn matchers_for_unknown_tools_are_found() {
    let file = "[[SessionStart]]\nmatcher = 'resume'\ncommand = 'a'\n[[PreToolUse]]\nmatcher = 'shell|x*|shel'\ncommand = 'b'\n";
    let commands = HookCommands::parse("hooks.toml", file).unwrap();
    let (tool, command) = commands.unknown_tool(|name| name == "shell").unwrap();
    assert_eq!((tool, command.source()), ("shel", "hooks.toml:6"));
    assert_eq!(commands.unknown_tool(|name| name.starts_with("she")), None);
    let fixture = Fixture::new();
    let hooks = fixture.hooks_of(commands.clone()).and(commands, Arc::clone(&fixture.env) as _);
    let unknown: Vec<&str> =
        hooks.unknown_tools(|name| name == "shell").into_iter().map(|(tool, _)| tool).collect();
    assert_eq!(unknown, ["shel", "shel"]);
}

#[test]
fn sets_are_joined_in_order() {
    let mut commands = HookCommands::parse("a.toml", "[[Stop]]\ncommand = 'x'\n[[Later]]\n").unwrap();
    commands.extend(HookCommands::parse("b.toml", "[[Stop]]\ncommand = 'y'\n[[Later]]\n").unwrap());
    let found: Vec<_> = commands.iter().map(HookCommand::source).collect();
    assert_eq!((found, commands.warnings().len()), (vec!["a.toml:2", "b.toml:2"], 2));
}
