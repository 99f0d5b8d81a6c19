//! Prompts that depend on the working directory: the same bytes for the same tree, with the parts that change after
//! those that do not.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use pintle_agent::{
    Clock, EventKind, LoadedProject, ProviderProfile, Session, SessionConfig, Timestamp, Toolset,
};
use pintle_env::{ExecutionEnvironment as _, LocalEnvironment};
use pintle_testkit::{Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{KEY, client, in_each_dialect, profile};
use crate::test_profile::offered;

in_each_dialect![
    equal_sessions_send_the_same_bytes,
    another_day_changes_only_the_date,
    facts_of_the_tree_follow_the_stable_prompt,
    loaded_documents_are_reported,
    every_layer_is_sent_in_order,
    instructions_are_the_providers_own,
    skills_add_the_tool_that_loads_them,
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
    let builder = builder.with_clock(Arc::new(FixedClock(time.parse().unwrap())));
    let config = SessionConfig::default().with_user_instructions("Be brief.");
    let session = builder.with_config(config).build().unwrap();
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

/// The five layers of section 6.1, and the skills between the documents and the user's instructions.
async fn every_layer_is_sent_in_order(dialect: Dialect) {
    let own: &[&str] = match dialect {
        Dialect::OpenAiResponses => &["AGENTS.md", ".codex/instructions.md", "src/AGENTS.md"],
        Dialect::AnthropicMessages => &["AGENTS.md", "CLAUDE.md", "src/AGENTS.md"],
        Dialect::Gemini => &["AGENTS.md", "GEMINI.md", "src/AGENTS.md"],
        Dialect::ChatCompletions => &["AGENTS.md", "src/AGENTS.md"],
    };
    let directory = repository();
    for name in ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".codex/instructions.md", "src/AGENTS.md"] {
        write(directory.path(), name, &format!("Rules of {name}.\n"));
    }
    let source = directory.path().join("src");
    for toolset in TOOLSETS {
        let profile = profile(dialect).with_toolset(toolset);
        let (request, _) = session_at(MORNING, profile.clone(), dialect, &source).await;
        let prompt = prompt(dialect, &request.body);
        let rest =
            prompt.strip_prefix(profile.base_instructions.trim()).expect("the instructions come first");
        let rest = rest.strip_prefix("\n\n<environment>\n").expect("then the environment");
        let (environment, rest) = rest.split_once("\n</environment>\n\n# Tools\n").expect("then the tools");
        let (tools, rest) = rest.split_once("\n\n# Project instructions\n").expect("then the documents");
        let (documents, rest) = rest.split_once("\n\n# Skills\n").expect("then the skills");
        assert!(rest.ends_with("\n\n# User instructions\n\nBe brief."), "the user comes last: {rest}");
        assert_eq!(prompt.matches("\n# User instructions\n").count(), 1);

        assert_environment(environment, &profile, &source);
        let listed: Vec<(&str, &str)> =
            tools.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`: ")).collect();
        let offered = offered(&request);
        assert_eq!(listed.len(), offered.len(), "{toolset:?}: {tools}");
        for ((name, text), (offered, description)) in listed.iter().zip(&offered) {
            let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(name, offered, "{toolset:?}");
            assert!(!text.is_empty() && description.starts_with(text), "{toolset:?}, {name}: {text}");
        }
        let loaded: Vec<String> = documents
            .split("<project_document path=\"")
            .skip(1)
            .map(|block| block.replace(&format!("{}/", directory.path().display()), ""))
            .collect();
        let expected = own.iter().map(|name| format!("{name}\">\nRules of {name}.\n</project_document>"));
        let trimmed: Vec<&str> = loaded.iter().map(|block| block.trim_end()).collect();
        assert_eq!(trimmed, expected.collect::<Vec<_>>(), "{toolset:?}");
    }
}

/// Panics unless the block of section 6.3 has all its lines.
fn assert_environment(block: &str, profile: &ProviderProfile, directory: &Path) {
    let system = LocalEnvironment::builder(directory).build().unwrap();
    let facts = [
        ("Working directory", directory.to_str()),
        ("Is git repository", Some("true")),
        ("Platform", Some(system.platform())),
        ("OS version", Some(system.os_version())),
        ("Today's date", Some("2026-11-21")),
        ("Model", profile.display_name.as_deref().or(Some(&profile.model))),
        ("Knowledge cutoff", profile.knowledge_cutoff.as_deref()),
        ("Git branch", Some("main")),
    ];
    let lines: Vec<&str> = block.lines().collect();
    for (name, value) in facts {
        let found = lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        assert_eq!(found, value, "{name} in {block}");
    }
}

/// The topics of section 6.2, in the words of each profile.
async fn instructions_are_the_providers_own(dialect: Dialect) {
    let topics = |dialect: Dialect| match dialect {
        Dialect::OpenAiResponses => [
            "You work in a real repository on the user's machine",
            "# Editing with apply_patch",
            "*** Begin Patch",
            "\n# Code\n",
            "A failure is information.",
        ],
        Dialect::AnthropicMessages => [
            "You help with software work in the user's own repository",
            "# Choosing a tool",
            "Read a file before you edit or overwrite it.",
            "Keep `old_string` short",
            "\n# Writing code\n",
        ],
        Dialect::Gemini => [
            "specialised in software engineering",
            "`old_string` must be in the file once",
            "`GEMINI.md`",
            "# Workflow for software tasks",
            "# Core mandates",
        ],
        Dialect::ChatCompletions => [
            "You solve programming tasks in the user's repository by calling tools",
            "# How a turn works",
            "# The tools",
            "# Rules for code",
            "# The final answer",
        ],
    };
    let directory = tempfile::tempdir().unwrap();
    let (request, _) = session(dialect, directory.path()).await;
    let prompt = prompt(dialect, &request.body);
    let (base, _) = prompt.split_once("\n\n<environment>\n").expect("the instructions come first");
    assert!(base.starts_with("You are a coding agent run by Pintle"), "{base}");
    for other in Dialect::ALL {
        for topic in topics(other) {
            assert_eq!(base.contains(topic), other == dialect, "{topic:?} of {other} in {base}");
        }
    }
}

/// Without skills the tool would have no use.
async fn skills_add_the_tool_that_loads_them(dialect: Dialect) {
    let (with, without) = (repository(), tempfile::tempdir().unwrap());
    let offers = async |directory: &Path| {
        let native = profile(dialect).with_toolset(Toolset::Native);
        let (request, _) = session_at(MORNING, native, dialect, directory).await;
        offered(&request).iter().any(|(name, _)| ["Skill", "activate_skill"].contains(&name.as_str()))
    };
    let is_native = matches!(dialect, Dialect::AnthropicMessages | Dialect::Gemini);
    assert_eq!((offers(with.path()).await, offers(without.path()).await), (is_native, false));
}
