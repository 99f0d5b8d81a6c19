//! JUnit XML.

use roxmltree::{Document, Node, ParsingOptions};

use super::{MAX_TESTS, TestRun, TestStatus};

/// Maximum number of elements and texts of a file.
const MAX_NODES: u32 = 20 * MAX_TESTS as u32;

/// Maximum number of attributes of an element. The parser compares each attribute with all others.
const MAX_ATTRIBUTES: usize = 100;

/// Maximum number of namespaces that an element and its ancestors declare. The parser copies and compares them for every
/// further element that declares a namespace.
const MAX_NAMESPACES: usize = 20;

pub(super) fn parse(text: &str) -> TestRun {
    let mut run = TestRun::default();
    if let Some(problem) = exceeded(text) {
        run.problem(problem);
        return run;
    }
    let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => {
            run.problem(format!("the file is not XML: {error}"));
            return run;
        }
    };
    let root = document.root_element();
    if !matches!(root.tag_name().name(), "testsuites" | "testsuite") {
        run.problem(format!("the file has `{}` where JUnit XML has `testsuites`", root.tag_name().name()));
        return run;
    }
    // Node numbers of all tests and of the failed tests, in the order of the file. Nodes in a suite are numbered without a
    // gap, so its tests are counted without a walk through it: suites may be nested to any depth.
    let (mut tests, mut failed) = (Vec::new(), Vec::new());
    for case in root.descendants().filter(|node| node.has_tag_name("testcase")) {
        let (number, status) = (case.id().get_usize(), status_of(case));
        tests.push(number);
        if matches!(status, TestStatus::Failed | TestStatus::Broken) {
            failed.push(number);
        }
        run.add(name_of(case), status);
    }
    for suite in root.descendants().filter(|node| node.has_tag_name("testsuite")) {
        let first = suite.id().get_usize();
        let end = first + suite.descendants().len();
        let count = |numbers: &[usize]| {
            let before = |limit: usize| numbers.partition_point(|number| *number < limit);
            before(end) - before(first)
        };
        check(suite, count(&tests), count(&failed), &mut run);
    }
    run
}

/// Returns the exceeded limit, if any. The parser lacks these limits, and beyond them its time grows far out of proportion
/// to the size of the file. Markup that is not XML ends the search, because it ends the parser as well.
fn exceeded(text: &str) -> Option<String> {
    // Number of namespaces that each open element declares.
    let mut open: Vec<usize> = Vec::new();
    let (mut inherited, mut rest) = (0, text);
    loop {
        let (_, markup) = rest.split_once('<')?;
        let opaque = [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")];
        let opaque = opaque.into_iter().find_map(|(begin, end)| Some((markup.strip_prefix(begin)?, end)));
        if let Some((content, end)) = opaque {
            (_, rest) = content.split_once(end)?;
            continue;
        }
        rest = markup;
        if markup.starts_with('/') {
            inherited -= open.pop()?;
            continue;
        }
        let (mut attributes, mut declared) = (0, 0);
        loop {
            let (before, after) = rest.split_at(rest.find(['"', '\'', '>'])?);
            let (mark, after) = after.split_at(1);
            if mark == ">" {
                rest = after;
                if !before.ends_with('/') {
                    open.push(declared);
                    inherited += declared;
                }
                break;
            }
            (_, rest) = after.split_once(mark)?;
            attributes += 1;
            declared += usize::from(before.contains("xmlns"));
            if attributes > MAX_ATTRIBUTES {
                return Some(format!("an element has more than {MAX_ATTRIBUTES} attributes"));
            }
            if inherited + declared > MAX_NAMESPACES {
                return Some(format!("more than {MAX_NAMESPACES} namespaces are declared around an element"));
            }
        }
    }
}

fn name_of(case: Node<'_, '_>) -> String {
    let name = case.attribute("name").unwrap_or_default();
    match case.attribute("classname").filter(|class| !class.is_empty()) {
        Some(class) => format!("{class}::{name}"),
        None => name.to_owned(),
    }
}

fn status_of(case: Node<'_, '_>) -> TestStatus {
    let has = |name: &str| case.children().any(|child| child.has_tag_name(name));
    match () {
        () if has("error") => TestStatus::Broken,
        () if has("failure") => TestStatus::Failed,
        () if has("skipped") => TestStatus::Skipped,
        () => TestStatus::Passed,
    }
}

/// Compares the sums of a suite with the numbers of its tests and of its failed tests.
fn check(suite: Node<'_, '_>, tests: usize, failed: usize, run: &mut TestRun) {
    let number = |name: &str| suite.attribute(name).and_then(|text| text.parse::<usize>().ok());
    let name = suite.attribute("name").unwrap_or("a suite");
    if let Some(said) = number("tests").filter(|said| *said != tests) {
        run.problem(format!("{name} says {said} tests and has {tests}"));
    }
    let said = number("failures").map(|said| said.saturating_add(number("errors").unwrap_or(0)));
    if let Some(said) = said.filter(|said| *said != failed) {
        run.problem(format!("{name} says {said} failures and has {failed}"));
    }
}
