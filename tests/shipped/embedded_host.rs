//! The session that an application opens through the library, and the session of `pintle run` in the same place.

use std::ffi::OsStr;
use std::sync::Arc;

use pintle::host::attendant::ClientAttendant;
use pintle::host::process_env::ProcessEnv;
use pintle::host::{GivenSettings, Host, PartialSpec, SettingSources, Surface};
use pintle_governance::Mode;
use pintle_testkit::Dialect;
use tokio::runtime::Runtime;

use super::user::{KEY, User};

/// A call that a rule denies, and a call that mode plan does not allow.
const TURNS: &str = r#"
[[turn]]
[[turn.call]]
tool = "Read"
arguments = { file_path = "private/notes" }

[[turn]]
[[turn.call]]
tool = "Write"
arguments = { file_path = "new", content = "x" }

[[turn]]
text = "Done."
"#;

/// Requests of one session.
const REQUESTS: usize = 3;

/// Model of the user, and model of the project.
const MODELS: [&str; 2] = ["claude-opus-5", "claude-haiku-5-5"];

/// Creates a user with a model, a mode and a rule, in a project with another model and mode.
fn user() -> User {
    let user = User::new(&TURNS.repeat(2));
    for directory in [".config/pintle", "project/.pintle", "project/private"] {
        std::fs::create_dir_all(user.at(directory)).unwrap();
    }
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let [own, of_project] = MODELS;
    for (file, text) in [
        (
            ".config/pintle/config.toml",
            format!("provider = \"anthropic\"\nbase_url = \"{url}\"\nmodel = \"{own}\"\nmode = \"plan\"\n"),
        ),
        (".config/pintle/rules.toml", "deny = [\"@read(private/**)\"]\n".to_owned()),
        ("project/.pintle/config.toml", format!("model = \"{of_project}\"\nmode = \"auto\"\n")),
        ("project/private/notes", "SECRET".to_owned()),
    ] {
        std::fs::write(user.at(file), text).unwrap();
    }
    user
}

/// Model of the requests of a session, and the results of its calls.
#[derive(Debug, PartialEq, Eq)]
struct Requested {
    model: String,
    results: Vec<String>,
}

/// Returns the requests of the session with this index.
fn requested(user: &User, session: usize) -> Requested {
    let requests = user.model.requests();
    assert_eq!(requests.len(), REQUESTS * (session + 1), "{requests:?}");
    let last = &requests[REQUESTS * (session + 1) - 1].body;
    let messages = last["messages"].as_array().unwrap();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let results = results.map(|block| block["content"].to_string()).collect();
    Requested { model: last["model"].as_str().map(str::to_owned).unwrap_or_default(), results }
}

/// Opens a session like an application in the project, and runs a task. Returns the mode and the notices.
async fn run_as_application(user: &User) -> (Mode, String) {
    let (home, path) = (user.at(""), std::env::var_os("PATH").unwrap());
    let variables: [(&str, &OsStr); 3] =
        [("HOME", home.as_os_str()), ("PATH", path.as_os_str()), ("ANTHROPIC_API_KEY", OsStr::new(KEY))];
    let host = Host::new(ProcessEnv::from_variables(variables));
    let mut given = PartialSpec::default();
    given.environment.dir = Some(user.project());
    let resolved = host.resolve(SettingSources::from(GivenSettings::from(given))).await.unwrap();
    let attendant = ClientAttendant::without_approver(Some(host.process_env().principal()));
    let opened = host.open(resolved, Surface::new(Arc::new(attendant))).await.unwrap();
    let outcome = opened.session.submit("Go").await.unwrap();
    assert_eq!(outcome.text, "Done.", "{outcome:?}");
    let mode = opened.policy.mode();
    opened.close().await.unwrap();
    let notices = host.process_env().notices().take();
    (mode, notices.iter().map(|notice| notice.text().to_owned() + "\n").collect())
}

#[test]
fn an_application_opens_the_session_that_the_command_opens() {
    let runtime = Runtime::new().unwrap();
    for (is_trusted, model) in [false, true].into_iter().zip(MODELS) {
        let user = user();
        if is_trusted {
            user.pintle(&["trust"]);
        }
        let output = user.command(&["run", "Go"]).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{printed}");
        let of_command = requested(&user, 0);
        let (mode, notices) = runtime.block_on(run_as_application(&user));
        let of_application = requested(&user, 1);
        assert_eq!(of_application, of_command);
        assert_eq!((of_command.model.as_str(), mode), (model, Mode::Plan));
        let [read, written] = of_command.results.as_slice() else { panic!("{of_command:?}") };
        assert!(read.contains("@read(private/**)") && !read.contains("SECRET"), "{read}");
        assert!(written.contains("no files are changed in mode plan"), "{written}");
        let left_out = "leaves out `model`, `mode` of .pintle/config.toml";
        let limited = "`mode` allows more than ";
        for text in [&printed, &notices] {
            assert_eq!(
                (text.contains(left_out), text.contains(limited)),
                (!is_trusted, is_trusted),
                "{text}"
            );
        }
    }
}

/// A program of the user prints the key, also for an application.
#[test]
fn an_application_has_the_key_that_a_program_prints() {
    let user = User::new("[[turn]]\ntext = \"Done.\"");
    let url = user.model.base_url(Dialect::AnthropicMessages);
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    let text = format!(
        "provider = \"anthropic\"\nbase_url = \"{url}\"\n[key_command]\nanthropic = [\"echo\", \"{KEY}\"]\n"
    );
    std::fs::write(user.at(".config/pintle/config.toml"), text).unwrap();
    let (home, path) = (user.at(""), std::env::var_os("PATH").unwrap());
    let variables: [(&str, &OsStr); 2] = [("HOME", home.as_os_str()), ("PATH", path.as_os_str())];
    let host = Host::new(ProcessEnv::from_variables(variables));
    let mut given = PartialSpec::default();
    given.environment.dir = Some(user.project());
    let answered = Runtime::new().unwrap().block_on(async {
        let resolved = host.resolve(SettingSources::from(GivenSettings::from(given))).await.unwrap();
        let attendant = ClientAttendant::without_approver(Some(host.process_env().principal()));
        let opened = host.open(resolved, Surface::new(Arc::new(attendant))).await.unwrap();
        let outcome = opened.session.submit("Go").await.unwrap();
        opened.close().await.unwrap();
        outcome.text
    });
    assert_eq!(answered, "Done.");
}
