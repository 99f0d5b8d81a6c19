//! Reports about runs: numbers with intervals, the end of each failure, and the comparison of two runs.

mod html;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use pintle_llm::Money;
use serde::Serialize;

use crate::agent::Claim;
use crate::attempt::{AttemptRecord, attempt_name};
use crate::case_verdict::CaseVerdict;
use crate::run::RunConfiguration;
use crate::statistics::{Proportion, mcnemar};

/// Version of the report as JSON.
const VERSION: u32 = 1;

/// Maximum number of characters of a reason in a table.
const MAX_REASON: usize = 200;

/// Report about a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RunReport<'a> {
    version: u32,
    configuration: &'a RunConfiguration,
    /// Models that the attempts name.
    pub models: BTreeSet<&'a str>,
    /// Number of instances with attempts.
    pub instances: usize,
    /// Attempts whose hidden tests pass. This share and the next ones leave out cheats that a script plays.
    pub solved: Proportion,
    /// Instances of which at least one attempt is solved.
    pub solved_instances: Proportion,
    /// Attempts that the agent reports as done, and whose hidden tests fail.
    pub false_done: Proportion,
    /// Attempts that the agent reports as blocked, and whose hidden tests pass.
    pub missed: Proportion,
    /// Cost, as far as prices are known.
    #[serde(rename = "cost_usd", with = "pintle_llm::money::dollars")]
    pub cost: Money,
    /// Number of attempts whose cost is unknown.
    pub unknown_costs: usize,
    /// Input and output tokens.
    pub tokens: u64,
    /// Model calls, or attempts of candidates.
    pub rounds: u64,
    /// Milliseconds that the agents worked.
    pub wall_ms: u64,
    /// Number of attempts by their end, such as `done, hidden tests fail`.
    pub endings: BTreeMap<String, usize>,
    /// Attempts, by instance and number.
    pub attempts: Vec<AttemptRow<'a>>,
    /// Comparison with another run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Comparison>,
}

/// An attempt in a report.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AttemptRow<'a> {
    /// Name of the instance.
    pub instance: &'a str,
    /// Number, from 1.
    pub attempt: u32,
    /// End, as the agent reports it.
    pub claim: Claim,
    /// Whether all hidden tests pass.
    pub solved: bool,
    /// Number of hidden tests that pass.
    pub passed: usize,
    /// Number of hidden tests.
    pub tests: usize,
    /// Reason for an end without success, from the agent or the first test that fails.
    pub reason: String,
    /// Cost; `None` if a price is unknown.
    #[serde(rename = "cost_usd", with = "pintle_llm::money::dollars::option")]
    pub cost: Option<Money>,
    /// Milliseconds that the agent worked.
    pub wall_ms: u64,
    /// Session or task.
    pub session: Option<&'a str>,
    /// Comparison with the expected end, if a script played the sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<&'a CaseVerdict>,
    #[serde(skip)]
    record: &'a AttemptRecord,
}

/// Two runs, paired by instance and number of the attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Name of the other run.
    pub name: String,
    /// Number of pairs.
    pub pairs: usize,
    /// Number of pairs that are not compared, because the instance differs.
    pub changed: usize,
    /// Pairs that both runs solve, or end as expected if a script played the sessions.
    pub both: usize,
    /// Pairs that only this run solves.
    pub only_this: Vec<String>,
    /// Pairs that only the other run solves.
    pub only_other: Vec<String>,
    /// Two-sided p-value of McNemar's exact test.
    pub p_value: f64,
}

impl<'a> RunReport<'a> {
    /// Creates a report about finished attempts.
    #[must_use]
    pub fn new(configuration: &'a RunConfiguration, attempts: &'a [AttemptRecord]) -> Self {
        let honest: Vec<&AttemptRecord> = attempts.iter().filter(|record| !record.is_cheat()).collect();
        let count = |is_counted: &dyn Fn(&AttemptRecord) -> bool| {
            honest.iter().filter(|record| is_counted(record)).count()
        };
        let claimed = |claim: Claim| count(&|record| record.end.claim == claim);
        let instances = |is_counted: &dyn Fn(&AttemptRecord) -> bool| {
            let counted = attempts.iter().filter(|record| is_counted(record));
            counted.map(|record| record.instance.as_str()).collect::<BTreeSet<&str>>().len()
        };
        let solved_instances = instances(&|record| !record.is_cheat() && record.is_solved());
        let mut endings = BTreeMap::new();
        for record in attempts {
            *endings.entry(record.describe_end()).or_insert(0) += 1;
        }
        let ends = || attempts.iter().map(|record| &record.end);
        Self {
            version: VERSION,
            configuration,
            models: ends().filter_map(|end| end.model.as_deref()).collect(),
            instances: instances(&|_| true),
            solved: Proportion::new(count(&AttemptRecord::is_solved), honest.len()),
            solved_instances: Proportion::new(solved_instances, instances(&|record| !record.is_cheat())),
            false_done: Proportion::new(count(&AttemptRecord::is_false_done), claimed(Claim::Done)),
            missed: Proportion::new(count(&AttemptRecord::is_missed), claimed(Claim::Blocked)),
            cost: ends().filter_map(|end| end.cost).sum(),
            unknown_costs: ends().filter(|end| end.cost.is_none()).count(),
            tokens: ends().filter_map(|end| end.tokens).sum(),
            rounds: ends().filter_map(|end| end.rounds).sum(),
            wall_ms: attempts.iter().map(|record| record.wall_ms).sum(),
            endings,
            attempts: attempts.iter().map(AttemptRow::new).collect(),
            against: None,
        }
    }

    /// Adds the comparison with another run of the same suite.
    #[must_use]
    pub fn against(mut self, name: &str, others: &[AttemptRecord]) -> Self {
        self.against = Some(Comparison::new(name, &self.attempts, others));
        self
    }

    /// Returns whether each attempt whose sessions followed a script has its expected end.
    #[must_use]
    pub fn has_expected_ends(&self) -> bool {
        self.attempts.iter().filter_map(|row| row.case).all(|case| case.is_expected)
    }

    /// Returns the report as one JSON object.
    ///
    /// # Errors
    ///
    /// As for [`serde_json::to_string`], which does not fail for these types.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Returns the report as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let width = self.figures().iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, value) in self.figures() {
            let _ = writeln!(text, "{name:<width$}  {value}");
        }
        text.push_str("\nends\n");
        for (ending, number) in &self.endings {
            let _ = writeln!(text, "  {number:>4}  {ending}");
        }
        for (row, case) in self.attempts.iter().filter_map(|row| Some((row, row.case?))) {
            let _ = writeln!(text, "  {}: {} ({})", row.name(), row.result(), row.claim.name());
            for finding in &case.findings {
                let _ = writeln!(text, "      {finding}");
            }
        }
        let failures = self.attempts.iter().filter(|row| !row.solved && row.case.is_none());
        for (number, row) in failures.enumerate() {
            let head = if number == 0 { "\nnot solved\n" } else { "" };
            let (name, claim) = (row.name(), row.claim.name());
            let _ = writeln!(text, "{head}  {name}: {claim}, {}; {}", row.result(), row.reason);
        }
        text
    }

    /// Returns the report as a page without scripts and external resources.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::render(self)
    }

    /// Returns the figures with their names.
    fn figures(&self) -> Vec<(&'static str, String)> {
        let RunConfiguration { suite, agent, .. } = self.configuration;
        let models: Vec<&str> = self.models.iter().copied().collect();
        let models = if models.is_empty() { "unknown".to_owned() } else { models.join(", ") };
        let cost = match self.unknown_costs {
            0 => format!("{:.2}", self.cost),
            number => format!("≥ {:.2} ({number} attempts of unknown cost)", self.cost),
        };
        let mut figures = vec![
            ("suite", suite.clone()),
            ("agent", agent.clone()),
            ("models", models),
            ("attempts", format!("{} on {} instances", self.attempts.len(), self.instances)),
            ("solved", self.solved.describe()),
            ("instances solved", self.solved_instances.describe()),
            ("false done", self.false_done.describe()),
            ("missed", self.missed.describe()),
            ("cost", cost),
            ("tokens", self.tokens.to_string()),
            ("rounds", self.rounds.to_string()),
            ("wall time", format!("{} s", self.wall_ms / 1_000)),
        ];
        for (name, is_cheat) in [("cheats not accepted", true), ("honest changes accepted", false)] {
            let cases = self.attempts.iter().filter_map(|row| row.case);
            let ends: Vec<bool> =
                cases.filter(|case| case.is_cheat == is_cheat).map(|case| case.is_expected).collect();
            if !ends.is_empty() {
                let expected = ends.iter().filter(|is_expected| **is_expected).count();
                figures.push((name, format!("{expected} of {}", ends.len())));
            }
        }
        if let Some(against) = &self.against {
            figures.push(("against", against.describe()));
        }
        figures
    }
}

impl<'a> AttemptRow<'a> {
    fn new(record: &'a AttemptRecord) -> Self {
        let judgement = &record.judgement;
        let failure = judgement.failures().next();
        let test = failure.map(|test| {
            let output = test.output.lines().next().unwrap_or_default();
            format!("`{}` fails: {output}", test.name)
        });
        let reason = Some(record.end.reason.clone()).filter(|reason| !reason.is_empty());
        let reason = reason.or_else(|| judgement.problem.clone()).or(test).unwrap_or_default();
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut shown: String = reason.chars().take(MAX_REASON).collect();
        if shown.len() < reason.len() {
            shown.push('…');
        }
        Self {
            instance: &record.instance,
            attempt: record.attempt,
            claim: record.end.claim,
            solved: record.is_solved(),
            passed: judgement.tests.iter().filter(|test| test.passed).count(),
            tests: judgement.tests.len(),
            reason: shown,
            cost: record.end.cost,
            wall_ms: record.wall_ms,
            session: record.end.session.as_deref(),
            case: record.case.as_ref(),
            record,
        }
    }

    fn name(&self) -> String {
        attempt_name(self.instance, self.attempt)
    }

    /// Returns the comparison with the expected end, or the results of the hidden tests.
    fn result(&self) -> String {
        let tests = || format!("{} of {} hidden tests pass", self.passed, self.tests);
        self.case.map_or_else(tests, |case| case.describe().to_owned())
    }
}

impl Comparison {
    fn new(name: &str, rows: &[AttemptRow<'_>], others: &[AttemptRecord]) -> Self {
        let others: BTreeMap<(&str, u32), &AttemptRecord> =
            others.iter().map(|record| ((record.instance.as_str(), record.attempt), record)).collect();
        let mut found = Self { name: name.to_owned(), ..Self::default() };
        for row in rows {
            let Some(other) = others.get(&(row.instance, row.attempt)) else { continue };
            let hashes = row.record.instance_hash.as_ref().zip(other.instance_hash.as_ref());
            if hashes.is_some_and(|(this, other)| this != other) {
                found.changed += 1;
                continue;
            }
            found.pairs += 1;
            match (row.record.is_success(), other.is_success()) {
                (true, true) => found.both += 1,
                (true, false) => found.only_this.push(row.name()),
                (false, true) => found.only_other.push(row.name()),
                (false, false) => {}
            }
        }
        found.p_value = mcnemar(found.only_this.len(), found.only_other.len());
        found
    }

    fn describe(&self) -> String {
        let Self { name, pairs, changed, both, p_value, .. } = self;
        let (here, there) = (self.only_this.len(), self.only_other.len());
        let changed = match changed {
            0 => String::new(),
            count => format!(" ({count} left out, whose task differs)"),
        };
        format!(
            "{name}: {pairs} pairs{changed}, {both} solved by both, {here} only here, {there} only there, p = {p_value:.4}"
        )
    }
}
