//! Grants for subagents.

use std::collections::BTreeSet;

use pintle_agent::Limits;

use super::{Delegation, Grant};
use crate::pattern::Pattern;

/// Part of a grant that another grant must not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Axis {
    /// The form itself: version, ancestors, paths or pointers are invalid.
    Form,
    /// The session.
    Session,
    /// Generation.
    Epoch,
    /// Tools.
    Tools,
    /// Limits on arguments.
    Arguments,
    /// Paths that may be read.
    Reads,
    /// Paths that may be changed.
    Writes,
    /// Highest effect.
    Effect,
    /// Other machines.
    Network,
    /// Commands outside of the sandbox.
    OutsideSandbox,
    /// Environments.
    Environments,
    /// Spending limits.
    Budget,
    /// Time.
    Window,
    /// Subagents.
    Delegation,
}

impl Axis {
    fn words(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Session => "session",
            Self::Epoch => "epoch",
            Self::Tools => "tools",
            Self::Arguments => "arguments",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Effect => "effect",
            Self::Network => "network",
            Self::OutsideSandbox => "outside_sandbox",
            Self::Environments => "environments",
            Self::Budget => "budget",
            Self::Window => "window",
            Self::Delegation => "delegation",
        }
    }
}

impl std::fmt::Display for Axis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.words())
    }
}

/// Reason why a grant cannot be attenuated from another grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the grant exceeds its parent's grant: {axis}")]
#[non_exhaustive]
pub struct Attenuation {
    /// The part that exceeds the parent's.
    pub axis: Axis,
}

impl Grant {
    /// Returns `child` as an attenuation of this grant: with its ancestors, and with fewer generations of subagents.
    ///
    /// Spent amounts are not subtracted here: a session [reserves](pintle_agent::Limits) the budget of a subagent.
    ///
    /// # Errors
    ///
    /// The first axis on which `child` would allow something that this grant does not.
    pub fn attenuate(&self, mut child: Self) -> Result<Self, Attenuation> {
        child.ancestors = self.ancestors.iter().chain([&self.id]).cloned().collect();
        child.epoch = self.epoch;
        child.issuers.clone_from(&self.issuers);
        child.chain.clone_from(&self.chain);
        match self.exceeded_by(&child) {
            Some(axis) => Err(Attenuation { axis }),
            None => Ok(child),
        }
    }

    /// Returns the first axis on which `child` allows something that this grant does not allow a subagent.
    #[must_use]
    pub fn exceeded_by(&self, child: &Self) -> Option<Axis> {
        let is_form = child.version == Self::VERSION && child.check().is_ok();
        let descends = child.ancestors.len() > self.ancestors.len()
            && child.ancestors.starts_with(&self.ancestors)
            && child.ancestors.get(self.ancestors.len()) == Some(&self.id)
            && !child.ancestors.contains(&child.id)
            && child.issuers.starts_with(&self.issuers);
        let of_child = [
            (Axis::Form, is_form && descends),
            // A subagent has a separate session, so the child of a grant for one session must name a session as well.
            (Axis::Session, self.session.is_none() || child.session.is_some()),
            (Axis::Epoch, child.epoch == self.epoch),
        ];
        let delegation = (Axis::Delegation, self.delegation.covers(child.delegation));
        first_exceeded(of_child.into_iter().chain(self.shared_axes(child)).chain([delegation]))
    }

    /// Returns the first axis on which `next` exceeds this grant, for a session that resumes with another grant. Unlike a
    /// subagent, the session keeps its generation.
    #[must_use]
    pub fn first_wider_axis(&self, next: &Self) -> Option<Axis> {
        let Delegation { depth, width } = next.delegation;
        let of_session = [
            (Axis::Form, next.version == Self::VERSION && next.check().is_ok()),
            (Axis::Session, self.session.is_none() || next.session == self.session),
            (Axis::Epoch, next.epoch >= self.epoch),
        ];
        let is_within = depth <= self.delegation.depth && width <= self.delegation.width;
        let compared = of_session.into_iter().chain(self.shared_axes(next));
        first_exceeded(compared.chain([(Axis::Delegation, is_within)]))
    }

    /// Returns whether another grant stays within this one on the axes that apply equally to subagents and resumed sessions.
    fn shared_axes(&self, other: &Self) -> [(Axis, bool); 10] {
        [
            (Axis::Tools, covers(&self.tools, &other.tools)),
            (Axis::Arguments, self.arguments.iter().all(|scope| scope.is_kept_by(other))),
            (Axis::Reads, self.reads.covers(&other.reads)),
            (Axis::Writes, self.writes.covers(&other.writes)),
            (Axis::Effect, other.effect <= self.effect),
            (Axis::Network, other.network.is_within(&self.network)),
            (Axis::OutsideSandbox, self.outside_sandbox || !other.outside_sandbox),
            (Axis::Environments, covers(&self.environments, &other.environments)),
            (Axis::Budget, covers_limits(&self.budget, &other.budget)),
            (Axis::Window, self.window.covers(&other.window)),
        ]
    }
}

fn first_exceeded(axes: impl IntoIterator<Item = (Axis, bool)>) -> Option<Axis> {
    axes.into_iter().find_map(|(axis, is_within)| (!is_within).then_some(axis))
}

fn covers(wide: &BTreeSet<Pattern>, narrow: &BTreeSet<Pattern>) -> bool {
    narrow.iter().all(|pattern| wide.iter().any(|wide| wide.covers(pattern)))
}

fn covers_limits(wide: &Limits, narrow: &Limits) -> bool {
    fn within<T: PartialOrd>(limit: Option<T>, of: Option<T>) -> bool {
        limit.is_none_or(|limit| of.is_some_and(|of| of <= limit))
    }
    within(wide.tokens, narrow.tokens)
        && within(wide.cost, narrow.cost)
        && within(wide.wall_time, narrow.wall_time)
        && within(wide.tool_calls, narrow.tool_calls)
}

impl super::Window {
    fn covers(&self, child: &Self) -> bool {
        self.not_before.is_none_or(|start| child.not_before.is_some_and(|of| of >= start))
            && self.not_after.is_none_or(|end| child.not_after.is_some_and(|of| of <= end))
    }
}

impl Delegation {
    fn covers(self, child: Self) -> bool {
        self.depth > 0 && self.width > 0 && child.depth < self.depth && child.width <= self.width
    }
}
