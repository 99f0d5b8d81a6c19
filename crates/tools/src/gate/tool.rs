//! A gate with rules by tool.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{Gate, Permission, Verdict};
use crate::call::PreparedCall;

/// Rules by tool.
///
/// A rule names a tool, or a canonical kind, so that a rule for `shell` applies to a tool called `Bash`. Rules for the
/// name come first. Calls without a rule may run, unless [`ToolGate::otherwise`] sets another permission.
#[derive(Clone, Debug)]
pub struct ToolGate {
    rules: BTreeMap<String, Permission>,
    otherwise: Permission,
}

impl ToolGate {
    /// A gate that allows every call.
    #[must_use]
    pub fn new() -> Self {
        Self { rules: BTreeMap::new(), otherwise: Permission::Allow }
    }

    /// Sets the permission of the tool with this name or kind.
    #[must_use]
    pub fn with(mut self, tool: impl Into<String>, permission: Permission) -> Self {
        self.rules.insert(tool.into(), permission);
        self
    }

    /// Sets the permission of tools without a rule.
    #[must_use]
    pub fn otherwise(mut self, permission: Permission) -> Self {
        self.otherwise = permission;
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
    fn name(&self) -> &'static str {
        "tool"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        let rule = self.rules.get(call.name()).or_else(|| self.rules.get(call.kind()));
        let permission = rule.copied().unwrap_or(self.otherwise);
        permission.verdict(|| match permission {
            Permission::Deny => format!("the tool {} may not be used here", call.name()),
            Permission::Allow | Permission::Ask => format!("the tool {} is called", call.name()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::probe::{Probe, call, denies};
    use crate::tool::Effect;

    #[tokio::test]
    async fn a_rule_for_the_name_precedes_the_kind() {
        let gate = || ToolGate::new().with("Bash", Permission::Allow).with("shell", Permission::Deny);
        let strict = gate().otherwise(Permission::Ask);
        let cases = [
            ("Bash", "shell", Verdict::ALLOW, Verdict::ALLOW),
            (
                "run_shell_command",
                "shell",
                denies("the tool run_shell_command may not be used here"),
                denies("the tool run_shell_command may not be used here"),
            ),
            ("grep", "grep", Verdict::ALLOW, Verdict::ask("the tool grep is called")),
            ("bash", "bash", Verdict::ALLOW, Verdict::ask("the tool bash is called")),
        ];
        for (name, kind, lax, expected) in cases {
            let call = call(Probe::new(name, Effect::Read).kind(kind), serde_json::json!({})).await;
            assert_eq!((gate().check(&call).await, strict.check(&call).await), (lax, expected), "{name}");
        }
    }
}
