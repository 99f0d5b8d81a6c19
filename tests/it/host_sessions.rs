//! Attacks on sessions that `Host::open` opens with the default settings, which are the settings of the command.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use pintle::host::attendant::ClientAttendant;
use pintle::host::process_env::ProcessEnv;
use pintle::host::sessions::files::{SessionFiles, SessionPoint, with_session_files};
use pintle::host::{BaseUrl, Host, OpenSession, SessionSpec, Surface};
use pintle_agent::{ApprovalRequest, Approver, Decision, EventKind, Outcome};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use serde_json::{Value, json};

/// Approver that gives the same answer to each question.
#[derive(Debug)]
pub(crate) struct Answers(Decision);

#[async_trait]
impl Approver for Answers {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        self.0.clone()
    }
}

pub(crate) fn accepts() -> Arc<Answers> {
    Arc::new(Answers(Decision::Approve))
}

pub(crate) fn refuses() -> Arc<Answers> {
    Arc::new(Answers(Decision::Deny { reason: None }))
}

/// Change of the default settings.
type Change = fn(&mut SessionSpec);

/// Home of a user with a key and a rule, a repository, and a directory beside it.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        for name in ["home/.ssh", "home/.config/pintle", "work/keep", "outside"] {
            std::fs::create_dir_all(scene.at(name)).unwrap();
        }
        std::fs::write(scene.at("home/.ssh/id_ed25519"), "SECRET").unwrap();
        std::fs::write(scene.at("home/.config/pintle/rules.toml"), "deny = [\"@write(keep/**)\"]\n").unwrap();
        std::fs::write(scene.at("outside/notes"), "old").unwrap();
        std::os::unix::fs::symlink("../outside", scene.at("work/out")).unwrap();
        let initialized =
            Command::new("git").args(["init", "--quiet"]).current_dir(scene.at("work")).status();
        assert!(initialized.unwrap().success());
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    fn host(&self) -> Host {
        let (home, path) = (self.at("home"), std::env::var_os("PATH").unwrap());
        let variables: [(&str, &OsStr); 2] = [("HOME", home.as_os_str()), ("PATH", path.as_os_str())];
        Host::new(ProcessEnv::from_variables(variables))
    }

    /// Opens a session with a scripted model.
    async fn open(&self, server: &ScriptedServer, change: Change, approver: Arc<Answers>) -> OpenSession {
        let mut spec = self.spec(server);
        change(&mut spec);
        let attendant = ClientAttendant::with_approver(None, approver);
        self.host().open(spec, Surface::new(Arc::new(attendant))).await.unwrap()
    }

    /// Returns the default settings with a scripted model.
    fn spec(&self, server: &ScriptedServer) -> SessionSpec {
        let mut spec = SessionSpec::default();
        spec.model.provider = Some("openai-compatible".to_owned());
        spec.model.name = Some("local-model".to_owned());
        spec.model.base_url = Some(BaseUrl::new(server.base_url(Dialect::ChatCompletions)));
        spec.environment.dir = Some(self.at("work"));
        spec
    }

    /// Runs one call of the model. Returns the outcome, and the result of the call.
    async fn run(&self, tool: &str, arguments: &Value, approver: Arc<Answers>) -> (Outcome, String) {
        self.run_with(|_| {}, tool, arguments, approver).await
    }

    /// As [`run`](Self::run), with changed settings.
    async fn run_with(
        &self,
        change: Change,
        tool: &str,
        arguments: &Value,
        approver: Arc<Answers>,
    ) -> (Outcome, String) {
        // Texts are the same in JSON and TOML.
        let arguments = arguments.as_object().unwrap().iter();
        let arguments: Vec<String> = arguments.map(|(name, value)| format!("{name} = {value}")).collect();
        let script = format!(
            "name = \"attack\"\n[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ {} }}\n\
             [[turn]]\ntext = \"Done.\"\n",
            arguments.join(", ")
        );
        let server =
            ScriptedServer::start(Script::parse(&script).unwrap(), ServerOptions::new()).await.unwrap();
        let opened = self.open(&server, change, approver).await;
        let mut run = opened.session.submit("go");
        let mut result = String::new();
        while let Some(event) = run.next().await {
            if let EventKind::ToolCallEnd { output, .. } = &event.kind {
                result.push_str(&output.to_text_lossy().unwrap());
            }
        }
        let outcome = run.await.or_else(pintle_agent::RunError::into_outcome).unwrap();
        // A changed file is a failure as well.
        let _ = opened.close().await;
        server.shutdown().await;
        (outcome, result)
    }
}

/// One attack.
struct Attack {
    name: &'static str,
    call: fn(&Scene) -> (&'static str, Value),
    /// Whether it succeeded: the arguments are the outcome and the result of the call.
    succeeds: fn(&Scene, &Outcome, &str) -> bool,
}

fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({"file_path": path, "content": "x"}))
}

/// Attacks that no approval lets succeed.
const ATTACKS: &[Attack] = &[
    Attack {
        name: "a hook of git",
        call: |_| write(".git/hooks/post-checkout"),
        succeeds: |scene, _, _| scene.at("work/.git/hooks/post-checkout").exists(),
    },
    Attack {
        name: "settings of the project",
        call: |_| write(".pintle/rules.toml"),
        succeeds: |scene, _, _| scene.at("work/.pintle/rules.toml").exists(),
    },
    Attack {
        name: "a file that a rule of the user denies",
        call: |_| write("keep/notes"),
        succeeds: |scene, _, _| scene.at("work/keep/notes").exists(),
    },
    Attack {
        name: "a key of the user",
        call: |scene| ("read_file", json!({"file_path": scene.at("home/.ssh/id_ed25519")})),
        succeeds: |_, _, result| result.contains("SECRET"),
    },
    Attack {
        name: "a hook of git, by a command",
        call: |_| ("shell", json!({"command": "echo x > .git/hooks/post-checkout"})),
        // Without a sandbox, the change ends the run.
        succeeds: |scene, outcome, _| {
            outcome.error.is_none() && scene.at("work/.git/hooks/post-checkout").exists()
        },
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn no_approval_lets_an_attack_on_a_default_session_succeed() {
    for attack in ATTACKS {
        let scene = Scene::new();
        let (tool, arguments) = (attack.call)(&scene);
        let (outcome, result) = scene.run(tool, &arguments, accepts()).await;
        assert!(!result.is_empty() || outcome.error.is_some(), "{}: {outcome:?}", attack.name);
        assert!(!(attack.succeeds)(&scene, &outcome, &result), "{}: {outcome:?} {result}", attack.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_workspace_are_written_and_files_outside_need_approval() {
    let scene = Scene::new();
    for (path, approver, file, expected) in [
        ("notes", accepts(), "work/notes", "x"),
        ("../outside/notes", refuses(), "outside/notes", "old"),
        ("out/notes", refuses(), "outside/notes", "old"),
        ("../outside/notes", accepts(), "outside/notes", "x"),
    ] {
        let (tool, arguments) = write(path);
        let (outcome, result) = scene.run(tool, &arguments, approver).await;
        assert_eq!(scene.read(file), expected, "{path}: {outcome:?} {result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_does_not_open_leaves_nothing_in_the_store() {
    let scene = Scene::new();
    let server = ScriptedServer::start(
        Script::parse("name = \"s\"\n[[turn]]\ntext = \"Done.\"\n").unwrap(),
        ServerOptions::new(),
    );
    let server = server.await.unwrap();
    let host = scene.host();
    let mut spec = scene.spec(&server);
    spec.environment.roots = Some([scene.at("outside")].into());
    let attendant = ClientAttendant::with_approver(None, refuses());
    let failure = host.open(spec, Surface::new(Arc::new(attendant))).await.unwrap_err();
    assert!(failure.message().contains("is outside the allowed roots"), "{failure:?}");
    let sessions = host.sessions().await.unwrap();
    let kept = sessions.list(&pintle_store::Filter::default(), &pintle_store::Page::default()).await.unwrap();
    assert!(kept.is_empty(), "{kept:?}");
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_paths_of_a_stored_session_are_not_compared() {
    let hide: Change = |spec| spec.policy.hidden = vec!["private".into()];
    let scene = Scene::new();
    let (tool, arguments) = write("notes");
    scene.run_with(hide, tool, &arguments, accepts()).await;
    std::fs::create_dir(scene.at("work/private")).unwrap();
    std::fs::write(scene.at("work/private/key"), "SECRET").unwrap();
    let host = scene.host();
    let sessions = host.sessions().await.unwrap();
    let kept = sessions.list(&pintle_store::Filter::default(), &pintle_store::Page::default()).await.unwrap();
    let work = async |files: &SessionFiles<'_>| files.changes(&SessionPoint::Entries(0)).await;
    let compared = with_session_files(&sessions, kept[0].id.as_str(), host.process_env(), work).await;
    let (_, comparison) = compared.unwrap().unwrap();
    let changed: Vec<PathBuf> = comparison.changes.into_iter().map(|change| change.path).collect();
    assert_eq!(changed, [PathBuf::from("notes")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_paths_and_tools_of_the_settings_apply() {
    let hide: Change = |spec| spec.policy.hidden = vec!["private".into()];
    let ask: Change = |spec| spec.policy.ask = vec!["@write(notes)".to_owned()];
    let only: Change = |spec| spec.tools.only = Some(["read_file".to_owned()].into());
    let scene = Scene::new();
    std::fs::create_dir(scene.at("work/private")).unwrap();
    std::fs::write(scene.at("work/private/key"), "SECRET").unwrap();
    let read = json!({"file_path": "private/key"});
    for (change, is_read) in [(hide, false), (ask, true)] {
        let (outcome, result) = scene.run_with(change, "read_file", &read, accepts()).await;
        assert_eq!(result.contains("SECRET"), is_read, "{outcome:?} {result}");
    }
    let (tool, arguments) = write("notes");
    for (change, approver, is_written) in
        [(ask, refuses(), false), (only, accepts(), false), (ask, accepts(), true)]
    {
        let (outcome, result) = scene.run_with(change, tool, &arguments, approver).await;
        assert_eq!(scene.at("work/notes").exists(), is_written, "{outcome:?} {result}");
    }
}
