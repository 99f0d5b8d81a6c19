//! The settings of a session by path, from both of their forms.

use std::collections::BTreeMap;

use pintle_agent::Toolset;
use pintle_governance::{BudgetLimits, Mode};
use pintle_host::SessionSpec;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::arguments::RunArgs;
use crate::budget::BudgetChoice;
use crate::environment::Confinement;
use crate::named_value::NamedValue as _;
use crate::process_env::ProcessEnv;

/// Paths of the settings that flags, files and variables determine.
const PATHS: &[&str] = &[
    "model.provider",
    "model.name",
    "model.base_url",
    "model.script",
    "model.dialect",
    "model.profile",
    "model.reasoning_effort",
    "model.timeout",
    "model.catalog",
    "environment.kind",
    "environment.dir",
    "environment.sandbox",
    "environment.network",
    "environment.confine",
    "policy.mode",
    "policy.after_plan",
    "policy.allow",
    "policy.deny",
    "policy.wait_approval",
    "policy.read_before_write",
    "limits.max_turns",
    "limits.max_tool_rounds",
    "limits.compact_at",
    "limits.budget",
    "limits.at_limit",
    "limits.unknown_price",
    "tools.toolset",
    "tools.server_files",
    "tools.use_servers",
    "persistence.keep",
    "persistence.worktree",
];

pub(super) fn of_spec(spec: &SessionSpec) -> BTreeMap<&'static str, Json> {
    let all = json(spec);
    let value = |path: &'static str| {
        let value = all.pointer(&format!("/{}", path.replace('.', "/"))).cloned().unwrap_or_default();
        match path {
            // The values of a named profile are settings themselves.
            "model.profile" if value.get("name").is_some() => Json::Null,
            "limits.budget" => limits(&value),
            _ => value,
        }
    };
    PATHS.iter().copied().map(|path| (path, value(path))).collect()
}

pub(super) fn of_flags(args: &RunArgs, process_env: &ProcessEnv) -> BTreeMap<&'static str, Json> {
    let Confinement { level, network, confine } = (&args.confinement).into();
    let model = &args.model;
    // The variable is read where the catalog is.
    let catalog = json(&model.catalog.catalog);
    let catalog = if catalog.is_null() { json(&process_env.variable("PINTLE_CATALOG")) } else { catalog };
    let choice = BudgetChoice::from(&args.budget);
    let mut budget = BudgetLimits::default();
    choice.apply(&mut budget).unwrap();
    let budget = json!({"run": budget.run, "session": budget.session, "day": budget.day});
    #[cfg(feature = "mcp")]
    let (server_files, use_servers) = (json(&args.servers.mcp_config), !args.servers.no_mcp);
    #[cfg(not(feature = "mcp"))]
    let (server_files, use_servers) = (json!([]), true);
    let pairs = [
        ("model.provider", json(&model.provider.map(|provider| provider.value_name()))),
        ("model.name", json(&model.model)),
        ("model.base_url", json(&model.base_url)),
        ("model.script", json(&model.script)),
        ("model.dialect", json(&model.dialect.map(|dialect| dialect.name()))),
        ("model.profile", model.profile.as_ref().map_or(Json::Null, |file| json!({"file": file}))),
        ("model.reasoning_effort", json(&model.reasoning_effort)),
        ("model.timeout", json(&model.timeout)),
        ("model.catalog", catalog),
        ("environment.kind", json(&args.environment.env.to_string())),
        ("environment.dir", json(&args.environment.dir)),
        ("environment.sandbox", json(&level.value_name())),
        ("environment.network", json(&network.map(|is_on| if is_on { "on" } else { "off" }))),
        ("environment.confine", json(&confine)),
        ("policy.mode", json(&args.policy.mode.unwrap_or(Mode::Auto))),
        ("policy.after_plan", json(&args.policy.after_plan.unwrap_or(Mode::Edit))),
        ("policy.allow", json(&args.policy.allow)),
        ("policy.deny", json(&args.policy.deny)),
        ("policy.wait_approval", json(&args.wait_approval)),
        ("policy.read_before_write", json(&args.confinement.read_before_write)),
        ("limits.max_turns", json(&args.max_turns)),
        ("limits.max_tool_rounds", json(&args.max_tool_rounds)),
        ("limits.compact_at", json(&args.compact_at)),
        ("limits.budget", limits(&budget)),
        ("limits.at_limit", json(&choice.at_limit.unwrap_or_default())),
        ("limits.unknown_price", json(&choice.unknown_price.unwrap_or_default())),
        ("tools.toolset", json(&Toolset::from(args.toolset))),
        ("tools.server_files", server_files),
        ("tools.use_servers", json(&use_servers)),
        ("persistence.keep", json(&!args.session.no_session)),
        ("persistence.worktree", json(&args.session.worktree.map(|base| base.value_name()))),
    ];
    pairs.into_iter().collect()
}

fn json(value: &impl Serialize) -> Json {
    serde_json::to_value(value).unwrap()
}

/// Returns the limits of a budget that are set, such as `session.tokens=5`.
fn limits(budget: &Json) -> Json {
    let scopes = budget.as_object().into_iter().flatten();
    let all = scopes.flat_map(|(scope, limits)| {
        let limits = limits.as_object().into_iter().flatten().filter(|(_, limit)| !limit.is_null());
        limits.map(move |(key, limit)| format!("{scope}.{key}={limit}"))
    });
    let mut all: Vec<String> = all.collect();
    all.sort();
    json!(all)
}
