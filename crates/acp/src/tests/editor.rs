//! Files and terminals of a client.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pintle_env::{
    CommandScript, EnvError, ExecRequest, ExecutionEnvironment, ExecutionEnvironmentExt as _,
    LocalEnvironment, MemoryEnvironment, contract,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::outbox::{Outbox, write};
use crate::rpc::{self, IncomingMessage, RpcError};
use crate::{EditorEnvironment, TerminalSwitch};

/// Editor that answers requests: with the files of an environment, of which some have unsaved changes.
struct Editor {
    disk: Arc<dyn ExecutionEnvironment>,
    unsaved: BTreeMap<String, String>,
    /// What it was asked for.
    asked: Vec<String>,
    /// Whether commands never end.
    hangs: bool,
    /// Whether its user rejects every write.
    rejects: bool,
}

impl Editor {
    /// Answers; `None` if it never does.
    async fn answer(&mut self, method: &str, params: &Value) -> Option<Result<Value, RpcError>> {
        let is_killed = self.asked.contains(&"terminal/kill".to_owned());
        if method == "terminal/wait_for_exit" && self.hangs && !is_killed {
            self.asked.push(method.to_owned());
            return None;
        }
        Some(self.answer_now(method, params).await)
    }

    async fn answer_now(&mut self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let path = params["path"].as_str().unwrap_or_default();
        self.asked.push(format!("{method} {path}").trim_end().to_owned());
        let failed = |error: EnvError| RpcError::new(RpcError::INTERNAL, error.to_string());
        match method {
            "fs/read_text_file" => {
                if let Some(text) = self.unsaved.get(path) {
                    return Ok(json!({"content": text}));
                }
                let text = self.disk.read_file(Path::new(path), None, None).await.map_err(failed)?;
                Ok(json!({"content": text.replace("\r\n", "\n")}))
            }
            "fs/write_text_file" if self.rejects => {
                Err(RpcError::new(RpcError::INTERNAL, "rejected by the user"))
            }
            "fs/write_text_file" => {
                self.unsaved.remove(path);
                let content = params["content"].as_str().unwrap();
                self.disk.write_file(Path::new(path), content).await.map_err(failed)?;
                Ok(json!({}))
            }
            // The system of an editor refuses to start a program with a longer argument.
            "terminal/create" if has_long_argument(params) => {
                Err(RpcError::new(RpcError::INTERNAL, "the argument list is too long"))
            }
            "terminal/create" => Ok(json!({"terminalId": "t1"})),
            "terminal/wait_for_exit" => Ok(json!({"exitCode": 3})),
            "terminal/output" => Ok(json!({"output": "hello\n", "truncated": false})),
            "terminal/kill" | "terminal/release" => Ok(json!({})),
            _ => Err(RpcError::new(RpcError::METHOD_NOT_FOUND, "what?")),
        }
    }
}

/// Returns true if a program is to be started with an argument of 128 KiB.
fn has_long_argument(params: &Value) -> bool {
    let arguments = params["args"].as_array().unwrap().iter();
    arguments.filter_map(Value::as_str).any(|argument| argument.len() >= 128 << 10)
}

/// Connects an environment to an editor, which runs as long as the result is kept.
fn connect(
    editor: Editor,
    terminals: bool,
) -> (EditorEnvironment, Arc<tokio::sync::Mutex<Editor>>, JoinSet<()>) {
    let (outbox, outgoing) = Outbox::new();
    let client = Client::new(outbox);
    let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    client.set_capabilities(&serde_json::from_value(capabilities).unwrap());
    let mut questions = client.announce("s");
    let switch = TerminalSwitch::new(terminals);
    let environment = EditorEnvironment::new(Arc::clone(&editor.disk), client.clone(), "s", switch);
    let editor = Arc::new(tokio::sync::Mutex::new(editor));
    let (near, far) = tokio::io::duplex(1 << 16);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Some(question) = questions.recv().await {
            let _ = question.answer.send(question.command != "git status");
        }
    });
    tasks.spawn(async move {
        let _ = write(outgoing, near).await;
    });
    let answering = Arc::clone(&editor);
    tasks.spawn(async move {
        let mut lines = crate::line_reader::LineReader::new(tokio::io::BufReader::new(far), usize::MAX);
        while let Ok(Some(Ok(line))) = lines.next().await {
            let IncomingMessage::Request { id, method, params } = rpc::parse(&line) else { continue };
            let mut editor = answering.lock().await;
            if let Some(result) = editor.answer(&method, &params).await {
                client.resolve_response(&id, result);
            }
        }
    });
    (environment, editor, tasks)
}

fn editor(disk: impl ExecutionEnvironment + 'static) -> Editor {
    Editor { disk: Arc::new(disk), unsaved: BTreeMap::new(), asked: Vec::new(), hangs: false, rejects: false }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_of_environments_holds() {
    let directory = tempfile::tempdir().unwrap();
    let local = LocalEnvironment::builder(directory.path()).build().unwrap();
    let (environment, editor, _tasks) = connect(editor(local), false);
    contract::files(&environment, &directory.path().join("files")).await.unwrap();
    contract::search(&environment, &directory.path().join("search")).await.unwrap();
    let asked = &editor.lock().await.asked;
    let has = |method: &str| asked.iter().any(|line| line.starts_with(method));
    assert!(has("fs/read_text_file") && has("fs/write_text_file"), "{asked:?}");
}

#[tokio::test]
async fn unsaved_changes_are_read_and_writes_go_to_the_editor() {
    let disk = MemoryEnvironment::new("/w");
    disk.write(Path::new("/w/a.txt"), b"saved\n").await.unwrap();
    disk.write(Path::new("/w/crlf.txt"), b"one\r\ntwo\r\n").await.unwrap();
    disk.write(Path::new("/w/bin"), b"\x00\x01").await.unwrap();
    let mut editor = editor(disk);
    editor.unsaved.insert("/w/a.txt".to_owned(), "one\ntwo\nthree\n".to_owned());
    let (environment, editor, _tasks) = connect(editor, false);
    let read = async |offset, limit| environment.read_file(Path::new("a.txt"), offset, limit).await.unwrap();
    assert_eq!(read(None, None).await, "one\ntwo\nthree\n");
    assert_eq!(read(Some(2), Some(1)).await, "two\n");
    assert_eq!(read(Some(9), None).await, "");
    assert_eq!(environment.read(Path::new("/w/a.txt"), Some(4..7)).await.unwrap(), b"two");
    // Without changes, files are as they are on disk.
    assert_eq!(environment.read(Path::new("crlf.txt"), None).await.unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(environment.read(Path::new("bin"), None).await.unwrap(), b"\x00\x01");

    environment.write_file(Path::new("a.txt"), "mine\n").await.unwrap();
    assert_eq!(read(None, None).await, "mine\n");
    environment.write(Path::new("bin"), b"\x00\x02").await.unwrap();
    let asked = &editor.lock().await.asked;
    assert!(asked.contains(&"fs/write_text_file /w/a.txt".to_owned()), "{asked:?}");
    assert!(!asked.iter().any(|line| line.ends_with("bin")), "{asked:?}");
}

/// Reads by ranges could mix two versions of the text.
#[tokio::test]
async fn lines_of_a_large_file_are_one_request() {
    let disk = MemoryEnvironment::new("/w");
    disk.write(Path::new("/w/a.txt"), b"saved\n").await.unwrap();
    let mut editor = editor(disk);
    let text = "an unsaved line\n".repeat(200_000);
    editor.unsaved.insert("/w/a.txt".to_owned(), text.clone());
    let (environment, editor, _tasks) = connect(editor, false);
    assert!(environment.read_file(Path::new("a.txt"), None, None).await.unwrap() == text);
    assert_eq!(editor.lock().await.asked, ["fs/read_text_file /w/a.txt"]);
}

#[tokio::test]
async fn a_file_that_the_editor_refuses_does_not_stay() {
    for (path, kept, gone) in [
        ("a.txt", "/w", "/w/a.txt"),
        ("sub/deep/a.txt", "/w", "/w/sub"),
        ("there/deep/a.txt", "/w/there/b.txt", "/w/there/deep"),
    ] {
        let disk = MemoryEnvironment::new("/w");
        disk.write(Path::new("/w/there/b.txt"), b"b").await.unwrap();
        let mut editor = editor(disk);
        editor.rejects = true;
        let (environment, editor, _tasks) = connect(editor, false);
        let error = environment.write(Path::new(path), b"text\n").await.unwrap_err();
        assert!(matches!(error, EnvError::Io { action: "write", .. }), "{path}: {error}");
        let disk = Arc::clone(&editor.lock().await.disk);
        let found = disk.metadata(Path::new(gone)).await;
        assert!(matches!(found, Err(EnvError::NotFound { .. })), "{path}: {found:?}");
        disk.metadata(Path::new(kept)).await.unwrap();
        // Existing files and directories stay unchanged.
        environment.write(Path::new("there/b.txt"), b"other\n").await.unwrap_err();
        assert_eq!(disk.read(Path::new("/w/there/b.txt"), None).await.unwrap(), b"b", "{path}");
    }
}

#[tokio::test]
async fn commands_run_in_terminals_only_where_the_host_allows() {
    let disk =
        || MemoryEnvironment::new("/w").with_commands(|_| CommandScript::exit(0).stdout("from within\n"));
    for (is_on, code, output) in [(true, 3, "hello\n"), (false, 0, "from within\n")] {
        let (environment, editor, _tasks) = connect(editor(disk()), is_on);
        let result = environment.exec_command(ExecRequest::new("make")).await.unwrap();
        assert_eq!((result.exit_code, result.output.to_text_lossy().unwrap().as_str()), (code, output));
        assert_eq!(editor.lock().await.asked.is_empty(), !is_on);
        let long = ExecRequest::new(format!("make # {}", "x".repeat(300_000)));
        assert_eq!(environment.exec_command(long).await.unwrap().exit_code, code);
        let own = environment.exec_command(ExecRequest::new("git status")).await.unwrap();
        assert_eq!(own.output.to_text_lossy().unwrap(), "from within\n", "no call runs it");
    }
}

#[tokio::test]
async fn a_command_in_a_terminal_is_killed_at_its_time_out() {
    let mut editor = editor(MemoryEnvironment::new("/w"));
    editor.hangs = true;
    let (environment, editor, _tasks) = connect(editor, true);
    let request = ExecRequest::new("sleep 1000").with_timeout(Duration::from_millis(50));
    let result = environment.exec_command(request).await.unwrap();
    assert!(result.timed_out);
    let asked = editor.lock().await.asked.join(", ");
    let expected = "terminal/create, terminal/wait_for_exit, terminal/kill, terminal/wait_for_exit, terminal/output, \
                    terminal/release";
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn dropping_a_command_kills_it_and_releases_the_terminal() {
    let mut editor = editor(MemoryEnvironment::new("/w"));
    editor.hangs = true;
    let (environment, editor, _tasks) = connect(editor, true);
    let request = ExecRequest::new("sleep 1000").with_timeout(Duration::from_secs(600));
    let command = environment.exec_command(request);
    assert!(tokio::time::timeout(Duration::from_millis(200), command).await.is_err());
    let is_released = async {
        while editor.lock().await.asked.last().is_none_or(|last| last != "terminal/release") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), is_released).await.unwrap();
    assert!(editor.lock().await.asked.contains(&"terminal/kill".to_owned()));
}
