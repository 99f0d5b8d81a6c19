//! The patch engine, compared with splitting the file into lines and comparing them once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pintle_patch::{ApplyOptions, Plan, parse, plan};

use crate::measure::Row;
use crate::report::Report;

const AIM: f64 = 3.0;
const LINES: usize = 100_000;
const HUNKS: usize = 1_000;

/// A patch and its files.
struct Case {
    what: &'static str,
    patch: String,
    files: BTreeMap<String, Vec<u8>>,
    /// Number of changes in the plan.
    changes: usize,
}

pub(crate) fn run(wanted: &str) -> Report {
    let cases = [
        many_hunks("1,000 hunks in 100,000 lines", Hint::None, |hunk| hunk, str::to_owned),
        many_hunks("… under whole-line hints", Hint::Whole, |hunk| hunk, str::to_owned),
        many_hunks("… under hints that are a line's start", Hint::Start, |hunk| hunk, str::to_owned),
        many_hunks("… out of order", Hint::None, |hunk| HUNKS - 1 - hunk, str::to_owned),
        many_hunks("… with other indentation", Hint::None, |hunk| hunk, |line| format!("  {line}")),
        many_hunks(
            "… with typographic quotes",
            Hint::None,
            |hunk| hunk,
            |line| line.replace('"', "\u{201D}"),
        ),
        accents(),
        long_line(),
        many_operations(),
        equal_lines(),
    ];
    let wanted = cases.into_iter().filter(|case| case.what.contains(wanted));
    wanted.map(|case| measure(&case)).collect::<Vec<_>>().into()
}

fn measure(case: &Case) -> Row {
    let texts = || case.files.values().map(Vec::as_slice).chain([case.patch.as_bytes()]);
    let copies: Vec<Vec<Vec<u8>>> =
        texts().map(|text| lines(text).into_iter().map(<[u8]>::to_vec).collect()).collect();
    let baseline = || texts().zip(&copies).filter(|(text, copy)| lines(text) == **copy).count();
    Row::measure(case.what, ("split and compare file and patch", baseline), AIM, || {
        let plan = apply(case);
        assert_eq!(plan.changes.len(), case.changes, "{}", case.what);
        plan
    })
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn apply(case: &Case) -> Plan {
    let patch = parse(&case.patch).expect("the patch is well formed");
    plan(&patch, &case.files, &ApplyOptions::default()).expect("the patch fits")
}

#[derive(Clone, Copy, PartialEq)]
enum Hint {
    None,
    Whole,
    Start,
}

/// Returns hunks of five lines, spread over one file. `placed` is their order, and `written` how a model writes the
/// old lines.
fn many_hunks(
    what: &'static str,
    hint: Hint,
    placed: impl Fn(usize) -> usize,
    written: impl Fn(&str) -> String,
) -> Case {
    let line = |at: usize| format!("    let value_{at} = compute(\"{at}\", {});", at % 97);
    let lines: Vec<String> = (0..LINES).map(line).collect();
    let mut patch = String::from("*** Begin Patch\n*** Update File: a.rs\n");
    for hunk in (0..HUNKS).map(placed) {
        let at = hunk * (LINES / HUNKS) + 50;
        let line = |at: usize| lines.get(at).map_or("", String::as_str);
        match hint {
            Hint::None => patch.push_str("@@\n"),
            Hint::Whole => writeln!(patch, "@@ {}", line(at - 5)).expect("a string takes it"),
            Hint::Start => {
                let start = line(at - 5).split_once(" =").map_or("", |(start, _)| start);
                writeln!(patch, "@@ {start} =").expect("a string takes it");
            }
        }
        for context in [at, at + 1] {
            writeln!(patch, " {}", written(line(context))).expect("a string takes it");
        }
        writeln!(patch, "-{}\n+    changed_{at}();", written(line(at + 2))).expect("a string takes it");
        for context in [at + 3, at + 4] {
            writeln!(patch, " {}", written(line(context))).expect("a string takes it");
        }
    }
    patch.push_str("*** End Patch\n");
    let content = lines.join("\n") + "\n";
    Case { what, patch, files: BTreeMap::from([("a.rs".to_owned(), content.into_bytes())]), changes: 1 }
}

/// Returns a file with composed accents and a patch with decomposed ones, so that every line matches only loosely.
fn accents() -> Case {
    let composed = |line: &str| line.replace("compute", "b\u{E9}\u{E8}");
    let what = "… with decomposed accents, all lines composed";
    let mut case =
        many_hunks(what, Hint::None, |hunk| hunk, |line| composed(line).replace('\u{E9}', "e\u{301}"));
    for content in case.files.values_mut() {
        *content = composed(&String::from_utf8_lossy(content)).into_bytes();
    }
    case
}

fn long_line() -> Case {
    let long: String =
        (0..).map(|number: u32| format!("{number},")).take(4 << 20).fold(String::new(), |mut text, part| {
            if text.len() < 4 << 20 {
                text.push_str(&part);
            }
            text
        });
    let patch = format!("*** Begin Patch\n*** Update File: a.json\n@@\n-{long}\n+{long};\n*** End Patch\n");
    let files = BTreeMap::from([("a.json".to_owned(), (long + "\n").into_bytes())]);
    Case { what: "one line of 4 MB replaced", patch, files, changes: 1 }
}

/// Returns additions, deletions, updates and moves in equal parts.
fn many_operations() -> Case {
    let mut patch = String::from("*** Begin Patch\n");
    let mut files = BTreeMap::new();
    for number in 0..10_000 {
        let path = format!("src/part_{}/file_{number}.rs", number % 100);
        let content = format!("fn first_{number}() {{\n    call();\n}}\n");
        let add = format!("*** Add File: {path}\n+fn new() {{\n+    call_{number}();\n+}}\n");
        let update = format!(
            "*** Update File: {path}\n@@ fn first_{number}() {{\n-    call();\n+    call_{number}();\n }}\n"
        );
        patch.push_str(&match number % 4 {
            0 => add,
            1 => format!("*** Delete File: {path}\n"),
            2 => update,
            _ => format!(
                "*** Update File: {path}\n*** Move to: {path}.moved\n@@\n     call();\n+    more();\n"
            ),
        });
        if number % 4 != 0 {
            files.insert(path, content.into_bytes());
        }
    }
    patch.push_str("*** End Patch\n");
    Case { what: "10,000 operations", patch, files, changes: 10_000 }
}

/// Returns context that matches loosely only at the end, and at every other line except for its last line.
fn equal_lines() -> Case {
    let mut content = "    equal();\n".repeat(50_000);
    content.push_str("    last();\n");
    let mut patch = String::from("*** Begin Patch\n*** Update File: a.rs\n@@\n");
    patch.push_str(&" equal();\n".repeat(20));
    patch.push_str("-last();\n+    changed();\n*** End Patch\n");
    let files = BTreeMap::from([("a.rs".to_owned(), content.into_bytes())]);
    Case { what: "50,000 equal lines, fuzzy context", patch, files, changes: 1 }
}
