use pintle_env::LocalEnvironment;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::profile::ProviderProfile;

/// A temporary project with `src/deep` as its working directory.
struct Project {
    root: TempDir,
    env: LocalEnvironment,
}

impl Project {
    async fn with(files: &[(&str, &[u8])]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let env = LocalEnvironment::builder(root.path().join("src/deep")).build().unwrap();
        let project = Self { root, env };
        for (name, bytes) in files {
            project.env.write(&project.root.path().join(name), bytes).await.unwrap();
        }
        project
    }

    async fn discover(&self, names: &[&str]) -> ProjectDocs {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        ProjectDocs::discover(&self.env, Some(self.root.path()), &names).await
    }

    /// Relative path, text and truncation of each document.
    fn shown(&self, docs: &ProjectDocs) -> Vec<(String, String, bool)> {
        let root = format!("{}/", self.root.path().display());
        let relative = |path: &str| path.strip_prefix(&root).expect("the path is absolute").to_owned();
        let show = |doc: &ProjectDoc| (relative(&doc.path), doc.content.clone(), doc.truncated);
        docs.documents.iter().map(show).collect()
    }

    /// Skipped files, one per line.
    fn skipped(&self, docs: &ProjectDocs) -> String {
        let lines = docs.skipped.iter().map(|file| format!("{}: {}", file.path, file.reason));
        lines.collect::<Vec<_>>().join("\n").replace(&self.root.path().display().to_string(), "ROOT")
    }

    async fn contents(&self, names: &[&str]) -> Vec<String> {
        self.discover(names).await.documents.into_iter().map(|doc| doc.content).collect()
    }
}

#[tokio::test]
async fn each_profile_reads_its_own_files_root_first() {
    let project = Project::with(&[
        ("AGENTS.md", b"root agents\n"),
        ("CLAUDE.md", b"root claude\n"),
        ("GEMINI.md", b"root gemini\n"),
        (".codex/instructions.md", b"root codex\n"),
        ("src/AGENTS.md", b"src agents\n"),
        ("src/deep/AGENTS.md", b"deep agents\n"),
        ("src/deep/CLAUDE.md", b"deep claude\n"),
        ("src/deep/below/AGENTS.md", b"not an ancestor\n"),
        ("src/beside/AGENTS.md", b"not an ancestor\n"),
    ])
    .await;
    for (profile, expected) in [
        (ProviderProfile::openai("m"), ["root agents", "root codex", "src agents", "deep agents"].as_slice()),
        (
            ProviderProfile::anthropic("m"),
            &["root agents", "root claude", "src agents", "deep agents", "deep claude"],
        ),
        (ProviderProfile::gemini("m"), &["root agents", "root gemini", "src agents", "deep agents"]),
        (ProviderProfile::openai_compatible("m"), &["root agents", "src agents", "deep agents"]),
    ] {
        let names: Vec<&str> = profile.doc_files.iter().map(String::as_str).collect();
        assert_eq!(project.contents(&names).await, expected, "{}", profile.id);
    }
    let docs = project.discover(&["AGENTS.md"]).await;
    assert_eq!(project.shown(&docs)[2], ("src/deep/AGENTS.md".into(), "deep agents".into(), false));
    assert!(!docs.truncated);
}

#[tokio::test]
async fn without_a_root_only_the_working_directory_is_read() {
    let project = Project::with(&[("AGENTS.md", b"above"), ("src/deep/AGENTS.md", b"here")]).await;
    let names = ["AGENTS.md".to_owned()];
    let docs = ProjectDocs::discover(&project.env, None, &names).await;
    assert_eq!(project.shown(&docs), [("src/deep/AGENTS.md".into(), "here".into(), false)]);
}

#[tokio::test]
async fn an_unrelated_root_is_read_before_the_working_directory() {
    let project = Project::with(&[("src/AGENTS.md", b"between"), ("src/deep/AGENTS.md", b"here")]).await;
    let elsewhere = Project::with(&[("AGENTS.md", b"root")]).await;
    let names = ["AGENTS.md".to_owned()];
    let docs = ProjectDocs::discover(&project.env, Some(elsewhere.root.path()), &names).await;
    let contents: Vec<_> = docs.documents.iter().map(|doc| doc.content.as_str()).collect();
    assert_eq!(contents, ["root", "here"]);
}

#[tokio::test]
async fn unusable_documents_are_listed_as_skipped() {
    let project = Project::with(&[
        ("AGENTS.md/inside.txt", b"AGENTS.md is a directory here"),
        ("CLAUDE.md", b"text\0binary"),
        ("GEMINI.md", b" \n\n\t"),
        (".codex", b"a file instead of a directory"),
        ("src/AGENTS.md", b"\xef\xbb\xbf\r\n  indented\r\nlast  \n\n"),
        ("src/CLAUDE.md", b"caf\xe9"),
        ("src/deep/AGENTS.md", b"twice"),
        ("src/deep/CLAUDE.md", b"twice\n"),
    ])
    .await;
    let at = |name: &str| project.root.path().join(name);
    std::os::unix::fs::symlink(at("LOOP.md"), at("LOOP.md")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("src/LOOP.md")).unwrap();
    std::os::unix::net::UnixListener::bind(at("src/deep/LOOP.md")).unwrap();
    let docs =
        project.discover(&["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".codex/instructions.md", "LOOP.md"]).await;
    assert_eq!(
        project.shown(&docs),
        [
            ("src/AGENTS.md".into(), "  indented\r\nlast".into(), false),
            ("src/CLAUDE.md".into(), "caf\u{fffd}".into(), false),
            ("src/deep/AGENTS.md".into(), "twice".into(), false),
        ]
    );
    assert!(!docs.truncated);
    insta::assert_snapshot!(project.skipped(&docs), @r"
    ROOT/AGENTS.md: ROOT/AGENTS.md is a directory, expected a file
    ROOT/CLAUDE.md: it is binary: it contains a zero byte
    ROOT/LOOP.md: cannot look at ROOT/LOOP.md: more than 40 symbolic links
    ROOT/src/deep/LOOP.md: cannot read ROOT/src/deep/LOOP.md: No such device or address (os error 6)
    ");
}

#[tokio::test]
async fn links_out_of_the_project_are_skipped() {
    let project = Project::with(&[("doc/rules.md", b"rules"), ("src/deep/file", b"")]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    project.env.write(&elsewhere.path().join("credentials"), b"key = secret").await.unwrap();
    let at = |name: &str| project.root.path().join(name);
    std::os::unix::fs::symlink("doc/rules.md", at("AGENTS.md")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("credentials"), at("src/AGENTS.md")).unwrap();
    let docs = project.discover(&["AGENTS.md"]).await;
    assert_eq!(project.shown(&docs), [("AGENTS.md".into(), "rules".into(), false)]);
    insta::assert_snapshot!(project.skipped(&docs), @"ROOT/src/AGENTS.md: it is a link that leads out of the project");
}

#[tokio::test]
async fn only_the_start_of_a_huge_document_is_read() {
    let project = Project::with(&[("AGENTS.md", &b"x".repeat(40 * 1024))]).await;
    let path = project.root.path().join("AGENTS.md");
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 30).unwrap();
    let docs = project.discover(&["AGENTS.md"]).await;
    let [document] = docs.documents.as_slice() else { panic!("{:?}", docs.skipped) };
    assert_eq!((document.content.len(), document.truncated), (PROJECT_DOC_BUDGET, true));
    project.env.write(&path, b"\0").await.unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 30).unwrap();
    let docs = project.discover(&["AGENTS.md"]).await;
    assert!(docs.documents.is_empty());
    assert_eq!(project.skipped(&docs), "ROOT/AGENTS.md: it is binary: it contains a zero byte");
}

#[tokio::test]
async fn the_root_is_truncated_before_nearer_documents() {
    const KIB: usize = 1024;
    // Sizes of the root's document, the intermediate and the nearest one; kept bytes; truncation.
    for (sizes, kept, truncated) in [
        ([32 * KIB, 0, 0], [32 * KIB, 0, 0], [false, false, false]),
        ([32 * KIB + 1, 0, 0], [32 * KIB, 0, 0], [true, false, false]),
        ([1 << 20, 0, 0], [32 * KIB, 0, 0], [true, false, false]),
        ([20 * KIB, 0, 12 * KIB], [20 * KIB, 0, 12 * KIB], [false, false, false]),
        ([20 * KIB, 5 * KIB, 10 * KIB], [17 * KIB, 5 * KIB, 10 * KIB], [true, false, false]),
        ([KIB, 30 * KIB, 10 * KIB], [0, 22 * KIB, 10 * KIB], [true, true, false]),
        ([KIB, 0, 32 * KIB], [0, 0, 32 * KIB], [true, false, false]),
    ] {
        let texts = sizes.map(|size| vec![b'x'; size]);
        let project = Project::with(&[
            ("AGENTS.md", &texts[0]),
            ("src/AGENTS.md", &texts[1]),
            ("src/deep/AGENTS.md", &texts[2]),
        ])
        .await;
        let docs = project.discover(&["AGENTS.md"]).await;
        let present: Vec<usize> = (0..3).filter(|index| sizes[*index] > 0).collect();
        let found: Vec<_> = docs.documents.iter().map(|doc| (doc.content.len(), doc.truncated)).collect();
        let expected: Vec<_> = present.iter().map(|index| (kept[*index], truncated[*index])).collect();
        assert_eq!(found, expected, "{sizes:?}");
        assert_eq!(docs.truncated, truncated.contains(&true), "{sizes:?}");
    }
}

#[tokio::test]
async fn truncation_never_splits_a_character() {
    for start in 0..4 {
        let text = format!("{}{}", "a".repeat(start), "😀".repeat(PROJECT_DOC_BUDGET / 4 + 10));
        let project = Project::with(&[("AGENTS.md", text.as_bytes())]).await;
        let content = project.contents(&["AGENTS.md"]).await.remove(0);
        assert!(text.starts_with(&content), "only the end is missing");
        assert!((PROJECT_DOC_BUDGET - 3..=PROJECT_DOC_BUDGET).contains(&content.len()), "{}", content.len());
    }
}

#[test]
fn documents_round_trip_through_json() {
    let docs = ProjectDocs::new(vec![
        ProjectDoc::new("/p/AGENTS.md", "root").with_truncated(true),
        ProjectDoc::new("/p/a/AGENTS.md", "near"),
    ])
    .with_skills(vec![Skill::new("x", "d", "/p/.agents/skills/x/SKILL.md")]);
    assert!(docs.truncated);
    let json = serde_json::to_string(&docs).unwrap();
    assert_eq!(serde_json::from_str::<ProjectDocs>(&json).unwrap(), docs);
}

proptest! {
    #[test]
    fn truncation_keeps_prefixes_within_the_budget(texts in prop::collection::vec("[aé€😀]{0,30}", 0..6), budget in 0usize..100) {
        let mut remaining = budget;
        let truncated: Vec<ProjectDoc> =
            texts.iter().map(|text| ProjectDoc::new("p", text.as_str()).truncate_to(&mut remaining)).collect();
        let kept: usize = truncated.iter().map(|doc| doc.content.len()).sum();
        prop_assert_eq!(kept + remaining, budget);
        for (doc, text) in truncated.iter().zip(&texts) {
            prop_assert!(text.starts_with(&doc.content));
            prop_assert_eq!(doc.truncated, doc.content.len() < text.len());
        }
    }
}
