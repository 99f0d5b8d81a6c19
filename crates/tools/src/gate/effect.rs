//! By effect.

use async_trait::async_trait;

use super::{Gate, Ruling, Verdict};
use crate::pipeline::PreparedCall;
use crate::tool::Effect;

/// Rules by what a call does to the world. Without a rule every call may run.
#[derive(Clone, Copy, Debug)]
pub struct EffectGate {
    read: Ruling,
    write: Ruling,
    execute: Ruling,
    network: Ruling,
}

impl EffectGate {
    /// A gate that lets everything pass.
    #[must_use]
    pub fn new() -> Self {
        Self { read: Ruling::Allow, write: Ruling::Allow, execute: Ruling::Allow, network: Ruling::Allow }
    }

    /// With this ruling on calls of this effect.
    #[must_use]
    pub fn with(mut self, effect: Effect, ruling: Ruling) -> Self {
        *match effect {
            Effect::Read => &mut self.read,
            Effect::Write => &mut self.write,
            Effect::Execute => &mut self.execute,
            Effect::Network => &mut self.network,
        } = ruling;
        self
    }

    fn ruling(&self, effect: Effect) -> Ruling {
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
    async fn check(&self, call: &PreparedCall) -> Verdict {
        let effect = call.effect();
        self.ruling(effect).verdict(|| {
            let does = match effect {
                Effect::Read => "reads",
                Effect::Write => "changes files",
                Effect::Execute => "runs a command",
                Effect::Network => "reaches other machines",
            };
            format!("the call {does}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::workbench::{call, denies, doing};

    #[tokio::test]
    async fn each_effect_has_its_ruling() {
        let gate = EffectGate::new().with(Effect::Write, Ruling::Ask).with(Effect::Execute, Ruling::Deny);
        let rows = [
            (Effect::Read, Verdict::Allow),
            (Effect::Write, Verdict::Ask { reason: "the call changes files".into() }),
            (Effect::Execute, denies("the call runs a command")),
            (Effect::Network, Verdict::Allow),
        ];
        for (effect, expected) in rows {
            let call = call(doing(effect), serde_json::json!({})).await;
            assert_eq!(gate.check(&call).await, expected, "{effect:?}");
            assert_eq!(EffectGate::default().check(&call).await, Verdict::Allow, "{effect:?}");
        }
    }
}
