//! The Test Anything Protocol, with subtests as version 14 and Node have them.

use super::{TestRun, TestStatus};

/// Spaces before the lines of a subtest.
const INDENT: usize = 4;

/// Maximum depth of parsed subtests.
const MAX_DEPTH: usize = 32;

/// Tests at one depth.
#[derive(Debug, Default)]
struct TapLevel {
    /// Name of the subtest that contains these tests.
    name: Option<String>,
    planned: Option<usize>,
    found: usize,
    is_skipped: bool,
}

pub(super) fn parse(text: &str) -> TestRun {
    let mut run = TestRun::default();
    let mut levels = vec![TapLevel::default()];
    // Name of the subtest whose lines follow.
    let mut announced: Option<String> = None;
    let mut in_yaml = None;
    for line in text.lines().map(str::trim_end) {
        let content = line.trim_start_matches(' ');
        let spaces = line.len() - content.len();
        if let Some(indent) = in_yaml {
            if content == "..." && spaces == indent {
                in_yaml = None;
            }
            continue;
        }
        if content == "---" {
            in_yaml = Some(spaces);
            continue;
        }
        if spaces % INDENT != 0 || !is_tap(content) {
            continue;
        }
        let depth = spaces / INDENT;
        if depth > levels.len() || depth > MAX_DEPTH {
            continue;
        }
        if depth == levels.len() {
            levels.push(TapLevel { name: announced.take(), ..TapLevel::default() });
        }
        while levels.len() > depth + 1 {
            if let Some(level) = levels.pop() {
                close(&level, &mut run);
                announced = level.name;
            }
        }
        if let Some(reason) = content.strip_prefix("Bail out!") {
            run.problem(format!("the run was given up:{reason}"));
            return run;
        }
        if let Some(name) = content.strip_prefix("# Subtest: ") {
            announced = Some(name.to_owned());
            continue;
        }
        let parents: Vec<String> = levels.iter().filter_map(|level| level.name.clone()).collect();
        let Some(level) = levels.last_mut() else { continue };
        if let Some(planned) = plan(content) {
            if level.planned.replace(planned).is_some() {
                run.problem("there are two plans".to_owned());
            }
            level.is_skipped = planned == 0;
        } else if let Some((name, status)) = test(content) {
            level.found += 1;
            let name = name.unwrap_or_else(|| level.found.to_string());
            announced = None;
            run.add(parents.into_iter().chain([name]).collect::<Vec<_>>().join(" > "), status);
        }
    }
    while let Some(level) = levels.pop() {
        close(&level, &mut run);
    }
    run
}

fn is_tap(content: &str) -> bool {
    content.starts_with("ok")
        || content.starts_with("not ok")
        || content.starts_with("1..")
        || content.starts_with("# Subtest: ")
        || content.starts_with("Bail out!")
}

fn plan(content: &str) -> Option<usize> {
    content.strip_prefix("1..")?.split([' ', '#']).next()?.parse().ok()
}

/// Returns a test with its name, if it has one: `not ok 2 - name # TODO reason`.
fn test(content: &str) -> Option<(Option<String>, TestStatus)> {
    let (passed, rest) = match content.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, content.strip_prefix("ok")?),
    };
    if !(rest.is_empty() || rest.starts_with(' ')) {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest.trim_start_matches(|character: char| character.is_ascii_digit()).trim_start();
    let rest = rest.strip_prefix("- ").or_else(|| rest.strip_prefix('-')).unwrap_or(rest);
    let (name, directive) =
        rest.rsplit_once(" # ").unwrap_or((rest, rest.strip_prefix("# ").unwrap_or_default()));
    let name = if rest.starts_with("# ") { "" } else { name };
    let directive = directive.to_ascii_uppercase();
    let status = match passed {
        // A `TODO` test may fail.
        _ if directive.starts_with("SKIP") || directive.starts_with("TODO") => TestStatus::Skipped,
        true => TestStatus::Passed,
        false => TestStatus::Failed,
    };
    let name = name.trim();
    Some(((!name.is_empty()).then(|| name.to_owned()), status))
}

fn close(level: &TapLevel, run: &mut TestRun) {
    let of = level.name.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
    match level.planned {
        Some(planned) if planned != level.found => {
            run.problem(format!("{of}{planned} tests were planned and {} ran", level.found));
        }
        None if level.found > 0 => run.problem(format!("{of}there is no plan")),
        _ => {}
    }
}
