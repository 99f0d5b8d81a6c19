//! Counts over the calls of a session.

use std::collections::{BTreeMap, BTreeSet};

use pintle_agent::protocol::CallKind;
use pintle_tools::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{CallHistory, CallOutcome};

/// Counts over the calls of a session, without its subagents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Summary {
    /// Calls by tool and outcome.
    pub calls: Vec<ToolCount>,
    /// Calls that a gate, a person or the lack of a decision kept from running.
    pub refused: Vec<RefusedCall>,
    /// Files that file tools changed. What commands change is not listed: checkpoints have it.
    pub files: Vec<FileCount>,
    /// Hosts in the arguments of calls that fetched. What commands reach is not listed.
    pub hosts: Vec<HostCount>,
}

/// Calls of a tool with one outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ToolCount {
    /// Name of the tool.
    pub tool: String,
    /// Outcome.
    pub outcome: CallOutcome,
    /// Number of calls.
    pub calls: u64,
}

/// Call that was kept from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RefusedCall {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Outcome.
    pub outcome: CallOutcome,
    /// Gate and rule that denied it or asked about it, if the record names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// File that calls changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct FileCount {
    /// The file, as the calls named it.
    pub path: String,
    /// Number of calls that changed it.
    pub calls: u64,
    /// Number of lines that were added.
    pub added: u64,
    /// Number of lines that were removed.
    pub removed: u64,
}

/// Host that calls reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct HostCount {
    /// The host, with its port if that was given.
    pub host: String,
    /// Number of calls.
    pub calls: u64,
}

impl Summary {
    /// Counts these calls.
    pub(super) fn from_calls(calls: &[CallHistory]) -> Self {
        let mut tools: BTreeMap<(&str, CallOutcome), u64> = BTreeMap::new();
        let mut files: BTreeMap<&str, FileCount> = BTreeMap::new();
        let mut hosts: BTreeMap<String, u64> = BTreeMap::new();
        for call in calls {
            *tools.entry((&call.proposal.tool, call.outcome)).or_default() += 1;
            for edit in call.execution.iter().flat_map(|execution| &execution.changes) {
                let file = files.entry(&edit.path).or_insert_with(|| FileCount {
                    path: edit.path.clone(),
                    calls: 0,
                    added: 0,
                    removed: 0,
                });
                file.calls += 1;
                file.added += edit.added;
                file.removed += edit.removed;
            }
            for host in hosts_of(call) {
                *hosts.entry(host).or_default() += 1;
            }
        }
        let tools = tools.into_iter();
        Self {
            calls: tools
                .map(|((tool, outcome), calls)| ToolCount { tool: tool.to_owned(), outcome, calls })
                .collect(),
            refused: calls
                .iter()
                .filter(|call| call.outcome.is_refused())
                .map(RefusedCall::from_call)
                .collect(),
            files: files.into_values().collect(),
            hosts: hosts.into_iter().map(|(host, calls)| HostCount { host, calls }).collect(),
        }
    }
}

impl RefusedCall {
    fn from_call(call: &CallHistory) -> Self {
        let rule = call.decisive_step().map(|step| match &step.rule {
            Some(rule) => format!("{}: {rule}", step.gate),
            None => step.gate.clone(),
        });
        Self { call_id: call.call_id.clone(), tool: call.proposal.tool.clone(), outcome: call.outcome, rule }
    }
}

/// Returns the hosts in the arguments of a call that fetched.
fn hosts_of(call: &CallHistory) -> BTreeSet<String> {
    let fetches = call.proposal.kind == CallKind::Fetch || call.proposal.effect == Some(Effect::Network);
    let mut hosts = BTreeSet::new();
    if fetches && call.execution.is_some() {
        collect_hosts(call.arguments(), &mut hosts);
    }
    hosts
}

fn collect_hosts(value: &Value, hosts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => hosts.extend(host_of(text)),
        Value::Array(values) => values.iter().for_each(|value| collect_hosts(value, hosts)),
        Value::Object(members) => members.values().for_each(|value| collect_hosts(value, hosts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the host of a URL, with its port.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let is_scheme = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    // The part before the last `@` is a user name with a password.
    let host = authority.rsplit('@').next()?;
    (is_scheme && !scheme.is_empty() && !host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_those_of_urls() {
        let cases = [
            ("https://Example.org/a?b#c", Some("example.org")),
            ("http://user:pw@example.org:8080", Some("example.org:8080")),
            ("https://evil.org\\@good.org/", Some("evil.org")),
            ("example.org/a", None),
            ("see https://example.org", None),
            ("https://", None),
        ];
        for (url, expected) in cases {
            assert_eq!(host_of(url).as_deref(), expected, "{url}");
        }
    }
}
