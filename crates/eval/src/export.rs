//! Runs in the formats of other programs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_env::ExecutionEnvironment as _;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::absolute;
use pintle_host::sanitize::json_line;
use pintle_workflow::report::escape_markup;
use serde_json::json;

use crate::attempt::{AttemptRecord, attempt_name};
use crate::machine::Machine;
use crate::run::RunConfiguration;

/// Returns the predictions of a run for SWE-bench, one JSON object per line: the first attempt of each instance, whatever the
/// agent reported. Bytes of a patch that are no UTF-8 become replacement characters.
///
/// Dropping the future stops reading.
///
/// # Errors
///
/// A patch that cannot be read.
pub async fn predictions(
    configuration: &RunConfiguration,
    attempts: &[(AttemptRecord, PathBuf)],
    machine: &Machine,
) -> Result<String, Failure> {
    let environment = machine.process_env().local_environment(Path::new("/"))?;
    let (mut lines, mut seen) = (String::new(), HashSet::new());
    for (record, patch) in attempts {
        if !seen.insert(&record.instance) {
            continue;
        }
        let model = record.end.model.as_ref().unwrap_or(&configuration.agent);
        // The directory of the run may be relative to that of the process.
        let patch = environment.read(&absolute(patch)?, None).await;
        let patch = patch.or_failed("the patch of an attempt cannot be read")?;
        let line = json!({
            "instance_id": record.instance,
            "model_name_or_path": model,
            "model_patch": String::from_utf8_lossy(&patch),
        });
        lines.push_str(&json_line(&line)?);
    }
    Ok(lines)
}

/// Returns a run as JUnit XML, with a test case for each attempt. A test case whose session a script played passes if it ended as
/// expected.
#[must_use]
pub fn junit(configuration: &RunConfiguration, attempts: &[(AttemptRecord, PathBuf)]) -> String {
    let failures = attempts.iter().filter(|(record, _)| !record.is_success()).count();
    let suite = escape_markup(&configuration.suite);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n\
         <testsuite name=\"{suite}\" tests=\"{}\" failures=\"{failures}\">\n",
        attempts.len()
    );
    for (record, _) in attempts {
        let name = escape_markup(&attempt_name(&record.instance, record.attempt));
        let seconds = Duration::from_millis(record.wall_ms).as_secs_f64();
        text.push_str(&format!("<testcase classname=\"{suite}\" name=\"{name}\" time=\"{seconds:.3}\""));
        if record.is_success() {
            text.push_str("/>\n");
            continue;
        }
        let tests = record.judgement.failures().map(|test| format!("{}\n{}", test.name, test.output));
        let findings = record.case.iter().flat_map(|case| &case.findings);
        let problems = record.judgement.problem.iter().chain(findings).cloned();
        let details: Vec<String> = problems.chain(tests).collect();
        text.push_str(&format!(
            ">\n<failure message=\"{}\">{}</failure>\n</testcase>\n",
            escape_markup(&record.describe_end()),
            escape_markup(&details.join("\n"))
        ));
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}
