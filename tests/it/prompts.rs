//! Prompts that depend on the working directory: the same bytes for the same tree, with the parts that change after
//! those that do not.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use pintle_agent::{
    Clock, EventKind, LoadedProject, ProviderProfile, Session, SessionConfig, Timestamp, Toolset,
};
use pintle_env::LocalEnvironment;
use pintle_testkit::{Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{KEY, client, in_each_dialect, profile};

in_each_dialect![
    equal_sessions_send_the_same_bytes,
    another_day_changes_only_the_date,
    facts_of_the_tree_follow_the_stable_prompt,
    loaded_documents_are_reported,
];

/// Creates a repository with a document, a skill and a modified file.
fn repository() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "--quiet", "--initial-branch", "main"]);
    write(directory.path(), "AGENTS.md", "Run `make test`.\n");
    write(
        directory.path(),
        ".agents/skills/forms/SKILL.md",
        "---\nname: forms\ndescription: Fill in forms.\n---\nUse pdftk.\n",
    );
    commit(directory.path(), "Start");
    write(directory.path(), "new.txt", "new\n");
    directory
}

fn write(directory: &Path, name: &str, content: &str) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn commit(directory: &Path, subject: &str) {
    git(directory, &["add", "--all"]);
    git(
        directory,
        &["-c", "user.name=A", "-c", "user.email=a@example.invalid", "commit", "--quiet", "-m", subject],
    );
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(directory);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(command.status().unwrap().success(), "git {arguments:?}");
}

/// A clock with a fixed time.
#[derive(Debug)]
struct FixedClock(Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

const MORNING: &str = "2026-11-21T00:00:00.001Z";
const EVENING: &str = "2026-11-21T23:59:59.999Z";
const TOMORROW: &str = "2026-11-22T00:00:00Z";

const TOOLSETS: [Toolset; 2] = [Toolset::Spec, Toolset::Native];

/// Returns the only request of a session in `directory`, and the reported documents.
async fn session(dialect: Dialect, directory: &Path) -> (RecordedRequest, Vec<LoadedProject>) {
    session_at(MORNING, profile(dialect), dialect, directory).await
}

async fn session_at(
    time: &str,
    profile: ProviderProfile,
    dialect: Dialect,
    directory: &Path,
) -> (RecordedRequest, Vec<LoadedProject>) {
    let script = Script::parse("name = \"one\"\n[[turn]]\ntext = \"Done.\"\n").unwrap();
    let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
    let env = LocalEnvironment::with_host_env(directory, std::env::vars_os()).unwrap();
    let builder = Session::builder(client(&server, dialect, KEY), profile, Arc::new(env));
    let builder = builder.clock(Arc::new(FixedClock(time.parse().unwrap())));
    let config = SessionConfig::default().with_user_instructions("Be brief.");
    let session = builder.config(config).build().unwrap();
    let mut run = session.submit("Say hello");
    let mut loaded = Vec::new();
    while let Some(event) = run.next().await {
        if let EventKind::ProjectLoaded(project) = event.kind {
            loaded.push(project);
        }
    }
    assert!(run.await.unwrap().error.is_none());
    session.close().await;
    let mut requests = server.requests();
    assert_eq!(requests.len(), 1);
    let request = requests.remove(0);
    assert_eq!(request.violations, [], "{}", request.body);
    (request, loaded)
}

/// Returns the system prompt in the body.
fn prompt(dialect: Dialect, body: &Value) -> String {
    let texts = |list: &Value| -> String {
        list.as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect()
    };
    match dialect {
        Dialect::OpenAiResponses => body["instructions"].as_str().unwrap().to_owned(),
        Dialect::AnthropicMessages => texts(&body["system"]),
        Dialect::Gemini => texts(&body["systemInstruction"]["parts"]),
        Dialect::ChatCompletions => body["messages"][0]["content"].as_str().unwrap().to_owned(),
    }
}

async fn equal_sessions_send_the_same_bytes(dialect: Dialect) {
    let directory = repository();
    for toolset in TOOLSETS {
        let at = async |time| {
            session_at(time, profile(dialect).with_toolset(toolset), dialect, directory.path()).await.0
        };
        let (morning, evening) = (at(MORNING).await, at(EVENING).await);
        let (one, other) = (morning.raw_body, evening.raw_body);
        assert!(
            one == other,
            "{toolset:?}:\n{}\n{}",
            String::from_utf8_lossy(&one),
            String::from_utf8_lossy(&other)
        );
    }
}

/// Nothing else in a prompt depends on the time or the session.
async fn another_day_changes_only_the_date(dialect: Dialect) {
    let directory = repository();
    for toolset in TOOLSETS {
        let at = async |time| {
            session_at(time, profile(dialect).with_toolset(toolset), dialect, directory.path()).await.0
        };
        let (today, tomorrow) = (at(EVENING).await, at(TOMORROW).await);
        let (one, other) = (prompt(dialect, &today.body), prompt(dialect, &tomorrow.body));
        assert_eq!(one.matches("2026-11-2").count(), 1, "{one}");
        assert_eq!(one.replace("2026-11-21", "2026-11-22"), other, "{toolset:?}");
        assert_eq!(today.body["tools"], tomorrow.body["tools"]);
    }
}

async fn facts_of_the_tree_follow_the_stable_prompt(dialect: Dialect) {
    for toolset in TOOLSETS {
        let directory = repository();
        let here = async || {
            session_at(MORNING, profile(dialect).with_toolset(toolset), dialect, directory.path()).await.0
        };
        let before = here().await;
        commit(directory.path(), "More");
        git(directory.path(), &["switch", "--quiet", "--create", "topic"]);
        let after = here().await;
        let (one, other) = (prompt(dialect, &before.body), prompt(dialect, &after.body));
        let (stable, facts) = one.split_once("\nGit branch: main\n").expect("the branch is told");
        let (stable_after, facts_after) =
            other.split_once("\nGit branch: topic\n").expect("the branch is told");
        assert_eq!(stable, stable_after, "{toolset:?}");
        let status = "Git status when the session started: ";
        assert!(facts.starts_with(&format!("{status}0 modified, 1 untracked\n")), "{facts}");
        assert!(facts_after.starts_with(&format!("{status}clean\n")), "{facts_after}");
        let (_, rest) = facts.split_once("\n</environment>\n").expect("they end the environment's block");
        assert!(facts_after.ends_with(rest), "what follows them is the same: {facts_after}");
        assert_eq!(before.body["tools"], after.body["tools"]);
        if dialect == Dialect::AnthropicMessages {
            let blocks = before.body["system"].as_array().unwrap();
            assert_eq!(blocks.len(), 2);
            assert_eq!(blocks[0]["text"].as_str(), Some(stable), "it ends behind its own cache point");
            assert!(blocks.iter().all(|block| block.get("cache_control").is_some()), "{blocks:?}");
            let points = String::from_utf8_lossy(&before.raw_body).matches("cache_control").count();
            assert!(points <= 4, "{points} cache points, and four are allowed");
        }
    }
}

async fn loaded_documents_are_reported(dialect: Dialect) {
    let directory = repository();
    std::fs::create_dir_all(directory.path().join("src/AGENTS.md")).unwrap();
    let (request, loaded) = session(dialect, &directory.path().join("src")).await;
    let [project] = loaded.as_slice() else { panic!("{loaded:?}") };
    let documents: Vec<_> =
        project.documents.iter().map(|document| (document.bytes, document.truncated)).collect();
    assert_eq!(documents, [("Run `make test`.".len(), false)]);
    assert!(project.documents[0].path.ends_with("/AGENTS.md"));
    assert_eq!(project.skills.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), ["forms"]);
    assert_eq!(project.skipped.len(), 1);
    assert!(project.skipped[0].path.ends_with("/src/AGENTS.md"), "{:?}", project.skipped);
    let prompt = prompt(dialect, &request.body);
    assert!(prompt.contains("Run `make test`.") && prompt.contains("`forms`"), "{prompt}");
    assert!(!prompt.contains("pdftk"), "a skill's body is read on demand");
    assert!(prompt.ends_with("# User instructions\n\nBe brief."), "{prompt}");
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(session(dialect, empty.path()).await.1, [], "nothing loaded, nothing told");
}
