//! Reports of jest and vitest as JSON.

use serde::Deserialize;

use super::{TestRun, TestStatus};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestReport {
    num_total_tests: usize,
    num_failed_tests: usize,
    #[serde(default)]
    was_interrupted: bool,
    test_results: Vec<JestFile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestFile {
    /// Path of the file.
    name: String,
    status: String,
    assertion_results: Vec<JestTest>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestTest {
    #[serde(default)]
    ancestor_titles: Vec<String>,
    title: String,
    status: String,
}

pub(super) fn parse(text: &str) -> TestRun {
    let mut run = TestRun::default();
    let report: JestReport = match serde_json::from_str(text) {
        Ok(report) => report,
        Err(error) => {
            run.problem(format!("the report cannot be parsed: {error}"));
            return run;
        }
    };
    if report.was_interrupted {
        run.problem("the run was interrupted".to_owned());
    }
    let (mut total, mut failed) = (0, 0);
    for file in &report.test_results {
        for test in &file.assertion_results {
            let status = match test.status.as_str() {
                "passed" => TestStatus::Passed,
                "failed" => TestStatus::Failed,
                _ => TestStatus::Skipped,
            };
            total += 1;
            failed += usize::from(status == TestStatus::Failed);
            let titles = test.ancestor_titles.iter().map(String::as_str).filter(|title| !title.is_empty());
            let titles: Vec<&str> = titles.chain([test.title.as_str()]).collect();
            run.add(format!("{} > {}", file.name, titles.join(" > ")), status);
        }
        // A file that cannot be loaded has no tests.
        if file.assertion_results.is_empty() && file.status == "failed" {
            run.add(file.name.clone(), TestStatus::Broken);
        }
    }
    if total != report.num_total_tests || failed != report.num_failed_tests {
        run.problem(format!(
            "the report has {total} tests of which {failed} failed, and its sums are {} and {}",
            report.num_total_tests, report.num_failed_tests
        ));
    }
    run
}
