//! Section 8.6 of the client specification in real sessions: the default configuration, the prompt and the tools of each
//! profile, in a plain directory and in a git work tree.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use pintle_agent::{EventKind, Session, SessionConfig};
use pintle_env::LocalEnvironment;
use pintle_llm::Usage;
use pintle_testkit::{Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions};
use serde_json::Value;

use crate::client::caching::{expect_complete_reads, expect_no_cache_settings};
use crate::harness::{Harness, KEY, client, in_each_dialect, profile};

in_each_dialect!(most_of_the_prompt_is_cached_from_turn_five);

/// Turns of two tasks: six, of which five read a file, and four, of which three do.
fn tasks() -> String {
    let task = |parts: std::ops::Range<usize>| {
        let read = |part: usize| {
            format!(
                "[[turn]]\ntext = \"I'll read part {part}.\"\nreasoning = \"There is more to read.\"\n\
                 [[turn.call]]\ntool = \"read_file\"\narguments = {{ file_path = \"part_{part}.rs\" }}\n"
            )
        };
        parts.map(read).collect::<String>() + "[[turn]]\ntext = \"That is all.\"\n"
    };
    task(0..5) + &task(5..8)
}

/// Runs both tasks. Returns the usage of each model call, and the requests.
async fn session(dialect: Dialect, is_work_tree: bool) -> (Vec<Usage>, Vec<RecordedRequest>) {
    let harness = Harness::new(dialect, &tasks()).await;
    for part in 0..8 {
        harness.write(&format!("part_{part}.rs"), &format!("fn part_{part}() {{}}\n").repeat(8));
    }
    if is_work_tree {
        git(harness.directory.path(), &["init", "--quiet", "--initial-branch", "main"]);
        commit(harness.directory.path());
    }
    let mut usages = Vec::new();
    for task in ["Read the first parts.", "Read the others."] {
        let (events, _) = harness.run(task).await;
        usages.extend(events.into_iter().filter_map(|event| match event.kind {
            EventKind::ModelResponse { usage, .. } => Some(usage),
            _ => None,
        }));
    }
    let requests = harness.requests();
    harness.finish().await;
    assert_eq!((usages.len(), requests.len()), (10, 10));
    (usages, requests)
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(directory);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(command.status().unwrap().success(), "git {arguments:?}");
}

/// Commits all files, or nothing.
fn commit(directory: &Path) {
    git(directory, &["add", "--all"]);
    let author = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"];
    let message = ["commit", "--quiet", "--allow-empty", "-m", "Next"];
    git(directory, &[&author[..], &message[..]].concat());
}

async fn most_of_the_prompt_is_cached_from_turn_five(dialect: Dialect) {
    for is_work_tree in [false, true] {
        let (usages, requests) = session(dialect, is_work_tree).await;
        for (turn, usage) in usages.iter().enumerate().skip(4) {
            let (read, prompt) = (usage.cache_read_tokens.unwrap_or(0), usage.input_tokens);
            assert!(read * 2 > prompt, "turn {}: {read} of {prompt}", turn + 1);
        }
        // Anthropic needs cache points and caches up to the last one.
        if dialect != Dialect::AnthropicMessages {
            expect_no_cache_settings(&requests);
            expect_complete_reads(&usages);
        }
    }
}

/// Returns the indices of the elements with a cache point.
fn points(list: &Value) -> Vec<usize> {
    let elements = list.as_array().expect("a list").iter().enumerate();
    elements.filter(|(_, element)| element.get("cache_control").is_some()).map(|(index, _)| index).collect()
}

/// The documented rule (decision 0010): in a plain directory the tools have a point; in a work tree, the two parts of the
/// prompt have one each, and the tools none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anthropic_cache_points_depend_on_the_parts_of_the_prompt() {
    for is_work_tree in [false, true] {
        let (_, requests) = session(Dialect::AnthropicMessages, is_work_tree).await;
        for request in &requests {
            let tools = request.body["tools"].as_array().unwrap().len();
            let (of_tools, of_system) =
                if is_work_tree { (vec![], vec![0, 1]) } else { (vec![tools - 1], vec![0]) };
            assert_eq!(points(&request.body["tools"]), of_tools, "work tree: {is_work_tree}");
            assert_eq!(points(&request.body["system"]), of_system, "work tree: {is_work_tree}");
            assert_eq!(request.body["system"].as_array().unwrap().len(), of_system.len());
            let messages = request.body["messages"].as_array().unwrap();
            let of_user: Vec<&Value> = messages.iter().filter(|message| message["role"] == "user").collect();
            for (from_the_end, message) in of_user.iter().rev().enumerate() {
                let last = message["content"].as_array().unwrap().len() - 1;
                let expected = if from_the_end < 2 { vec![last] } else { vec![] };
                assert_eq!(points(&message["content"]), expected, "user message {from_the_end} from the end");
            }
            let all = String::from_utf8_lossy(&request.raw_body).matches("\"cache_control\":").count();
            assert_eq!(all, 2 + of_user.len().min(2), "no point elsewhere");
            assert_eq!(request.header("anthropic-beta"), Some("prompt-caching-2024-07-31"));
        }
    }
}

/// Runs a session of one turn in `directory`. Returns its usage and its request.
async fn first_turn(
    server: &ScriptedServer,
    directory: &Path,
    instructions: &str,
) -> (Usage, RecordedRequest) {
    let dialect = Dialect::AnthropicMessages;
    let env = Arc::new(LocalEnvironment::with_host_env(directory, std::env::vars_os()).unwrap());
    let config = SessionConfig::default().with_user_instructions(instructions);
    let builder = Session::builder(client(server, dialect, KEY), profile(dialect), env);
    let session = builder.with_config(config).build().unwrap();
    let mut run = session.submit("Say hello");
    let mut usage = None;
    while let Some(event) = run.next().await {
        if let EventKind::ModelResponse { usage: reported, .. } = event.kind {
            usage = Some(reported);
        }
    }
    assert!(run.await.unwrap().error.is_none());
    session.close().await;
    (usage.expect("a response"), server.requests().pop().expect("a request"))
}

/// Returns the tokens of these elements as the server counts them: four bytes each, without cache points.
fn tokens<'a>(elements: impl IntoIterator<Item = &'a Value>) -> u64 {
    let bytes = elements.into_iter().map(|element| {
        let mut element = element.clone();
        element.as_object_mut().expect("an object").remove("cache_control");
        element.to_string().len()
    });
    bytes.sum::<usize>() as u64 / 4
}

/// Tools are cached in both cases: by their own point, or by the point after the stable part of the prompt, which the API
/// reads after them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_anthropic_session_reads_the_tools_from_the_cache() {
    for is_work_tree in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        if is_work_tree {
            git(directory.path(), &["init", "--quiet", "--initial-branch", "main"]);
            commit(directory.path());
        }
        let script = Script::parse("name = \"one\"\n[[turn]]\ntext = \"Hello.\"\n").unwrap();
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let (first, _) = first_turn(&server, directory.path(), "Be brief.").await;
        assert_eq!(first.cache_read_tokens, Some(0));
        // The end of the prompt changes: in a work tree the git facts, and everywhere the instructions.
        std::fs::write(directory.path().join("new.txt"), "new").unwrap();
        if is_work_tree {
            git(directory.path(), &["switch", "--quiet", "--create", "topic"]);
        }
        let (second, request) = first_turn(&server, directory.path(), "Be kind.").await;
        let tools = request.body["tools"].as_array().unwrap();
        let stable = request.body["system"].as_array().unwrap().iter().take(usize::from(is_work_tree));
        assert!(tokens(tools) > 1_000, "{} tools", tools.len());
        let read = second.cache_read_tokens;
        assert_eq!(read, Some(tokens(tools.iter().chain(stable))), "work tree: {is_work_tree}");
        assert!(second.cache_write_tokens.is_some_and(|written| written > 0), "{second:?}");
    }
}
