//! A command on its way when its application dies. It may arrive while the supervisor terminates
//! everything, or after the supervisor itself exited.
#![expect(
    clippy::disallowed_methods,
    reason = "the test plays the application and inspects processes from outside"
)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::matrix::{LONG, processes_with, this_test, until};
use crate::{ExecRequest, ExecutionEnvironment};

/// Set in the second process, which plays the application: the directory of the test.
const APPLICATION_IN: &str = "PINTLE_TEST_LATE_START";

/// Variable that identifies the processes of the late command.
const VARIABLE: &str = "PINTLE_LATE_START";

/// Delays in seconds between the death of the application and the arrival of the command: within
/// the supervisor's linger time, and after it.
const DELAYS: [u32; 2] = [1, 6];

/// Maximum time that a line takes to start after its client forwarded it.
const START_MARGIN: Duration = Duration::from_secs(1);

/// Plays both roles of the test `test`: the application, which has the given variable and creates
/// its environment with `build` from the path of a client program; and the observer.
pub(crate) async fn leaves_nothing<E: ExecutionEnvironment + 'static>(
    test: &str,
    variable: Option<(&str, &str)>,
    program: &str,
    build: impl FnOnce(&Path) -> E,
) {
    if let Some(directory) = std::env::var_os(APPLICATION_IN) {
        let directory = PathBuf::from(directory);
        let environment = Arc::new(build(&client(&directory, program)));
        return run_application(environment, &directory).await;
    }
    let [first, second] = DELAYS;
    tokio::join!(late_command_ends(test, variable, first), late_command_ends(test, variable, second));
}

/// Kills an application while the client of its command is delayed by so many seconds, and waits
/// until the command has ended.
async fn late_command_ends(test: &str, variable: Option<(&str, &str)>, delay: u32) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(directory.path().join("delay"), delay.to_string()).unwrap();
    let mut application = this_test(test);
    // Files that the killed application cannot remove are removed with our directory.
    application.envs(variable).env("TMPDIR", directory.path());
    application.env(APPLICATION_IN, directory.path()).stdout(Stdio::null());
    let mut application = application.spawn().unwrap();
    let waiting = directory.path().join("waiting");
    let id = || fs::read_to_string(&waiting).ok().and_then(|id| id.trim().parse::<i32>().ok());
    until("the client of the command is held up", || id().is_some()).await;
    application.kill().unwrap();
    application.wait().unwrap();
    let client = Client(id().unwrap());
    let variable = assignment(directory.path());
    until("the client ends", || !client.is_running()).await;
    // The client may exit before its line starts remotely, and nothing reports that it never
    // will.
    tokio::time::sleep(START_MARGIN).await;
    until("the command has ended", || processes_with(&variable).is_empty()).await;
}

async fn run_application(environment: Arc<dyn ExecutionEnvironment>, directory: &Path) {
    environment.initialize().await.unwrap();
    let first = environment.exec_command(ExecRequest::new("true")).await.unwrap();
    assert!(first.success(), "the supervisor starts before the command");
    fs::rename(directory.join("delay"), directory.join("slow")).unwrap();
    let (name, value) =
        assignment(directory).split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())).unwrap();
    let request = ExecRequest::new("exec sleep 4324").with_env(name, value).with_timeout(10 * LONG);
    panic!("the application was not killed: {:?}", environment.exec_command(request).await);
}

fn assignment(directory: &Path) -> String {
    format!("{VARIABLE}={}", directory.file_name().unwrap().to_str().unwrap())
}

/// Creates a client that is delayed by the seconds in the file `slow`, once that exists.
fn client(directory: &Path, program: &str) -> PathBuf {
    let client = directory.join("client");
    let here = directory.display();
    let script = format!(
        "#!/bin/sh\nif [ -e {here}/slow ]; then echo $$ >{here}/waiting; sleep $(cat {here}/slow); fi\n\
         exec {program} \"$@\"\n"
    );
    fs::write(&client, script).unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    client
}

/// The client of the late command, killed at the end of the test together with the command.
struct Client(i32);

impl Client {
    fn is_running(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, fields)| fields.chars().next());
        state.is_some_and(|state| state != 'Z')
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.is_running() {
            let _ = kill(Pid::from_raw(self.0), Signal::SIGKILL);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
