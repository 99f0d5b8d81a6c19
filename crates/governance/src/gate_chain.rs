//! The order of the gates of a session.

use std::sync::Arc;

use pintle_tools::gate::Gate;

/// Position of a gate in a [`GateChain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GatePosition {
    /// The [grant](crate::GrantGate), which no approval can exceed.
    Grant,
    /// [Files that tools must not touch](crate::HiddenPathGate).
    Hidden,
    /// [Protected files](pintle_tools::gate::ProtectedPathGate), such as git hooks, from which programs run later.
    Protected,
    /// [Files that the model has not read](pintle_tools::gate::ReadBeforeWrite).
    ReadBeforeWrite,
    /// [Rules and mode](crate::PolicyGate), the only gate that asks by default.
    Policy,
    /// The [watch](crate::ProtectedPathWatch) on the effects of commands, which compares files around the calls that the
    /// other gates have not denied.
    Watch,
}

impl GatePosition {
    /// All positions, in the order in which their gates judge a call. The first denial ends the judgement.
    pub const ORDER: &'static [Self] =
        &[Self::Grant, Self::Hidden, Self::Protected, Self::ReadBeforeWrite, Self::Policy, Self::Watch];
}

/// Gates by position. They judge in the [order of the positions](GatePosition::ORDER), whatever the order in which they
/// were added. Gates at the same position judge in the order in which they were added.
///
/// Sessions, the MCP server and checks of single calls use the same chain. A position may be empty.
///
/// ```
/// use std::sync::Arc;
/// use pintle_env::MemoryEnvironment;
/// use pintle_governance::{GateChain, GatePosition, HiddenPathGate};
/// use pintle_tools::gate::ReadBeforeWrite;
///
/// let env = Arc::new(MemoryEnvironment::new("/w"));
/// let chain = GateChain::new()
///     .with_gate(GatePosition::ReadBeforeWrite, ReadBeforeWrite::new(env.clone()))
///     .with_gate(GatePosition::Hidden, HiddenPathGate::new(env, ["/w/keys"]));
/// let names: Vec<&str> = chain.in_order().iter().map(|gate| gate.name()).collect();
/// assert_eq!(names, ["hidden_paths", "read_before_write"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct GateChain {
    gates: Vec<(GatePosition, Arc<dyn Gate>)>,
}

impl GateChain {
    /// Creates a chain without gates.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a gate at a position.
    #[must_use]
    pub fn with_gate(mut self, position: GatePosition, gate: impl Gate + 'static) -> Self {
        self.gates.push((position, Arc::new(gate)));
        self
    }

    /// Adds the gates of another chain.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.gates.extend(other.gates);
        self
    }

    /// Removes the gates of a position, for tests in which an attack succeeds without them.
    #[cfg(test)]
    pub(crate) fn without(mut self, position: GatePosition) -> Self {
        self.gates.retain(|(at, _)| *at != position);
        self
    }

    /// Returns the gates in the order in which they judge.
    #[must_use]
    pub fn in_order(&self) -> Vec<Arc<dyn Gate>> {
        let at = |position: GatePosition| self.gates.iter().filter(move |(at, _)| *at == position);
        GatePosition::ORDER
            .iter()
            .flat_map(|position| at(*position))
            .map(|(_, gate)| Arc::clone(gate))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use pintle_tools::gate::Verdict;
    use pintle_tools::pipeline::PreparedCall;

    use super::*;

    #[derive(Debug)]
    struct NamedGate(&'static str);

    #[async_trait]
    impl Gate for NamedGate {
        fn name(&self) -> &'static str {
            self.0
        }

        async fn check(&self, _call: &PreparedCall) -> Verdict {
            Verdict::ALLOW
        }
    }

    fn names(chain: &GateChain) -> Vec<&'static str> {
        chain.in_order().iter().map(|gate| gate.name()).collect()
    }

    #[test]
    fn gates_judge_in_the_order_of_their_positions() {
        let chain = GateChain::new()
            .with_gate(GatePosition::Watch, NamedGate("watch"))
            .with_gate(GatePosition::Policy, NamedGate("policy"))
            .with_gate(GatePosition::ReadBeforeWrite, NamedGate("read"))
            .with_gate(GatePosition::Protected, NamedGate("protected"))
            .with_gate(GatePosition::Hidden, NamedGate("hidden"))
            .with_gate(GatePosition::Grant, NamedGate("grant"))
            .and(GateChain::new().with_gate(GatePosition::Policy, NamedGate("second policy")));
        let expected = ["grant", "hidden", "protected", "read", "policy", "second policy", "watch"];
        assert_eq!(names(&chain), expected);
        let without = chain.without(GatePosition::Policy);
        assert_eq!(names(&without), ["grant", "hidden", "protected", "read", "watch"]);
    }
}
