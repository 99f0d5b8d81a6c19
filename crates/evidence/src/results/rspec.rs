//! Reports of `RSpec` as JSON.

use serde::Deserialize;

use super::{TestRun, TestStatus};

#[derive(Debug, Deserialize)]
struct RspecReport {
    examples: Vec<RspecExample>,
    summary: RspecSummary,
}

#[derive(Debug, Deserialize)]
struct RspecExample {
    full_description: String,
    #[serde(default)]
    file_path: String,
    status: String,
    #[serde(default)]
    exception: Option<RspecException>,
}

#[derive(Debug, Deserialize)]
struct RspecException {
    #[serde(default)]
    class: String,
}

#[derive(Debug, Deserialize)]
struct RspecSummary {
    example_count: usize,
    failure_count: usize,
    #[serde(default)]
    errors_outside_of_examples_count: usize,
}

/// Exception of a failed expectation.
const EXPECTATION: &str = "RSpec::Expectations::";

pub(super) fn parse(text: &str) -> TestRun {
    let mut run = TestRun::default();
    let report: RspecReport = match serde_json::from_str(text) {
        Ok(report) => report,
        Err(error) => {
            run.problem(format!("the report cannot be parsed: {error}"));
            return run;
        }
    };
    for example in &report.examples {
        let is_expectation = example
            .exception
            .as_ref()
            .is_none_or(|exception| exception.class.is_empty() || exception.class.starts_with(EXPECTATION));
        let status = match example.status.as_str() {
            "passed" => TestStatus::Passed,
            "failed" if is_expectation => TestStatus::Failed,
            "failed" => TestStatus::Broken,
            _ => TestStatus::Skipped,
        };
        run.add(format!("{}: {}", example.file_path, example.full_description), status);
    }
    let RspecSummary { example_count, failure_count, errors_outside_of_examples_count } = report.summary;
    let failed = run.count(TestStatus::Failed) + run.count(TestStatus::Broken);
    if report.examples.len() != example_count || failed != failure_count {
        run.problem(format!(
            "the report has {} examples of which {failed} failed, and its sums are {example_count} and {failure_count}",
            report.examples.len()
        ));
    }
    if errors_outside_of_examples_count > 0 {
        run.add("(load)".to_owned(), TestStatus::Broken);
    }
    run
}
