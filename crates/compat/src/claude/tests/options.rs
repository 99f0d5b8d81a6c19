//! Command lines of Claude Code.

use serde_json::json;

use crate::OptionError;
use crate::claude::{PermissionMode, SettingSource, StreamOptions, Thinking, ToolRule};

fn parse(arguments: &[&str]) -> Result<crate::ParsedOptions<StreamOptions>, OptionError> {
    StreamOptions::parse(arguments)
}

#[test]
fn everything_that_the_sdk_passes_is_understood() {
    let arguments = [
        "--output-format",
        "stream-json",
        "--verbose",
        "--input-format",
        "stream-json",
        "--max-thinking-tokens=1000",
        "--effort=high",
        "--max-turns=3",
        "--max-budget-usd=0.5",
        "--model=m",
        r#"--json-schema={"type":"object"}"#,
        "--permission-prompt-tool=stdio",
        "--resume=some-id",
        "--fork-session",
        "--session-id=other-id",
        "--allowedTools=Read,Bash(git *)",
        "--disallowedTools=WebFetch",
        "--tools=Read,Bash",
        "--mcp-config",
        "{\"mcpServers\":{}}",
        "--setting-sources=user,local",
        "--strict-mcp-config",
        "--permission-mode=acceptEdits",
        "--allow-dangerously-skip-permissions",
        "--fallback-model=n",
        "--include-partial-messages",
        "--add-dir=/a",
        "--await-initialize",
        "--initialize-fields=settings,disallowedTools",
        "--no-session-persistence",
        "--settings",
        r#"{"permissions":{"deny":["Read(.env)"]}}"#,
    ];
    let parsed = parse(&arguments).expect("a command line");
    assert_eq!(parsed.warnings, [""; 0]);
    let options = parsed.options;
    let rule = |tool: &str, scope: Option<&str>| ToolRule::new(tool, scope.map(str::to_owned));
    assert_eq!(options.settings.deny, [rule("Read", Some(".env"))]);
    let settings = options.settings.clone();
    let expected = StreamOptions {
        partial_messages: true,
        asks_host: true,
        permission_mode: Some(PermissionMode::AcceptEdits),
        may_bypass: true,
        model: Some("m".to_owned()),
        fallback_model: Some("n".to_owned()),
        max_turns: Some(3),
        max_budget_usd: Some(0.5),
        thinking: Some(Thinking::Budget(1_000)),
        effort: Some("high".to_owned()),
        json_schema: Some(json!({"type": "object"})),
        resume: Some("some-id".to_owned()),
        forks: true,
        session_id: Some("other-id".to_owned()),
        ephemeral: true,
        allowed_tools: vec![rule("Read", None), rule("Bash", Some("git *"))],
        disallowed_tools: vec![rule("WebFetch", None)],
        tools: Some(vec!["Read".to_owned(), "Bash".to_owned()]),
        mcp_configs: vec![r#"{"mcpServers":{}}"#.to_owned()],
        strict_mcp_config: true,
        settings,
        setting_sources: Some(vec![SettingSource::User, SettingSource::Local]),
        added_directories: vec!["/a".into()],
        awaits_initialize: true,
        ..StreamOptions::default()
    };
    assert_eq!(options, expected);
}

/// The SDK for Python has no option for the other flag.
#[test]
fn bypass_on_the_command_line_is_consent_and_in_settings_it_is_not() {
    let cases: [(&[&str], Option<PermissionMode>, bool); 4] = [
        (&["--permission-mode", "bypassPermissions"], Some(PermissionMode::BypassPermissions), true),
        (&["--dangerously-skip-permissions"], Some(PermissionMode::BypassPermissions), true),
        (&["--permission-mode", "acceptEdits"], Some(PermissionMode::AcceptEdits), false),
        (&["--settings", r#"{"permissions":{"defaultMode":"bypassPermissions"}}"#], None, false),
    ];
    for (arguments, mode, may_bypass) in cases {
        let options = parse(arguments).expect("a command line").options;
        assert_eq!((options.permission_mode, options.may_bypass), (mode, may_bypass), "{arguments:?}");
    }
}

#[test]
fn harmless_options_are_warnings() {
    let cases: [&[&str]; 10] = [
        &["--some-new-thing", "plan"],
        &["--settings", r#"{"outputStyle": "plan"}"#],
        &["-nname"],
        &["--betas=x"],
        &["--settings", r#"{"env": {"DISABLE_TELEMETRY": "1"}}"#],
        &["--debug-to-stderr"],
        &["--debug-file", "/tmp/x"],
        &["--some-new-thing", "value"],
        &["--settings", r#"{"outputStyle": "terse"}"#],
        &["--settings", r#"{"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true}}"#],
    ];
    for arguments in cases {
        assert_eq!(parse(arguments).expect("harmless").warnings.len(), 1, "{arguments:?}");
    }
}

#[test]
fn options_that_could_restrict_are_refused() {
    let cases: [&[&str]; 9] = [
        &["--agent=reviewer"],
        &["--managed-settings", "{}"],
        &["--plugin-dir=/p"],
        &["--permission-prompts=x"],
        &["--resume-session-at=x"],
        &["--tool-policy", "strict"],
        &["--settings", r#"{"disableAllHooks": true}"#],
        &["--settings", r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#],
        &["--settings", r#"{"sandbox": {"network": {}}}"#],
    ];
    for arguments in cases {
        let error = parse(arguments).expect_err("a restriction");
        assert!(matches!(error, OptionError::Restricting { .. }), "{arguments:?}: {error}");
    }
}

#[test]
fn misspelt_options_that_restrict_or_grant_are_refused_with_the_one_that_is_meant() {
    let cases: [(&[&str], &str); 12] = [
        (&["--permision-mode", "plan"], "--permission-mode"),
        (&["--PermissionMode=plan"], "--permission-mode"),
        (&["--new", "dontAsk"], "--permission-mode"),
        (&["--dissalowedTools=Bash"], "--disallowedTools"),
        (&["--max-turn=3"], "--max-turns"),
        (&["--max-budget=1"], "--max-budget-usd"),
        (&["--setings={}"], "--settings"),
        (&["--strict-mcp"], "--strict-mcp-config"),
        (&["--settings", r#"{"permisions": {"deny": ["Bash"]}}"#], "permissions"),
        (&["--settings", r#"{"permissions": {"dney": ["Bash"]}}"#], "permissions.deny"),
        (&["--settings", r#"{"deny": ["Bash"]}"#], "permissions.deny"),
        (&["--settings", r#"{"new": {"sandbx": {"enabled": true}}}"#], "sandbox"),
    ];
    for (arguments, meant) in cases {
        let error = parse(arguments).expect_err("a restriction");
        assert!(matches!(error, OptionError::Restricting { .. }), "{arguments:?}: {error}");
        let message = error.to_string();
        assert!(message.ends_with(&format!("did you mean {meant}?")), "{arguments:?}: {message}");
    }
}

#[test]
fn other_misspelt_options_are_refused_with_the_one_that_is_meant() {
    let cases: [(&[&str], &str); 7] = [
        (&["--modle=m"], "--model"),
        (&["--json-schem={}"], "--json-schema"),
        (&["--resum", "some-id"], "--resume"),
        (&["-resume", "some-id"], "--resume"),
        (&["--append-system-promt", "x"], "--append-system-prompt"),
        (&["--continu"], "--continue"),
        (&["--settings", r#"{"modle": "m"}"#], "model"),
    ];
    for (arguments, meant) in cases {
        let message = parse(arguments).expect_err("misspelt").to_string();
        assert!(message.ends_with(&format!("did you mean {meant}?")), "{arguments:?}: {message}");
    }
    assert_eq!(parse(&["-rsome-id"]).expect("options").options.resume.as_deref(), Some("some-id"));
}

#[test]
fn what_cannot_be_understood_is_an_error() {
    let cases: [&[&str]; 15] = [
        &["--model", "--disallowedTools=Bash"],
        &["prompt"],
        &["--output-format=text"],
        &["--permission-prompt-tool=mcp__x__y"],
        &["--permission-mode=yolo"],
        &["--max-turns=many"],
        &["--max-budget-usd=NaN"],
        &["--json-schema=7"],
        &["--setting-sources=cloud"],
        &["--allowedTools=Bash(git"],
        &["--settings", "{"],
        &["--settings", r#"{"permissions": {"deny": "Bash"}}"#],
        &["--settings", r#"{"sandbox": {"enabled": "yes"}}"#],
        &["--continue", "--resume=x"],
        &["--fork-session"],
    ];
    for arguments in cases {
        let error = parse(arguments).expect_err("not understood");
        assert!(!matches!(error, OptionError::Restricting { .. }), "{arguments:?}: {error}");
    }
}
