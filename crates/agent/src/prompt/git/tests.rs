use super::*;

fn output(stdout: impl Into<Vec<u8>>, stderr: &str) -> ExecResult {
    ExecResult::new(0).with_outputs(Output::from(stdout.into()), Output::from(stderr), Output::default())
}

fn parse_in(directory: &str, result: &ExecResult) -> Option<GitContext> {
    parse(result, Path::new(directory)).unwrap()
}

#[test]
fn complete_output_is_parsed() {
    let stdout = b"/p\nsrc/\n\0# branch.oid 1a2b3c4\n# branch.head main\n\
        # branch.ab +0 -0\n1 .M N... 100644 100644 100644 a b kept.rs\n2 R. N... 100644 100644 100644 a b R100 n\to\n\
        u UU N... 1 2 3 4 a b c both.rs\n? new.rs\n? other/\n";
    let stderr = "warning: something else\n* 1a2b3c4 Newest\n* 0f0f0f0 Older\n\0";
    let expected = GitContext::new("/p")
        .with_branch("main")
        .with_status(3, 2)
        .with_recent_commits(["1a2b3c4 Newest", "0f0f0f0 Older"]);
    assert_eq!(parse_in("/p/src", &output(stdout, stderr)), Some(expected));
}

#[test]
fn truncated_output_leaves_facts_unknown() {
    for (stdout, stderr, expected) in [
        ("", "", None),
        ("/p\n", "", None),
        ("/p\n\n", "", None),
        ("", "fatal: not a git repository\n\0", None),
        ("/p\n\n\0", "", Some(GitContext::new("/p"))),
        ("/p\n\n\0", "* 1a2b3c4 One\n", Some(GitContext::new("/p").with_recent_commits(["1a2b3c4 One"]))),
        ("/p\n\n\0# branch.head main\n? a\n", "", Some(GitContext::new("/p").with_branch("main"))),
    ] {
        let result = output(stdout, stderr).with_timed_out(true);
        assert_eq!(parse_in("/p", &result), expected, "{stdout:?} {stderr:?}");
    }
}

#[test]
fn names_and_subjects_are_sanitized() {
    let subject = format!("\u{1b}[2J\u{202e}x\ty{}", "z".repeat(20_000));
    let commits = format!("* 1a2b3c4 {subject}\n\0");
    let git = parse_in("/p", &output("/p\n\n\0# branch.head a\u{7}b\u{200b}c\n", &commits)).unwrap();
    assert_eq!(git.branch.unwrap(), "abc");
    let commit = git.recent_commits.into_iter().next().unwrap();
    assert!(commit.starts_with("1a2b3c4 [2Jx yzzz"), "{commit}");
    assert_eq!(commit.chars().count(), MAX_LINE + 1, "truncated, with a marker");

    let many = "* 1a2b3c4 x\n".repeat(50);
    assert_eq!(parse_in("/p", &output("/p\n\n\0", &many)).unwrap().recent_commits.len(), COMMITS);
    let invalid = parse_in("/p", &output(b"/p\n\n\0# branch.head caf\xe9\n".as_slice(), "")).unwrap();
    assert_eq!(invalid.branch.unwrap(), "caf\u{fffd}");
}

#[test]
fn a_long_status_is_counted_completely() {
    let stdout = format!("/p\n\n\0# branch.head main\n{}", "? some/new/file\n".repeat(20_000));
    assert_eq!(
        parse_in("/p", &output(stdout, "")),
        Some(GitContext::new("/p").with_branch("main").with_status(0, 20_000))
    );
}

#[test]
fn the_commits_that_have_arrived_are_bounded() {
    let log = LogOutput::default();
    log.collect(&OutputChunk::new(OutputStream::Stdout, "? new\0"));
    assert_eq!(log.output(), Output::default());
    for _ in 0..3 * COMMITS {
        log.collect(&OutputChunk::new(OutputStream::Stderr, "x".repeat(MAX_RAW_LINE)));
    }
    assert_eq!(log.output().len(), (COMMITS * MAX_RAW_LINE) as u64);
}

#[test]
fn the_root_is_an_ancestor_of_the_working_directory() {
    for (working_directory, location, expected) in [
        ("/p", "/p\n\n", Some("/p")),
        ("/p/a/b", "/p\na/b/\n", Some("/p")),
        // `/tmp` is a link to `/private/tmp`.
        ("/tmp/p/a", "/private/tmp/p\na/\n", Some("/tmp/p")),
        ("/tmp/p", "/private/tmp/p\n\n", Some("/tmp/p")),
        // The working directory is itself a link into the project.
        ("/linked", "/p\na/\n", Some("/p")),
        ("/", "/\n\n", Some("/")),
        // A path with a line break is ambiguous.
        ("/p\nq/a", "/p\nq\na/\n", None),
        ("/p", "relative\n\n", None),
        ("/p", "/p", None),
    ] {
        let root = root_of(location.as_bytes(), Path::new(working_directory));
        assert_eq!(root.as_deref(), expected.map(Path::new), "{working_directory:?} {location:?}");
    }
}
