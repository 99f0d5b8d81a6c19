//! Search of a tree compared with `rg` on the same files and patterns.
#![expect(clippy::disallowed_methods, reason = "the program to compare with must be started")]

use std::{
    process::{Command, Output, Stdio},
    sync::Arc,
};

use pintle_env::{ExecutionEnvironment, GrepMode, GrepOutput, GrepRequest, LocalEnvironment};
use tokio::runtime::Runtime;

use super::tree::{RARE_WORD, Tree};
use crate::measure::{Comparison, Row};

const AIM: f64 = 1.1;

/// Options that make `rg` search the same files.
const SAME_FILES: [&str; 7] = [
    "--no-config",
    "--hidden",
    "--glob=!.git",
    "--no-require-git",
    "--no-ignore-global",
    "--no-ignore-parent",
    "--color=never",
];

struct Search {
    what: &'static str,
    pattern: &'static str,
    mode: GrepMode,
    /// Evict file contents from the page cache before each search.
    is_cold: bool,
}

const SEARCHES: [Search; 6] = [
    Search { what: "grep a word", pattern: RARE_WORD, mode: GrepMode::Content, is_cold: false },
    Search {
        what: "grep a word: files",
        pattern: RARE_WORD,
        mode: GrepMode::FilesWithMatches,
        is_cold: false,
    },
    Search {
        what: "grep an expression",
        pattern: r"call_\d+\(9[0-9]*\)",
        mode: GrepMode::Content,
        is_cold: false,
    },
    Search {
        what: "grep an expression without a literal",
        pattern: r"[a-z]+_[0-9]+\([0-9]{3}\)",
        mode: GrepMode::Content,
        is_cold: false,
    },
    Search {
        what: "grep an expression: counts",
        pattern: r"call_\d+\(9[0-9]*\)",
        mode: GrepMode::Count,
        is_cold: false,
    },
    Search { what: "grep a word, cold", pattern: RARE_WORD, mode: GrepMode::Content, is_cold: true },
];

pub(super) fn rows(runtime: &Runtime, wanted: &str) -> Vec<Row> {
    let wanted: Vec<_> = SEARCHES.iter().filter(|search| search.what.contains(wanted)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("SKIPPED: grep, `rg` is not installed");
        return Vec::new();
    }
    let tree = Tree::new();
    let environment = Arc::new(super::local(tree.path()).build().expect("the path is absolute"));
    wanted.into_iter().map(|search| measure(runtime, &tree, &environment, search)).collect()
}

fn measure(runtime: &Runtime, tree: &Tree, environment: &Arc<LocalEnvironment>, search: &Search) -> Row {
    let baseline = || ripgrep(tree, search);
    let subject = || grep(runtime, environment, search);
    let lines = |output: Output| output.stdout.split(|byte| *byte == b'\n').count() - 1;
    assert_eq!(results(&subject(), search.mode), lines(baseline()), "{}: different results", search.what);
    let cool = || tree.cool();
    let contest = Comparison::new(search.what, "rg", AIM);
    let contest = if search.is_cold { contest.with_rounds(11).with_before(&cool) } else { contest };
    contest.measure(baseline, subject)
}

fn results(output: &GrepOutput, mode: GrepMode) -> usize {
    match mode {
        GrepMode::Content => output.files.iter().map(|file| file.matches).sum(),
        GrepMode::FilesWithMatches | GrepMode::Count => output.files.len(),
    }
}

/// All results, through a pipe: with `/dev/null`, rg stops at the first match.
fn ripgrep(tree: &Tree, search: &Search) -> Output {
    let mode = match search.mode {
        GrepMode::Content => "--line-number",
        GrepMode::FilesWithMatches => "--files-with-matches",
        GrepMode::Count => "--count",
    };
    let mut command = Command::new("rg");
    command.args(SAME_FILES).args([mode, "-e", search.pattern, "."]);
    command.current_dir(tree.path()).stdin(Stdio::null()).output().expect("rg runs")
}

fn grep(runtime: &Runtime, environment: &Arc<LocalEnvironment>, search: &Search) -> GrepOutput {
    let request =
        GrepRequest::new(search.pattern).with_output_mode(search.mode).with_max_results(usize::MAX >> 1);
    let environment = Arc::clone(environment);
    super::on_a_worker(runtime, async move { environment.grep(&request).await })
        .expect("the tree is searched")
}
