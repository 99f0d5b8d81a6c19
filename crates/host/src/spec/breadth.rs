//! Comparison of settings by how much they allow.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pintle_agent::Limits;
use pintle_governance::{Grant, Mode, ScopedLimits};

use super::values::{CountLimit, SandboxLevel};

/// Setting whose values allow more or less.
pub(crate) trait Breadth: Clone + PartialEq {
    /// Returns the widest value that neither of the two exceeds.
    ///
    /// The error names the part of `self` that exceeds the limit, if there is no such value.
    fn within(&self, limit: &Self) -> Result<Self, String>;

    /// Returns whether the value allows nothing that the limit does not allow.
    fn is_within(&self, limit: &Self) -> bool {
        self.within(limit).is_ok_and(|within| within == *self)
    }

    /// Returns whether no value allows less. `false` if the type has no such value.
    fn is_narrowest(&self) -> bool {
        false
    }

    /// Combines this value of a layer of the user with the value of a weaker layer of the user.
    fn over(&self, _weaker: &Self) -> Self {
        self.clone()
    }
}

impl Breadth for Mode {
    fn within(&self, limit: &Self) -> Result<Self, String> {
        Ok(if self.is_wider_than(*limit) { *limit } else { *self })
    }
}

impl Breadth for SandboxLevel {
    fn within(&self, limit: &Self) -> Result<Self, String> {
        Ok(*self.min(limit))
    }
}

/// A switch that turns a restriction on.
impl Breadth for bool {
    fn within(&self, limit: &Self) -> Result<Self, String> {
        Ok(*self || *limit)
    }
}

impl Breadth for CountLimit {
    fn within(&self, limit: &Self) -> Result<Self, String> {
        Ok(Self(self.get().into_iter().chain(limit.get()).min().unwrap_or(0)))
    }
}

impl Breadth for ScopedLimits {
    fn within(&self, limit: &Self) -> Result<Self, String> {
        Ok(self.zip_with(limit, Limits::lower))
    }

    fn over(&self, weaker: &Self) -> Self {
        self.zip_with(weaker, limits_over)
    }
}

impl Breadth for Grant {
    /// The narrower grant descends from the limit, so that revoking the limit or its epoch revokes it.
    fn within(&self, limit: &Self) -> Result<Self, String> {
        // Two grants have no common part as a grant if each allows something that the other does not.
        if let Some(axis) = limit.first_wider_axis(self) {
            return Err(axis.to_string());
        }
        let mut within = self.clone();
        within.ancestors.clone_from(&limit.ancestors);
        if within.id != limit.id {
            within.ancestors.push(limit.id.clone());
        }
        within.epoch = limit.epoch;
        within.issuers.clone_from(&limit.issuers);
        within.chain.clone_from(&limit.chain);
        Ok(within)
    }

    fn is_within(&self, limit: &Self) -> bool {
        limit.first_wider_axis(self).is_none()
    }
}

/// Directories with everything below them. The paths are absolute and have no `..`.
impl Breadth for BTreeSet<PathBuf> {
    fn within(&self, limit: &Self) -> Result<Self, String> {
        let below = |roots: &Self, path: &PathBuf| roots.iter().any(|root| path.starts_with(root));
        let ours = self.iter().filter(|path| below(limit, path));
        let theirs = limit.iter().filter(|path| below(self, path));
        Ok(ours.chain(theirs).cloned().collect())
    }

    fn is_within(&self, limit: &Self) -> bool {
        self.iter().all(|path| limit.iter().any(|root| path.starts_with(root)))
    }
}

/// Names of the only available items.
impl Breadth for BTreeSet<String> {
    fn within(&self, limit: &Self) -> Result<Self, String> {
        Ok(self.intersection(limit).cloned().collect())
    }
}

/// Returns limits on each amount: the stronger one, or else the weaker one.
fn limits_over(stronger: &Limits, weaker: &Limits) -> Limits {
    let mut limits = *stronger;
    limits.tokens = limits.tokens.or(weaker.tokens);
    limits.cost = limits.cost.or(weaker.cost);
    limits.wall_time = limits.wall_time.or(weaker.wall_time);
    limits.tool_calls = limits.tool_calls.or(weaker.tool_calls);
    limits
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use pintle_governance::GrantId;

    use super::*;
    use crate::spec::NetworkAccess;

    /// Checks two values of which the first allows less, or that each is within the other if they are equal.
    fn check<T: Breadth + fmt::Debug>(narrow: &T, wide: &T) {
        assert!(narrow.is_within(narrow) && wide.is_within(wide), "{narrow:?} {wide:?}");
        assert!(narrow.is_within(wide) && !wide.is_within(narrow), "{narrow:?} {wide:?}");
        assert_eq!(narrow.within(wide).as_ref(), Ok(narrow));
    }

    #[test]
    fn values_are_ordered_by_what_they_allow() {
        for modes in Mode::ALL.windows(2) {
            check(&modes[0], &modes[1]);
        }
        for levels in
            [SandboxLevel::Full, SandboxLevel::Auto, SandboxLevel::Writes, SandboxLevel::Off].windows(2)
        {
            check(&levels[0], &levels[1]);
        }
        check(&NetworkAccess::Off, &NetworkAccess::On);
        check(&true, &false);
        check(&CountLimit(3), &CountLimit(4));
        check(&CountLimit(3), &CountLimit::NONE);
        let tokens = |tokens| ScopedLimits::default().with_session(Limits::default().with_tokens(tokens));
        check(&tokens(3), &tokens(4));
        check(&tokens(3), &ScopedLimits::default());
        let roots = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        check(&roots(&["/w/a"]), &roots(&["/w"]));
        check(&roots(&["/w", "/w/a"]), &roots(&["/v", "/w"]));
        check(&roots(&[]), &roots(&["/w"]));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        check(&names(&["a"]), &names(&["a", "b"]));
        check(&Grant::none(GrantId::new("g")), &Grant::all(GrantId::new("g")));
    }

    #[test]
    fn the_common_part_is_within_both() {
        let roots = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        let common = roots(&["/a", "/b/c", "/work"]).within(&roots(&["/a/b", "/b", "/w"]));
        assert_eq!(common, Ok(roots(&["/a/b", "/b/c"])));
        let budget = |tokens: Option<u64>, calls: Option<u64>| {
            let mut session = Limits::default();
            (session.tokens, session.tool_calls) = (tokens, calls);
            ScopedLimits::default().with_session(session)
        };
        assert_eq!(budget(Some(9), None).within(&budget(Some(7), Some(2))), Ok(budget(Some(7), Some(2))));
        assert_eq!(budget(Some(9), None).over(&budget(Some(7), Some(2))), budget(Some(9), Some(2)));
    }

    #[test]
    fn a_wider_grant_is_refused_with_the_axis() {
        let (all, none) = (Grant::all(GrantId::new("all")), Grant::none(GrantId::new("none")));
        assert_eq!(all.within(&none), Err(none.first_wider_axis(&all).unwrap().to_string()));
    }
}
