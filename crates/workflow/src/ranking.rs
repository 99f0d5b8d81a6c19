//! Ranking of candidates: evidence first, then the smaller diff, then the lower cost.

use pintle_agent::Money;

use crate::evidence::Proof;

/// A proved candidate.
#[derive(Clone, Copy, Debug)]
pub struct ProvedCandidate<'a> {
    /// Its number, from 0.
    pub candidate: usize,
    /// Its proof.
    pub proof: &'a Proof,
    /// Cost. `None` if a price is unknown, which ranks after any known cost.
    pub cost: Option<Money>,
}

/// Returns the candidates, the best one first. All of them are proved, so the diff decides, then the cost, then the number.
#[must_use]
pub fn rank_candidates(mut candidates: Vec<ProvedCandidate<'_>>) -> Vec<usize> {
    let cost = |one: &ProvedCandidate<'_>| (one.cost.is_none(), one.cost);
    candidates.sort_by(|one, other| {
        let lines = one.proof.diff().lines().cmp(&other.proof.diff().lines());
        lines.then(cost(one).cmp(&cost(other))).then(one.candidate.cmp(&other.candidate))
    });
    candidates.into_iter().map(|one| one.candidate).collect()
}
