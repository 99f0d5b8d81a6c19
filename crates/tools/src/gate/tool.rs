//! By tool.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{Gate, Ruling, Verdict};
use crate::pipeline::PreparedCall;

/// Rules by the tool that is called.
///
/// A rule names a tool as the model calls it, or a canonical kind, so that a rule for `shell` holds for one that is
/// called `Bash`. The name is looked up first. Without a rule a call may run, unless [`ToolGate::otherwise`] says
/// something else.
#[derive(Clone, Debug)]
pub struct ToolGate {
    rules: BTreeMap<String, Ruling>,
    otherwise: Ruling,
}

impl ToolGate {
    /// A gate that lets everything pass.
    #[must_use]
    pub fn new() -> Self {
        Self { rules: BTreeMap::new(), otherwise: Ruling::Allow }
    }

    /// With this ruling on calls of the tool of this name or kind.
    #[must_use]
    pub fn with(mut self, tool: impl Into<String>, ruling: Ruling) -> Self {
        self.rules.insert(tool.into(), ruling);
        self
    }

    /// With this ruling on tools that no rule names.
    #[must_use]
    pub fn otherwise(mut self, ruling: Ruling) -> Self {
        self.otherwise = ruling;
        self
    }
}

impl Default for ToolGate {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Gate for ToolGate {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        let rule = self.rules.get(call.name()).or_else(|| self.rules.get(call.kind()));
        let ruling = rule.copied().unwrap_or(self.otherwise);
        ruling.verdict(|| match ruling {
            Ruling::Deny => format!("the tool {} may not be used here", call.name()),
            Ruling::Allow | Ruling::Ask => format!("the tool {} is called", call.name()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::workbench::{Probe, call, denies};
    use crate::tool::Effect;

    #[tokio::test]
    async fn the_name_comes_before_the_kind_and_both_before_the_rest() {
        let gate = || ToolGate::new().with("Bash", Ruling::Allow).with("shell", Ruling::Deny);
        let strict = gate().otherwise(Ruling::Ask);
        let rows = [
            ("Bash", "shell", Verdict::Allow, Verdict::Allow),
            (
                "run_shell_command",
                "shell",
                denies("the tool run_shell_command may not be used here"),
                denies("the tool run_shell_command may not be used here"),
            ),
            ("grep", "grep", Verdict::Allow, Verdict::Ask { reason: "the tool grep is called".into() }),
            ("bash", "bash", Verdict::Allow, Verdict::Ask { reason: "the tool bash is called".into() }),
        ];
        for (name, kind, lax, with_rest) in rows {
            let call = call(Probe::new(name, Effect::Read).kind(kind), serde_json::json!({})).await;
            assert_eq!((gate().check(&call).await, strict.check(&call).await), (lax, with_rest), "{name}");
        }
    }
}
