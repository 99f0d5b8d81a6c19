//! The settings of a session by path, and the same settings as its parts receive them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::budget::BudgetChoice;
use crate::env_spec::EnvironmentChoice;
use crate::environment::Confinement;
use crate::named_value::NamedValue as _;
use crate::policy::PolicyChoice;
use crate::route::ModelChoice;
use crate::session_limits::SessionLimits;
use crate::spec::{BaseUrl, SessionSpec};
use crate::toolset::ToolsetChoice;

/// Paths of the settings that given settings, files and variables determine.
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

/// Returns the settings as the parts of a session receive them.
pub(super) fn of_choices(spec: &SessionSpec) -> BTreeMap<&'static str, Json> {
    let model = ModelChoice::try_from(spec).unwrap();
    let environment = EnvironmentChoice::try_from(spec).unwrap();
    let Confinement { level, network, confine } = spec.into();
    let policy = PolicyChoice::from(spec);
    let BudgetChoice { limits: budget, at_limit, unknown_price } = spec.into();
    let session = SessionLimits::from(spec);
    let base_url = model.base_url.as_ref().map(BaseUrl::as_str);
    let network = match spec.environment.hosts() {
        Some(hosts) => json(hosts),
        None => json(&network.map(|is_on| if is_on { "on" } else { "off" })),
    };
    let mut settings = of_spec(spec);
    settings.extend([
        ("model.provider", json(&model.provider.map(|provider| provider.value_name()))),
        ("model.name", json(&model.model)),
        ("model.base_url", json(&base_url)),
        ("model.script", json(&model.script)),
        ("model.dialect", json(&model.dialect.map(|dialect| dialect.name()))),
        ("model.profile", model.profile.as_ref().map_or(Json::Null, |file| json!({"file": file}))),
        ("model.timeout", json(&session.model_timeout)),
        ("model.catalog", json(&model.catalog)),
        ("environment.kind", json(&environment.spec.to_string())),
        ("environment.dir", json(&environment.directory)),
        ("environment.sandbox", json(&level)),
        ("environment.network", network),
        ("environment.confine", json(&confine)),
        ("policy.mode", json(&policy.mode)),
        ("policy.allow", json(&policy.allow)),
        ("policy.deny", json(&policy.deny)),
        ("limits.max_turns", json(&session.max_turns)),
        ("limits.max_tool_rounds", json(&session.max_tool_rounds)),
        ("limits.compact_at", json(&session.compact_at)),
        ("limits.budget", limits(&json(&budget))),
        ("limits.at_limit", json(&at_limit)),
        ("limits.unknown_price", json(&unknown_price)),
        ("tools.toolset", json(&ToolsetChoice::from(spec).toolset)),
    ]);
    settings
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
