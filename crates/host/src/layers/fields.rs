//! The table of fields: their names in every source, which layers may set them, and their meaning.

use pintle_agent::CompactionPolicy;

use super::row::{Access, ClientScope, DefaultValue, FieldRetention, FieldRow, ValueKind};
use crate::provider::Provider;
use crate::spec::{Combine, WorktreeBase};

// The names are in the order of help texts.
const MODES: &[&str] = &["plan", "ask", "edit", "auto"];
const MODES_AFTER_PLAN: &[&str] = &["ask", "edit", "auto"];
const SANDBOX_LEVELS: &[&str] = &["auto", "full", "writes", "off"];

const FALSE: DefaultValue = DefaultValue::Value("false");
const TRUE: DefaultValue = DefaultValue::Value("true");

/// The fields of [`SessionSpec`](crate::SessionSpec), in the order of declaration.
pub static FIELDS: &[FieldRow] = &[
    FieldRow::new("model.provider", ValueKind::Choice(Provider::NAMES), Combine::Replace, "Model provider")
        .with_key("provider", &["provider"], Access::Trusted)
        .with_default(DefaultValue::Description(
            "the provider of a known model, else the first of openai, anthropic, gemini with a key",
        ))
        .with_retention(FieldRetention::Always),
    FieldRow::new("model.name", ValueKind::Text, Combine::Replace, "Model name")
        .with_key("model", &["model"], Access::Trusted)
        .with_default(DefaultValue::Description("the provider's best model"))
        .with_http("model", ClientScope::Create)
        .with_acp("model")
        .with_sdk(&["claude --model", "codex --model"])
        .with_retention(FieldRetention::Always),
    FieldRow::new(
        "model.base_url",
        ValueKind::Url,
        Combine::Replace,
        "Base URL of the provider's API, ending in /v1 for openai and openai-compatible",
    )
    .with_key("base_url", &["base-url"], Access::User)
    .with_default(DefaultValue::Description("the provider's"))
    .with_variables(&["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GEMINI_BASE_URL"])
    .with_sdk(&["codex openai_base_url"])
    .with_retention(FieldRetention::Always),
    FieldRow::new("model.script", ValueKind::Path, Combine::Replace, "Script for `--provider scripted`")
        .with_flags(&["script"])
        .with_retention(FieldRetention::Always),
    FieldRow::new(
        "model.dialect",
        ValueKind::Choice(Provider::NAMES),
        Combine::Replace,
        "Wire dialect for `--provider scripted`",
    )
    .with_flags(&["dialect"])
    .with_default(DefaultValue::Description("the script's, or openai"))
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "model.profile",
        ValueKind::Profile,
        Combine::Replace,
        "Name of a profile below, or a profile file; a project can select only by name",
    )
    .with_key("profile", &["profile"], Access::Trusted)
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "model.reasoning_effort",
        ValueKind::Text,
        Combine::Replace,
        "Reasoning effort: low, medium, high, or a provider-specific value",
    )
    .with_key("reasoning_effort", &["reasoning-effort"], Access::Trusted)
    .with_default(DefaultValue::Description("the model's"))
    .with_http("effort", ClientScope::Create)
    .with_acp("reasoning_effort")
    .with_sdk(&["claude --effort", "codex model_reasoning_effort"])
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "model.timeout",
        ValueKind::Time,
        Combine::Replace,
        "Time after which a model call without text, reasoning or tool call is aborted",
    )
    .with_key("timeout", &["timeout"], Access::Safe)
    .with_default(DefaultValue::Value("15m")),
    FieldRow::new(
        "model.catalog",
        ValueKind::Path,
        Combine::Replace,
        "File of models and prices that overrides the built-in catalog",
    )
    .with_key("catalog", &["catalog"], Access::User)
    .with_default(DefaultValue::Description("the built-in catalog"))
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "environment.kind",
        ValueKind::Text,
        Combine::Replace,
        "Execution environment: local, docker:CONTAINER or ssh:[USER@]HOST[:PORT]",
    )
    .with_flags(&["env"])
    .with_default(DefaultValue::Value("local"))
    .with_fixed_http("environment", ClientScope::Approve)
    .with_retention(FieldRetention::Always),
    // The store has the directory of a session, which may be in its worktree.
    FieldRow::new(
        "environment.dir",
        ValueKind::Path,
        Combine::Replace,
        "Working directory in the environment",
    )
    .with_flags(&["dir"])
    .with_default(DefaultValue::Description("the current directory, the container's, or the login directory"))
    .with_http("directory", ClientScope::Create)
    .with_acp("cwd")
    .with_sdk(&["codex --cd"]),
    FieldRow::new(
        "environment.sandbox",
        ValueKind::Choice(SANDBOX_LEVELS),
        Combine::Bounded,
        "Level of the sandbox that commands run in",
    )
    .with_key("sandbox", &["sandbox", "no-sandbox"], Access::Trusted)
    .with_default(DefaultValue::Value("auto"))
    .with_sdk(&["codex --sandbox"])
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "environment.network",
        ValueKind::Network,
        Combine::Bounded,
        "Network access of sandboxed commands and web tools",
    )
    .with_key("network", &["network"], Access::Trusted)
    .with_default(DefaultValue::Description("off in a sandbox, otherwise on"))
    .with_sdk(&["codex sandbox_workspace_write.network_access"])
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "environment.confine",
        ValueKind::Switch,
        Combine::Bounded,
        "Restriction of file tools to the working directory",
    )
    .with_key("confine", &["confine"], Access::Trusted)
    .with_default(FALSE)
    .with_retention(FieldRetention::Always),
    // A flag of the server, which applies to all of its sessions.
    FieldRow::new(
        "environment.roots",
        ValueKind::Path,
        Combine::Narrow,
        "Directories in and below which the session may work",
    )
    .with_flags(&["root"])
    .with_default(DefaultValue::Description("every directory; in a server, its working directory")),
    FieldRow::new(
        "policy.mode",
        ValueKind::Choice(MODES),
        Combine::Bounded,
        "Treatment of calls that no rule names",
    )
    .with_key("mode", &["mode"], Access::Trusted)
    .with_default(DefaultValue::Description("auto; edit in conversations"))
    .with_http("mode", ClientScope::CreateOrApprove)
    .with_acp("mode")
    .with_sdk(&["claude --permission-mode", "codex --ask-for-approval"])
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "policy.after_plan",
        ValueKind::Choice(MODES_AFTER_PLAN),
        Combine::Bounded,
        "Mode after an accepted plan",
    )
    .with_key("after_plan", &["after-plan"], Access::Trusted)
    .with_default(DefaultValue::Value("edit"))
    .with_retention(FieldRetention::Always),
    FieldRow::new("policy.allow", ValueKind::Rule, Combine::Append, "Rules for calls that need no decision")
        .with_flags(&["allow"])
        .with_access(Access::Trusted)
        .with_http("rules.allow", ClientScope::Approve)
        .with_sdk(&["claude --allowedTools"])
        .with_retention(FieldRetention::UnlessFlag),
    FieldRow::new("policy.ask", ValueKind::Rule, Combine::Append, "Rules for calls that need a decision")
        .with_access(Access::Safe)
        .with_sdk(&["claude --settings permissions.ask"]),
    FieldRow::new("policy.deny", ValueKind::Rule, Combine::Append, "Rules for calls that do not run")
        .with_flags(&["deny"])
        .with_access(Access::Safe)
        .with_http("rules.deny", ClientScope::Create)
        .with_sdk(&["claude --disallowedTools", "codex web_search"])
        .with_retention(FieldRetention::UnlessFlag),
    FieldRow::new(
        "policy.hidden",
        ValueKind::Path,
        Combine::Append,
        "Paths that tools and sandboxed commands cannot read",
    )
    .with_access(Access::Safe)
    .with_retention(FieldRetention::Always),
    // The record of a session has its grant.
    FieldRow::new(
        "policy.grant",
        ValueKind::Structure,
        Combine::Narrow,
        "Grant that no rule, mode or decision exceeds",
    )
    .with_flags(&["grant"])
    .with_default(DefaultValue::Description("unrestricted"))
    .with_http("grant", ClientScope::Create),
    FieldRow::new(
        "policy.wait_approval",
        ValueKind::Switch,
        Combine::Replace,
        "Waiting up to 24 hours for `pintle approvals` where there is no terminal",
    )
    .with_key("wait_approval", &["wait-approval"], Access::Trusted)
    .with_default(FALSE)
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "policy.read_before_write",
        ValueKind::Switch,
        Combine::Bounded,
        "Rejection of changes to files that the model has not read",
    )
    .with_key("read_before_write", &["read-before-write"], Access::Trusted)
    .with_default(FALSE)
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "limits.max_turns",
        ValueKind::Count,
        Combine::Bounded,
        "Limit on model responses of a run; 0 is no limit",
    )
    .with_key("max_turns", &["max-turns"], Access::Trusted)
    .with_default(DefaultValue::Value("0"))
    .with_sdk(&["claude --max-turns"]),
    FieldRow::new(
        "limits.max_tool_rounds",
        ValueKind::Count,
        Combine::Bounded,
        "Limit on rounds of tool calls of a run; 0 is no limit",
    )
    .with_key("max_tool_rounds", &["max-tool-rounds"], Access::Trusted)
    .with_default(DefaultValue::Value("0")),
    FieldRow::new(
        "limits.compact_at",
        ValueKind::Percent,
        Combine::Replace,
        "Share of the context window, in percent, at which the conversation is summarized; 0 is never",
    )
    .with_key("compact_at", &["compact-at"], Access::Safe)
    .with_default(DefaultValue::Percent(CompactionPolicy::AUTOMATIC)),
    FieldRow::new(
        "limits.budget",
        ValueKind::Structure,
        Combine::Narrow,
        "Limits on tokens, cost, calls and time of a run, of the session, or of a day",
    )
    .with_flags(&["max-tokens", "max-cost", "max-calls", "max-time", "budget"])
    .with_access(Access::Safe)
    .with_default(DefaultValue::Description("no limit"))
    .with_sdk(&["claude --max-budget-usd"]),
    FieldRow::new(
        "limits.at_limit",
        ValueKind::Choice(&["stop", "ask"]),
        Combine::Replace,
        "Behaviour at a limit on tokens, cost or calls",
    )
    .with_flags(&["at-limit"])
    .with_default(DefaultValue::Value("stop")),
    FieldRow::new(
        "limits.unknown_price",
        ValueKind::Choice(&["refuse", "ask"]),
        Combine::Replace,
        "Behaviour under a limit on cost with a model whose price is unknown",
    )
    .with_flags(&["unknown-price"])
    .with_default(DefaultValue::Value("refuse")),
    FieldRow::new(
        "tools.toolset",
        ValueKind::Choice(&["native", "spec"]),
        Combine::Replace,
        "Toolset offered to the model",
    )
    .with_key("toolset", &["toolset"], Access::Safe)
    .with_default(DefaultValue::Value("native"))
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "tools.only",
        ValueKind::Structure,
        Combine::Narrow,
        "Names of the only tools that are offered, besides the tools of MCP servers",
    )
    .with_default(DefaultValue::Description("all"))
    .with_sdk(&["claude --tools"]),
    FieldRow::new("tools.servers", ValueKind::Structure, Combine::Append, "MCP servers")
        .with_access(Access::Trusted)
        .with_acp("mcpServers")
        .with_sdk(&["claude --mcp-config"]),
    FieldRow::new(
        "tools.server_files",
        ValueKind::Path,
        Combine::Replace,
        "Files that declare MCP servers, in the form of .mcp.json",
    )
    .with_flags(&["mcp-config"])
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "tools.use_servers",
        ValueKind::Switch,
        Combine::Replace,
        "Use of the MCP servers that files declare",
    )
    .with_flags(&["no-mcp"])
    .with_default(TRUE)
    .with_sdk(&["claude --strict-mcp-config"])
    .with_retention(FieldRetention::Always),
    FieldRow::new(
        "instructions.base",
        ValueKind::Text,
        Combine::Replace,
        "Text that replaces the base instructions of the profile",
    )
    .with_default(DefaultValue::Description("the profile's"))
    .with_sdk(&["claude --system-prompt", "claude --system-prompt-file"]),
    FieldRow::new(
        "instructions.extra",
        ValueKind::Text,
        Combine::Replace,
        "Text at the end of the system prompt",
    )
    .with_sdk(&["claude --append-system-prompt"]),
    FieldRow::new("persistence.keep", ValueKind::Switch, Combine::Replace, "Storage of the session")
        .with_flags(&["no-session"])
        .with_default(TRUE)
        .with_sdk(&["claude --no-session-persistence", "codex --ephemeral"]),
    FieldRow::new("persistence.id", ValueKind::Text, Combine::Replace, "Id of a new session")
        .with_default(DefaultValue::Description("generated"))
        .with_sdk(&["claude --session-id"]),
    FieldRow::new(
        "persistence.properties",
        ValueKind::Structure,
        Combine::Replace,
        "Additional properties of a new session in the store",
    ),
    FieldRow::new(
        "persistence.worktree",
        ValueKind::Choice(WorktreeBase::NAMES),
        Combine::Replace,
        "Base of the git worktree that belongs to the session",
    )
    .with_flags(&["worktree"]),
];

impl FieldRow {
    /// Returns the row of a field, by its path.
    #[must_use]
    pub fn find(path: &str) -> Option<&'static Self> {
        FIELDS.iter().find(|row| row.path == path)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pintle_governance::Mode;
    use serde_json::json;

    use super::*;
    use crate::spec::{PartialSpec, SandboxLevel};

    /// Returns the names of a choice.
    fn names(path: &str) -> BTreeSet<&'static str> {
        let ValueKind::Choice(names) = FieldRow::find(path).unwrap().kind else { panic!("{path}") };
        names.iter().copied().collect()
    }

    #[test]
    fn each_name_is_a_value_of_its_field() {
        for row in FIELDS {
            let ValueKind::Choice(names) = row.kind else { continue };
            let (section, field) = row.path.split_once('.').unwrap();
            for name in names {
                let spec: PartialSpec = serde_json::from_value(json!({ section: { field: name } })).unwrap();
                assert_eq!(spec.set_paths(), [row.path], "{name}");
            }
        }
    }

    #[test]
    fn each_value_has_its_name() {
        let sorted = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(names("environment.sandbox"), sorted(SandboxLevel::NAMES));
        assert_eq!(names("policy.mode"), sorted(&Mode::ALL.map(Mode::as_str)));
        let after_plan: BTreeSet<_> =
            Mode::ALL.into_iter().filter(|mode| *mode != Mode::Plan).map(Mode::as_str).collect();
        assert_eq!(names("policy.after_plan"), after_plan);
        assert_eq!(Provider::NAMES, Provider::ALL.map(Provider::name));
    }

    /// The flag of a key has its name.
    #[test]
    fn each_key_has_its_flag() {
        for row in FIELDS {
            let Some(key) = row.key else { continue };
            assert_eq!(row.flags.first(), Some(&key.replace('_', "-").as_str()));
        }
    }
}
