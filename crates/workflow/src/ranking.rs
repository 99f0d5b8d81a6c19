//! Ranking of candidates: the order of a comparison first, then the hidden anchor. Size and cost break ties only.

use crate::evidence::Proof;

/// A proved candidate.
#[derive(Clone, Copy, Debug)]
pub struct ProvedCandidate<'a> {
    /// Its number, from 0.
    pub candidate: usize,
    /// Its proof.
    pub proof: &'a Proof,
    /// Place in a comparison of the candidates. `None` for a candidate that no review has compared.
    pub compared: Option<u32>,
    /// Cost in US dollars. `None` if a price is unknown, which ranks after any known cost.
    pub usd: Option<f64>,
}

/// Returns the candidates, the best one first. All of them are proved. Those that need a decision of a user about changed tests
/// are the last. Then the comparison decides if it includes all of them, then the hidden anchor, then the size of the diff, the
/// cost, and the number.
#[must_use]
pub fn rank_candidates(mut candidates: Vec<ProvedCandidate<'_>>) -> Vec<usize> {
    let cost = |one: &ProvedCandidate<'_>| one.usd.unwrap_or(f64::INFINITY);
    let is_compared = candidates.iter().all(|one| one.compared.is_some());
    let place = |one: &ProvedCandidate<'_>| one.compared.filter(|_| is_compared);
    // A hidden anchor that was not run counts less than one that passes, and more than one that fails.
    let hidden = |one: &ProvedCandidate<'_>| match one.proof.passes_hidden() {
        Some(true) => 0,
        None => 1,
        Some(false) => 2,
    };
    candidates.sort_by(|one, other| {
        // A user decides about a proof with changes of files that judge.
        let is_forced = |one: &ProvedCandidate<'_>| !one.proof.forced().is_empty();
        let quality = is_forced(one).cmp(&is_forced(other)).then(place(one).cmp(&place(other)));
        let quality = quality.then(hidden(one).cmp(&hidden(other)));
        let lines = one.proof.diff().lines().cmp(&other.proof.diff().lines());
        let size = quality.then(lines);
        size.then(cost(one).total_cmp(&cost(other))).then(one.candidate.cmp(&other.candidate))
    });
    candidates.into_iter().map(|one| one.candidate).collect()
}
