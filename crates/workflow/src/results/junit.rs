//! JUnit XML.

use roxmltree::{Document, Node, ParsingOptions};

use super::{MAX_TESTS, TestRun, TestStatus};

/// Most elements, attributes and texts of a file.
const MAX_NODES: u32 = 20 * MAX_TESTS as u32;

pub(super) fn parse(text: &str) -> TestRun {
    let mut run = TestRun::default();
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
    for case in root.descendants().filter(|node| node.has_tag_name("testcase")) {
        run.add(name_of(case), status_of(case));
    }
    for suite in root.descendants().filter(|node| node.has_tag_name("testsuite")) {
        check(suite, &mut run);
    }
    run
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

/// Compares the sums of a suite with its tests.
fn check(suite: Node<'_, '_>, run: &mut TestRun) {
    let cases: Vec<_> = suite.descendants().filter(|node| node.has_tag_name("testcase")).collect();
    let count = |status| cases.iter().filter(|case| status_of(**case) == status).count();
    let failed = count(TestStatus::Failed) + count(TestStatus::Broken);
    let number = |name: &str| suite.attribute(name).and_then(|text| text.parse::<usize>().ok());
    let name = suite.attribute("name").unwrap_or("a suite");
    if let Some(tests) = number("tests").filter(|tests| *tests != cases.len()) {
        run.problem(format!("{name} says {tests} tests and has {}", cases.len()));
    }
    if let (Some(failures), errors) = (number("failures"), number("errors").unwrap_or(0))
        && failures + errors != failed
    {
        run.problem(format!("{name} says {} failures and has {failed}", failures + errors));
    }
}
