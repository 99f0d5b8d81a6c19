//! Contract of search.

use std::path::Path;

use super::{CheckResult, Subject, equals, fails, holds, is_not_found, succeeds};
use crate::{
    environment::{ExecutionEnvironment, ExecutionEnvironmentExt as _},
    error::EnvError,
    search::{GlobRequest, GrepFile, GrepMode, GrepOutput, GrepRequest, SearchScope},
};

/// The searched tree.
const FIXTURE: [(&str, &str); 12] = [
    (".gitignore", "*.log\n/build/\n/whole/*\n!keep.log\n"),
    (".hidden/h.txt", "needle hidden\n"),
    ("[id]/[[...p-a]].md", "nothing\n"),
    ("a.txt", "first\nneedle one\nthird\nNeedle two\nlast\n"),
    ("b.rs", "fn needle() {}\r\n"),
    ("build/out.txt", "needle\n"),
    ("keep.log", "needle\n"),
    ("note.log", "needle\n"),
    ("src/build/in.txt", "needle\n"),
    ("src/deep/c.rs", "needle\nneedle\nneedle\n"),
    ("src/deep/d.md", "nothing\n"),
    ("whole/w.py", "needle\n"),
];

/// Checks `glob` and `grep` on a fixture tree.
///
/// # Errors
///
/// The first violated rule.
pub async fn search(env: &dyn ExecutionEnvironment, root: &Path) -> Result<(), super::ContractViolation> {
    let subject = Subject { env, root };
    for (name, content) in FIXTURE {
        subject.write(name, content).await?;
    }
    let binary = env.write(&subject.path("binary.dat"), b"needle\n\0needle\n").await;
    succeeds("a binary file is written", binary)?;
    globs(subject).await?;
    scopes(subject).await?;
    order(subject).await?;
    modes(subject).await?;
    selection(subject).await?;
    limits(subject).await?;
    ignored_project(subject).await?;
    errors(subject).await
}

async fn globs(subject: Subject<'_>) -> CheckResult {
    for (pattern, expected) in [
        ("*.rs", "b.rs"),
        ("**/*.rs", "b.rs src/deep/c.rs"),
        ("src/**/*.{rs,md}", "src/deep/c.rs src/deep/d.md"),
        ("src/deep/[cx].rs", "src/deep/c.rs"),
        ("src/deep/c.rs", "src/deep/c.rs"),
        ("[id]/*.md", "[id]/[[...p-a]].md"),
        ("[id]/[[...p-a]].md", "[id]/[[...p-a]].md"),
        ("**/*.log", "keep.log"),
        ("**/*.txt", ".hidden/h.txt a.txt src/build/in.txt"),
        ("build/*", "build/out.txt"),
        ("note.log", "note.log"),
        ("whole/*", "whole/w.py"),
        ("whole/w.py", "whole/w.py"),
        ("**/*.py", ""),
        ("nowhere/*", ""),
        ("?.md", ""),
    ] {
        let found = subject.env.glob(pattern, subject.root).await;
        let found = succeeds("a glob finds files", found)?;
        let mut names: Vec<_> = found.iter().map(|path| relative(subject, path)).collect();
        names.sort();
        equals(&format!("the glob {pattern} finds its files"), names.join(" ").as_str(), expected)?;
    }
    Ok(())
}

async fn scopes(subject: Subject<'_>) -> CheckResult {
    let all = ".hidden/h.txt a.txt build/out.txt src/build/in.txt";
    for (hidden, ignored, expected) in [
        (true, false, ".hidden/h.txt a.txt src/build/in.txt"),
        (false, false, "a.txt src/build/in.txt"),
        (true, true, all),
        (false, true, "a.txt build/out.txt src/build/in.txt"),
    ] {
        let scope = SearchScope::default().with_hidden(hidden).with_ignored(ignored);
        let rule = format!("hidden {hidden} and ignored {ignored} files are visited on request");
        let request = GlobRequest::new("**/*.txt").with_path(subject.root).with_scope(scope);
        let found = succeeds("a glob finds files", subject.env.find_files(&request).await)?;
        let mut names: Vec<_> = found.iter().map(|path| relative(subject, path)).collect();
        names.sort();
        equals(&rule, names.join(" ").as_str(), expected)?;
        let request = GrepRequest::new("needle").with_path(subject.root).with_scope(scope);
        let output = grep(subject, &request.with_glob_filter("*.txt")).await?;
        let names: Vec<_> = output.files.iter().map(|file| relative(subject, &file.path)).collect();
        equals(&rule, names.join(" ").as_str(), expected)?;
    }
    let scope = SearchScope::default().with_hidden(false);
    let named = GlobRequest::new("*").with_path(subject.path(".hidden")).with_scope(scope);
    let found = succeeds("a glob finds files", subject.env.find_files(&named).await)?;
    equals("a hidden directory that is named is searched", found, [subject.path(".hidden/h.txt")])
}

async fn order(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    subject.write("order/old.x", "").await?;
    let old = succeeds("a file has metadata", env.metadata(&subject.path("order/old.x")).await)?;
    // Clocks of file systems are coarse: write until the time has advanced.
    loop {
        subject.write("order/new.x", "").await?;
        let new = succeeds("a file has metadata", env.metadata(&subject.path("order/new.x")).await)?;
        if new.modified > old.modified {
            break;
        }
    }
    let found = env.glob("*.x", &subject.path("order")).await;
    let found = succeeds("a glob finds files", found)?;
    let expected = [subject.path("order/new.x"), subject.path("order/old.x")];
    equals("a glob returns the newest file first", found.as_slice(), expected.as_slice())
}

async fn modes(subject: Subject<'_>) -> CheckResult {
    let needle = GrepRequest::new("needle").with_path(subject.root);
    let content = grep(subject, &needle).await?;
    equals(
        "a search returns matching lines sorted by path",
        lines(subject, &content).as_str(),
        ".hidden/h.txt:1:needle hidden a.txt:2:needle one b.rs:1:fn needle() {} keep.log:1:needle \
         src/build/in.txt:1:needle src/deep/c.rs:1:needle src/deep/c.rs:2:needle \
         src/deep/c.rs:3:needle",
    )?;
    equals("a binary file is skipped and counted", content.binary_files, 1_usize)?;
    equals("every file is readable", content.unreadable_files, 0_usize)?;
    equals("ignored files and directories are counted", content.ignored, 3_usize)?;
    holds("nothing is truncated silently", !content.truncated, &content)?;
    for (mode, expected) in [(GrepMode::Count, [1, 1, 1, 1, 1, 3]), (GrepMode::FilesWithMatches, [1; 6])] {
        let output = grep(subject, &needle.clone().with_output_mode(mode)).await?;
        let counts: Vec<_> = output.files.iter().map(|file| file.matches).collect();
        equals("each mode counts its own results", counts, expected.to_vec())?;
        let has_lines = output.files.iter().any(|file| !file.lines.is_empty());
        holds("only the content mode has lines", !has_lines, &output)?;
    }
    let context = needle.with_path(subject.path("a.txt")).with_context(1, 1);
    let output = grep(subject, &context).await?;
    equals(
        "context lines are distinguished from matches",
        lines(subject, &output).as_str(),
        "a.txt-1-first a.txt:2:needle one a.txt-3-third",
    )
}

async fn selection(subject: Subject<'_>) -> CheckResult {
    let needle = GrepRequest::new("needle").with_path(subject.root);
    for (what, request, expected) in [
        ("a filter by name", needle.clone().with_glob_filter("*.rs"), "b.rs src/deep/c.rs"),
        ("a filter by path", needle.clone().with_glob_filter("src/*/*.txt"), "src/build/in.txt"),
        (
            "filters separated by commas",
            needle.clone().with_glob_filter("*.rs, *.log"),
            "b.rs keep.log src/deep/c.rs",
        ),
        ("a filter with an exception", needle.clone().with_glob_filter("*.rs,!c.*"), "b.rs"),
        ("a negated filter", needle.clone().with_glob_filter("!*.{rs,txt}"), "keep.log"),
        (
            "an ignored directory by its name",
            needle.clone().with_path(subject.path("build")),
            "build/out.txt",
        ),
        (
            "a directory with ignored files only",
            needle.clone().with_path(subject.path("whole")),
            "whole/w.py",
        ),
        ("an ignored file by its name", needle.clone().with_path(subject.path("note.log")), "note.log"),
        ("a regular expression", GrepRequest::new("^fn .*\\}$").with_path(subject.root), ""),
        ("a dollar before a line feed", GrepRequest::new("^needle one$").with_path(subject.root), "a.txt"),
        (
            "case ignored",
            GrepRequest::new("NEEDLE TWO").with_path(subject.root).with_case_insensitive(true),
            "a.txt",
        ),
    ] {
        let output = grep(subject, &request).await?;
        let names: Vec<_> = output.files.iter().map(|file| relative(subject, &file.path)).collect();
        equals(&format!("{what} selects its files"), names.join(" ").as_str(), expected)?;
    }
    Ok(())
}

/// Searches a project in a directory in which everything is ignored.
async fn ignored_project(subject: Subject<'_>) -> CheckResult {
    for (name, content) in [
        ("nested/.gitignore", "*\n"),
        ("nested/p/.gitignore", "/target\nnode_modules/\n"),
        ("nested/p/a.rs", "needle\n"),
        ("nested/p/src/b.rs", "needle\n"),
        ("nested/p/src/node_modules/c.js", "needle\n"),
        ("nested/p/target/d.rs", "needle\n"),
    ] {
        subject.write(name, content).await?;
    }
    let output = grep(subject, &GrepRequest::new("needle").with_path(subject.path("nested/p"))).await?;
    let names: Vec<_> = output.files.iter().map(|file| relative(subject, &file.path)).collect();
    let expected = "nested/p/a.rs nested/p/src/b.rs";
    equals("a project in an ignored directory is searched", names.join(" ").as_str(), expected)?;
    equals("directories that its own rules ignore are left out", output.ignored, 2_usize)?;
    let found = subject.env.glob("**/*.{rs,js}", &subject.path("nested/p")).await;
    let found = succeeds("a glob finds files", found)?;
    let mut names: Vec<_> = found.iter().map(|path| relative(subject, path)).collect();
    names.sort();
    equals("a glob visits the same files", names.join(" ").as_str(), expected)
}

async fn limits(subject: Subject<'_>) -> CheckResult {
    let needle = GrepRequest::new("needle").with_path(subject.path("src"));
    for (max, mode, matches, truncated) in [
        (3, GrepMode::Content, vec![1, 2], true),
        (4, GrepMode::Content, vec![1, 3], false),
        (1, GrepMode::Content, vec![1], true),
        (0, GrepMode::Content, vec![], true),
        (1, GrepMode::Count, vec![1], true),
        (2, GrepMode::Count, vec![1, 3], false),
    ] {
        let request = needle.clone().with_max_results(max).with_output_mode(mode);
        let output = grep(subject, &request).await?;
        let counts: Vec<_> = output.files.iter().map(|file| file.matches).collect();
        equals("a search returns the first results up to its limit", counts, matches)?;
        equals("a search reports whether there are more results", output.truncated, truncated)?;
    }
    Ok(())
}

async fn errors(subject: Subject<'_>) -> CheckResult {
    let is_invalid = |error: &EnvError| matches!(error, EnvError::InvalidPattern { .. });
    let env = subject.env;
    let gone = subject.path("gone");
    let needle = GrepRequest::new("needle").with_path(subject.root);
    let bad = GrepRequest::new("(").with_path(subject.root);
    fails("an invalid regular expression is refused", env.grep(&bad).await, is_invalid)?;
    let bad = needle.clone().with_glob_filter("a[");
    fails("an invalid filter is refused", env.grep(&bad).await, is_invalid)?;
    fails("an invalid glob is refused", env.glob("a[", subject.root).await, is_invalid)?;
    fails("a missing directory is not searched", env.grep(&needle.with_path(&gone)).await, is_not_found)?;
    fails("a missing directory has no files", env.glob("*", &gone).await, is_not_found)
}

async fn grep(subject: Subject<'_>, request: &GrepRequest) -> CheckResult<GrepOutput> {
    succeeds("a search finds lines", subject.env.grep(request).await)
}

fn relative(subject: Subject<'_>, path: &Path) -> String {
    let relative = path.strip_prefix(subject.root).unwrap_or(path);
    relative.to_string_lossy().into_owned()
}

fn lines(subject: Subject<'_>, output: &GrepOutput) -> String {
    let all: Vec<_> = output.files.iter().flat_map(|file| file_lines(subject, file)).collect();
    all.join(" ")
}

fn file_lines(subject: Subject<'_>, file: &GrepFile) -> Vec<String> {
    let name = relative(subject, &file.path);
    let lines = file.lines.iter().map(|line| {
        let mark = if line.is_match { ':' } else { '-' };
        format!("{name}{mark}{}{mark}{}", line.number, line.text)
    });
    lines.collect()
}
