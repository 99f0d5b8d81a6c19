//! Recognizes results of single tests, without a contract that names their format.

use serde::{Deserialize, Serialize};

use super::runner::{RunnerCall, TestRunner};
use super::{ResultsFormat, TestRun};
use crate::shell::split_plain_commands;

/// Results that a command has without a contract that names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecognizedResults {
    /// Their format.
    pub format: ResultsFormat,
    /// File with the results, for formats that are files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

/// A format, and whether a line is one that output of this format has.
type FormatMark = (ResultsFormat, fn(&str) -> bool);

/// Formats that are recognized in the output.
static MARKS: [FormatMark; 8] = [
    (ResultsFormat::Cargo, |line| line.starts_with("test result: ")),
    (ResultsFormat::Pytest, |line| {
        line.contains(" in ") && (line.contains(" passed") || line.contains(" failed"))
    }),
    (ResultsFormat::Unittest, |line| line.starts_with("Ran ") && line.contains(" in ")),
    (ResultsFormat::Go, |line| line.starts_with("ok  \t") || line.starts_with("FAIL\t")),
    (ResultsFormat::Tap, |line| line.starts_with("TAP version ") || line.starts_with("1..")),
    (ResultsFormat::Ctest, |line| line.contains("% tests passed, ")),
    (ResultsFormat::Dotnet, |line| line.trim_start().starts_with("Total tests:")),
    (ResultsFormat::Mix, |line| line.contains(" tests, ") && line.contains(" failure")),
];

/// Recognizes the runner of a command. `package` is the content of the `package.json` of its directory. Returns `None` for a
/// command without a known runner, with different runners, or with flags that keep the runner from naming its tests.
pub(crate) fn recognize(command: &str, package: Option<&str>) -> Option<RecognizedResults> {
    let mut found = None::<RecognizedResults>;
    for simple in split_plain_commands(command)? {
        let Some(call) = RunnerCall::find(&simple.words()) else { continue };
        if simple.is_piped {
            return None;
        }
        let results = if let TestRunner::Script(name) = call.runner {
            recognize_script(&script(package?, name)?)?
        } else {
            call.runner.results()
        };
        let is_same = found.as_ref().is_none_or(|known| *known == results && known.report.is_none());
        if !is_same {
            return None;
        }
        found = Some(results);
    }
    found
}

/// Recognizes the runner of a script of `package.json`. Flags can be added to some runners only.
fn recognize_script(script: &str) -> Option<RecognizedResults> {
    let results = recognize(script, None)?;
    let reaches_runner = matches!(
        results.format,
        ResultsFormat::Tap
            | ResultsFormat::Jest
            | ResultsFormat::Vitest
            | ResultsFormat::Pytest
            | ResultsFormat::Cargo
            | ResultsFormat::Ctest
    );
    reaches_runner.then_some(results)
}

fn script(package: &str, name: &str) -> Option<String> {
    let package: serde_json::Value = serde_json::from_str(package).ok()?;
    Some(package.get("scripts")?.get(name)?.as_str()?.to_owned())
}

/// Parses output whose format is not known.
pub(super) fn recognize_output(text: &str) -> Option<TestRun> {
    let is_marked = |is_mark: fn(&str) -> bool| text.lines().any(is_mark);
    let parse = |(format, is_mark): &FormatMark| {
        let run = is_marked(*is_mark).then(|| format.parse(text))?;
        let is_complete = !run.tests.is_empty() && run.problems.is_empty();
        is_complete.then_some(TestRun { format: Some(*format), ..run })
    };
    let mut runs = MARKS.iter().filter_map(parse);
    let run = runs.next()?;
    runs.next().is_none().then_some(run)
}
