//! Command lines of codex.

use crate::OptionError;
use crate::codex::{ApprovalPolicy, ExecOptions, ResumeTarget, SandboxMode, WebSearchMode};

fn parse(line: &str) -> Result<crate::ParsedOptions<ExecOptions>, OptionError> {
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
        resume: Some(ResumeTarget::Id("some-id".to_owned())),
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
        "--some-new-thing=value",
        "--colour never",
        "--search",
        "--include-plan-tool",
        "--dangerously-bypass-hook-trust",
        "-xnever",
        "-c label=untrusted",
        "-c x.y=on-request",
        "-c cache=disabled",
        "-c disable_response_storage=true",
        "-c tool_output_token_limit=1000",
        "-c model_auto_compact_token_limit=1000",
        "-c mcp_servers.x.tool_timeout_sec=60",
        "-c mcp_servers.x={tool_timeout_sec=60}",
        "-c shell_environment_policy.inherit=all",
        "-c shell_environment_policy={inherit=\"all\"}",
        "-c shell_environment_policy.set.FOO=bar",
        "-c approvals_reviewer=user",
        "-c projects.\"/srv/a.b\".trust_level=trusted",
        "-c projects={\"/srv\"={trust_level=\"trusted\"}}",
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
fn a_word_after_an_unknown_option_is_its_value_unless_it_is_needed() {
    let with_value = |option: &str, value: &str| {
        format!("option {option} is ignored with its value `{value}`: it is unknown")
    };
    let without = |option: &str, next: &str| {
        format!("option {option} is ignored: it is unknown, and `{next}` is not its value")
    };
    let cases = [
        ("--x Go", None, Some("Go"), vec![without("--x", "Go")]),
        ("--x value Go", None, Some("Go"), vec![with_value("--x", "value")]),
        ("Go --x value", None, Some("Go"), vec![with_value("--x", "value")]),
        ("--user never --x Go", None, Some("Go"), vec![without("--x", "Go"), with_value("--user", "never")]),
        ("--x value -", None, None, vec![with_value("--x", "value")]),
        ("--x -- Go", None, Some("Go"), vec!["option --x is ignored: it is unknown".to_owned()]),
        ("--x value resume 01a", Some("01a"), None, vec![with_value("--x", "value")]),
        ("--x resume 01a", Some("01a"), None, vec!["option --x is ignored: it is unknown".to_owned()]),
        ("resume --x 01a", Some("01a"), None, vec![without("--x", "01a")]),
        ("resume --x value 01a Go", Some("01a"), Some("Go"), vec![with_value("--x", "value")]),
        ("resume 01a --x Go", Some("01a"), Some("Go"), vec![without("--x", "Go")]),
        ("resume 01a Go --x value", Some("01a"), Some("Go"), vec![with_value("--x", "value")]),
        ("resume Go --last", None, Some("Go"), vec![]),
        ("resume --last --x Go", None, Some("Go"), vec![without("--x", "Go")]),
    ];
    for (line, session, prompt, warnings) in cases {
        let parsed = parse(line).expect(line);
        let resume = session.map(|id| ResumeTarget::Id(id.to_owned()));
        let resume = resume.or_else(|| line.contains("--last").then_some(ResumeTarget::Last));
        assert_eq!((parsed.options.resume, parsed.options.prompt.as_deref()), (resume, prompt), "{line}");
        assert_eq!(parsed.warnings, warnings, "{line}");
    }
    for (option, prompt) in [
        ("--search", Some("Go")),
        ("--no-alt-screen", Some("Go")),
        ("--progress-cursor", Some("Go")),
        ("--serach", Some("Go")),
        ("--color", None),
        ("--colour", None),
    ] {
        let parsed = parse(&format!("{option} Go")).expect(option);
        assert_eq!((parsed.options.prompt.as_deref(), parsed.warnings.len()), (prompt, 1), "{option}");
    }
}

#[test]
fn short_options_have_their_value_in_the_same_word_or_the_next() {
    let expected =
        parse("-o FILE -s read-only -C dir -m MODEL -i a.png -a never -c web_search=live").unwrap();
    let lines = [
        "-oFILE -sread-only -Cdir -mMODEL -ia.png -anever -cweb_search=live",
        "-o=FILE -s=read-only -C=dir -m=MODEL -i=a.png -a=never -c=web_search=live",
    ];
    for line in lines {
        assert_eq!(parse(line).expect(line), expected, "{line}");
    }
    assert_eq!(expected.options.sandbox, Some(SandboxMode::ReadOnly));
    let profile = parse("-pwork").expect_err("a profile may restrict");
    assert!(matches!(profile, OptionError::Restricting { .. }), "{profile}");
}

#[test]
fn misspelt_options_that_decide_where_and_what_is_written_are_refused() {
    let cases = [
        ("--cdd ../p2", "--cd"),
        ("-cd ../p2", "--cd"),
        ("-cd=../p2", "--cd"),
        ("--cwd ../p2", "--cd"),
        ("--workdir=../p2", "--cd"),
        ("--output-schem s.json", "--output-schema"),
        ("--json-schema s.json", "--output-schema"),
        ("-output-schema s.json", "--output-schema"),
        ("--output-last-mesage f", "--output-last-message"),
        ("--output_last_message f", "--output-last-message"),
        ("--o f", "-o"),
        ("--modle m", "--model"),
        ("-model m", "--model"),
        ("--images a.png", "--image"),
        ("--jsno", "--json"),
        ("--output-format json", "--json"),
        ("--resume 01a", "resume"),
        ("--resum 01a", "resume"),
        ("--last", "resume --last"),
        ("--continue", "resume --last"),
        ("resume --lst", "resume --last"),
        ("--skip-git-repo-chek", "--skip-git-repo-check"),
        ("--hlep", "--help"),
        ("-c modle=m", "model"),
        ("-c model_reasoning_efort=high", "model_reasoning_effort"),
        ("-c base_url=http://127.0.0.1", "openai_base_url"),
    ];
    for (line, meant) in cases {
        let message = parse(line).expect_err(line).to_string();
        assert!(message.ends_with(&format!("did you mean {meant}?")), "{line}: {message}");
    }
    for line in ["--model-provider=x", "--fast", "--list-models=x", "-c model_provider=x"] {
        let parsed = parse(line).expect(line);
        assert_eq!(parsed.warnings.len(), 1, "{line}");
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
        "-c shell_environment_policy={inherit=\"none\"}",
        "-c mcp_servers.x={tool_timeout_sec=60,disabled_tools=[\"y\"]}",
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
        ("-x read-only", "--sandbox"),
        ("--label read-only", "--sandbox"),
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
        "resume --last one two",
        "--full-auto --yolo",
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
        ("resume --x", format!("{needs} (option --x is ignored: it is unknown)")),
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
    assert_eq!((parsed.options.resume, parsed.options.prompt), (Some(ResumeTarget::Last), None));
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
        (
            "--full-auto -c sandbox_mode=read-only",
            Some(SandboxMode::ReadOnly),
            Some(ApprovalPolicy::OnRequest),
        ),
        (
            "-c sandbox_mode=\"read-only\" --full-auto",
            Some(SandboxMode::ReadOnly),
            Some(ApprovalPolicy::OnRequest),
        ),
        (
            "--full-auto Go -c approval_policy='untrusted'",
            Some(SandboxMode::WorkspaceWrite),
            Some(ApprovalPolicy::Untrusted),
        ),
        ("", None, None),
    ];
    for (line, sandbox, approval) in cases {
        let parsed = parse(line).expect(line);
        assert_eq!((parsed.options.sandbox, parsed.options.approval), (sandbox, approval), "{line}");
        assert_eq!(parsed.warnings, [""; 0], "{line}");
    }
}

#[test]
fn an_option_that_permits_less_than_another_one_is_never_ignored() {
    let cases = [
        ("-s workspace-write -c sandbox_mode=read-only", "--config sandbox_mode=read-only"),
        ("-c sandbox_mode=\"read-only\" -s workspace-write", "--config sandbox_mode=\"read-only\""),
        ("-s read-only -s workspace-write", "-s read-only"),
        ("-c sandbox_mode=read-only -c sandbox_mode=workspace-write", "--config sandbox_mode=read-only"),
        ("-a never -c approval_policy=untrusted", "--config approval_policy=untrusted"),
        ("--yolo -s read-only", "-s read-only"),
        ("--sandbox=workspace-write --yolo", "--sandbox workspace-write"),
        ("--yolo -c sandbox_mode=read-only", "--config sandbox_mode=read-only"),
        ("--yolo -a untrusted", "-a untrusted"),
        ("--yolo -c approval_policy=untrusted", "--config approval_policy=untrusted"),
        (
            "-c sandbox_workspace_write.network_access=false -c sandbox_workspace_write.network_access=true",
            "--config sandbox_workspace_write.network_access=false",
        ),
        ("-c web_search=disabled -c tools.web_search=true", "--config web_search=disabled"),
    ];
    for (line, narrower) in cases {
        let error = parse(line).expect_err(line);
        assert!(
            matches!(&error, OptionError::Contradiction { narrower: found, .. } if found == narrower),
            "{line}: {error}"
        );
        assert!(error.to_string().ends_with("pass only one of them"), "{line}: {error}");
    }
    let cases = [
        ("-c sandbox_mode=workspace-write -s read-only", Some(SandboxMode::ReadOnly)),
        ("-s workspace-write -s read-only", Some(SandboxMode::ReadOnly)),
        ("-s danger-full-access --yolo", Some(SandboxMode::DangerFullAccess)),
        ("-a on-request --yolo", Some(SandboxMode::DangerFullAccess)),
        ("--full-auto -c sandbox_mode=danger-full-access", Some(SandboxMode::DangerFullAccess)),
    ];
    for (line, sandbox) in cases {
        assert_eq!(parse(line).expect(line).options.sandbox, sandbox, "{line}");
    }
}

/// Programs pass the key with every mode, as a default of their threads.
#[test]
fn the_network_of_workspace_write_is_accepted_with_other_modes() {
    const KEY: &str = "sandbox_workspace_write.network_access";
    let unrestricted = "danger-full-access does not restrict the network";
    let without = "read-only has no network";
    let cases = [
        ("-s workspace-write", true, Some(true), None),
        ("-s workspace-write", false, Some(false), None),
        ("--full-auto", true, Some(true), None),
        ("-s danger-full-access", true, None, None),
        ("-s danger-full-access", false, None, Some(unrestricted)),
        ("-c sandbox_mode=danger-full-access", false, None, Some(unrestricted)),
        ("--yolo", false, None, Some(unrestricted)),
        ("-s read-only", true, Some(false), Some(without)),
        ("-s read-only", false, Some(false), None),
        ("--full-auto -s read-only", true, Some(false), Some(without)),
        ("", true, Some(false), Some(without)),
    ];
    for (line, value, network, reason) in cases {
        let parsed = parse(&format!("{line} -c {KEY}={value}")).expect(line);
        assert_eq!(parsed.options.network, network, "{line} {value}");
        let warnings: Vec<String> = reason
            .map(|reason| format!("option --config {KEY}={value} has no effect: {reason}"))
            .into_iter()
            .collect();
        assert_eq!(parsed.warnings, warnings, "{line} {value}");
        assert_eq!(parse(line).expect(line).options.network, None, "{line}");
    }
}

#[test]
fn configuration_cannot_smuggle_a_second_key() {
    let parsed =
        ExecOptions::parse(&["-c", "model=1\nsandbox_mode=\"danger-full-access\""]).expect("options");
    assert_eq!(parsed.options.sandbox, None);
}
