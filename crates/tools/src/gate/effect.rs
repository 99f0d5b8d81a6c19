//! A gate with rules by side effect.

use async_trait::async_trait;

use super::{Gate, Permission, Verdict};
use crate::call::PreparedCall;
use crate::tool::Effect;

/// Rules by the side effect of a call. Calls without a rule may run.
#[derive(Clone, Copy, Debug)]
pub struct EffectGate {
    read: Permission,
    write: Permission,
    execute: Permission,
    network: Permission,
}

impl EffectGate {
    /// Creates a gate that allows every call.
    #[must_use]
    pub fn new() -> Self {
        Self {
            read: Permission::Allow,
            write: Permission::Allow,
            execute: Permission::Allow,
            network: Permission::Allow,
        }
    }

    /// Sets the permission of calls with this effect.
    #[must_use]
    pub fn with_permission(mut self, effect: Effect, permission: Permission) -> Self {
        *match effect {
            Effect::Read => &mut self.read,
            Effect::Write => &mut self.write,
            Effect::Execute => &mut self.execute,
            Effect::Network => &mut self.network,
        } = permission;
        self
    }

    fn permission(&self, effect: Effect) -> Permission {
        match effect {
            Effect::Read => self.read,
            Effect::Write => self.write,
            Effect::Execute => self.execute,
            Effect::Network => self.network,
        }
    }
}

impl Default for EffectGate {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Gate for EffectGate {
    fn name(&self) -> &'static str {
        "effect"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        let effect = call.effect();
        self.permission(effect).verdict(|| {
            let action = match effect {
                Effect::Read => "reads",
                Effect::Write => "changes files",
                Effect::Execute => "runs a command",
                Effect::Network => "reaches other machines",
            };
            format!("the call {action}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::probe::{call, denies, probe};

    #[tokio::test]
    async fn each_effect_has_its_permission() {
        let gate = EffectGate::new()
            .with_permission(Effect::Write, Permission::Ask)
            .with_permission(Effect::Execute, Permission::Deny);
        let cases = [
            (Effect::Read, Verdict::ALLOW),
            (Effect::Write, Verdict::ask("the call changes files")),
            (Effect::Execute, denies("the call runs a command")),
            (Effect::Network, Verdict::ALLOW),
        ];
        for (effect, expected) in cases {
            let call = call(probe(effect), serde_json::json!({})).await;
            assert_eq!(gate.check(&call).await, expected, "{effect:?}");
            assert_eq!(EffectGate::default().check(&call).await, Verdict::ALLOW, "{effect:?}");
        }
    }
}
