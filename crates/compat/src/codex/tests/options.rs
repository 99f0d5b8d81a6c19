//! Command lines of codex.

use crate::OptionError;
use crate::codex::{ApprovalPolicy, ExecOptions, Resume, SandboxMode, WebSearchMode};

fn parse(line: &str) -> Result<crate::Parsed<ExecOptions>, OptionError> {
    ExecOptions::parse(&line.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn everything_that_the_sdk_passes_is_understood() {
    let arguments = [
        "exec",
        "--experimental-json",
        "--config",
        r#"openai_base_url="http://127.0.0.1:1""#,
        "--model",
        "m",
        "--sandbox",
        "workspace-write",
        "--cd",
        "/w",
        "--add-dir",
        "/a",
        "--add-dir",
        "/b",
        "--skip-git-repo-check",
        "--output-schema",
        "/s.json",
        "-o",
        "/last.txt",
        "--config",
        r#"model_reasoning_effort="high""#,
        "--config",
        "sandbox_workspace_write.network_access=true",
        "--config",
        r#"web_search="cached""#,
        "--config",
        r#"approval_policy="on-request""#,
        "resume",
        "some-id",
        "--image",
        "/i,1.png",
    ];
    let parsed = ExecOptions::parse(&arguments).expect("a command line");
    assert_eq!(parsed.warnings, [""; 0]);
    let expected = ExecOptions {
        json: true,
        model: Some("m".to_owned()),
        sandbox: Some(SandboxMode::WorkspaceWrite),
        network: Some(true),
        approval: Some(ApprovalPolicy::OnRequest),
        directory: Some("/w".into()),
        added_directories: vec!["/a".into(), "/b".into()],
        skip_git_check: true,
        output_schema: Some("/s.json".into()),
        last_message: Some("/last.txt".into()),
        images: vec!["/i,1.png".into()],
        resume: Some(Resume::Id("some-id".to_owned())),
        reasoning_effort: Some("high".to_owned()),
        base_url: Some("http://127.0.0.1:1".to_owned()),
        web_search: Some(WebSearchMode::Cached),
        ..ExecOptions::default()
    };
    assert_eq!(parsed.options, expected);
}

#[test]
fn harmless_options_are_warnings() {
    let cases = [
        "--json --color never",
        "--thread-source app",
        "--cyber-access-program standard",
        "--local-provider ollama",
        "--some-new-thing value",
        "--some-new-thing=value",
        "-c show_raw_agent_reasoning=true",
        "-c model_verbosity=low",
        "-c features.fast=true",
    ];
    for line in cases {
        let parsed = parse(line).expect(line);
        assert_eq!(parsed.warnings.len(), 1, "{line}");
        assert_eq!(parsed.options.prompt, None, "{line}");
    }
}

#[test]
fn options_that_could_restrict_are_refused() {
    let cases = [
        "--profile work",
        "--disable shell",
        "--strict-config",
        "--tool-filter read",
        "--no-network",
        "-c default_permissions=audit",
        "-c permissions.audit.filesystem={}",
        "-c sandbox_workspace_write.exclude_slash_tmp=true",
        "-c features.shell=false",
        "-c mcp_servers.x.enabled_tools=[]",
        r#"-c mcp_servers.x={disabled_tools=["y"]}"#,
        "-c shell_environment_policy.inherit=none",
        r#"-c projects./w.trust_level="untrusted""#,
    ];
    for line in cases {
        let error = parse(line).expect_err(line);
        assert!(matches!(error, OptionError::Restricting { .. }), "{line}: {error}");
    }
}

#[test]
fn misspelt_options_that_restrict_or_grant_are_refused_with_the_one_that_is_meant() {
    let cases = [
        ("--sandboxx read-only", "--sandbox"),
        ("--sandbx=read-only", "--sandbox"),
        ("--SANDBOX read-only", "--sandbox"),
        ("--sandbox_mode workspace-write", "--sandbox"),
        ("--sand read-only", "--sandbox"),
        ("--ask-for-aproval never", "--ask-for-approval"),
        ("--ask_for_approval untrusted", "--ask-for-approval"),
        ("--approval on-request", "--ask-for-approval"),
        ("-auntrusted", "-a"),
        ("-C/other", "-C"),
        ("-x read-only", "--sandbox"),
        ("--new untrusted", "--ask-for-approval"),
        ("--ad-dir /x", "--add-dir"),
        ("--confg sandbox_mode=read-only", "--config"),
        ("--profle work", "--profile"),
        ("--full-autoo", "--full-auto"),
        ("--ephemral", "--ephemeral"),
        ("-c sandbx_mode=read-only", "sandbox_mode"),
        ("-c sandboxmode=read-only", "sandbox_mode"),
        ("-c SANDBOX_MODE=read-only", "sandbox_mode"),
        ("-c approvalPolicy=never", "approval_policy"),
        ("-c web_serch=cached", "web_search"),
        ("-c network_access=false", "sandbox_workspace_write.network_access"),
        ("-c sandbox_workspace_write.network_acess=false", "sandbox_workspace_write.network_access"),
        ("-c x.y=read-only", "sandbox_mode"),
        (r#"-c x={y="read-only"}"#, "sandbox_mode"),
    ];
    for (line, meant) in cases {
        let error = parse(line).expect_err(line);
        assert!(matches!(error, OptionError::Restricting { .. }), "{line}: {error}");
        let message = error.to_string();
        assert!(message.ends_with(&format!("did you mean {meant}?")), "{line}: {message}");
    }
    let profile = parse("-c profile=work").expect_err("a profile may restrict");
    assert!(matches!(profile, OptionError::Restricting { .. }), "{profile}");
}

#[test]
fn what_cannot_be_understood_is_an_error() {
    let cases = [
        "--sandbox none",
        "--model --sandbox read-only",
        "--model -s read-only",
        "--sandbox",
        "--json=yes",
        "-c approval_policy=7",
        "-c novalue",
        "-c web_search=maybe",
        "one two",
        "resume",
    ];
    for line in cases {
        let error = parse(line).expect_err(line);
        assert!(!matches!(error, OptionError::Restricting { .. }), "{line}: {error}");
        assert!(!error.to_string().contains('\n'), "{line}");
    }
}

#[test]
fn a_session_to_resume_is_named_or_the_last() {
    let needs = "resume needs the id of a session, or --last";
    for (line, expected) in [
        ("resume", needs.to_owned()),
        ("resume --lst", format!("{needs} (option --lst is ignored: it is unknown)")),
        (
            "resume --lst more",
            format!("{needs} (option --lst is ignored with its value `more`: it is unknown)"),
        ),
    ] {
        assert_eq!(parse(line).expect_err(line).to_string(), expected);
    }
}

#[test]
fn flags_win_over_configuration_and_later_over_earlier() {
    let parsed =
        parse("-s read-only -c sandbox_mode=workspace-write -c model=a -c model=b").expect("options");
    assert_eq!(parsed.options.sandbox, Some(SandboxMode::ReadOnly));
    assert_eq!(parsed.options.model.as_deref(), Some("b"));
    let parsed = parse("resume --last - ").expect("options");
    assert_eq!((parsed.options.resume, parsed.options.prompt), (Some(Resume::Last), None));
    let parsed = parse("-- --resume").expect("options");
    assert_eq!(parsed.options.prompt.as_deref(), Some("--resume"));
}

#[test]
fn full_auto_selects_a_sandbox_and_never_replaces_a_given_one() {
    let cases = [
        ("--full-auto", Some(SandboxMode::WorkspaceWrite), Some(ApprovalPolicy::OnRequest)),
        ("--full-auto -s read-only", Some(SandboxMode::ReadOnly), Some(ApprovalPolicy::OnRequest)),
        ("-s read-only --full-auto", Some(SandboxMode::ReadOnly), Some(ApprovalPolicy::OnRequest)),
        ("-a untrusted --full-auto", Some(SandboxMode::WorkspaceWrite), Some(ApprovalPolicy::Untrusted)),
        ("", None, None),
    ];
    for (line, sandbox, approval) in cases {
        let parsed = parse(line).expect(line);
        assert_eq!((parsed.options.sandbox, parsed.options.approval), (sandbox, approval), "{line}");
        assert_eq!(parsed.warnings, [""; 0], "{line}");
    }
}

#[test]
fn configuration_cannot_smuggle_a_second_key() {
    let parsed =
        ExecOptions::parse(&["-c", "model=1\nsandbox_mode=\"danger-full-access\""]).expect("options");
    assert_eq!(parsed.options.sandbox, None);
}
