//! Checks of the programs that the command uses, if they are there.

use std::time::Duration;

use pintle_env::{ExecutionEnvironment as _, Git, LocalEnvironment};

use super::report::Check;
use crate::host_command::{self, ProgramOutcome};

/// How long a program may take to answer.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Most bytes of git's output that are read.
const MAX_MESSAGE: usize = 4_000;

/// Output of a program.
#[derive(Debug, PartialEq)]
enum Answer {
    /// First line of its output.
    Line(String),
    /// It is not installed.
    Missing,
    /// Why it does not work.
    Failed(String),
}

pub(super) async fn git(environment: &LocalEnvironment) -> Check {
    let remedy = "install git: worktrees of sessions need it";
    match ask(environment, &["git", "--version"]).await {
        Answer::Line(version) => {
            let request = Git::new().request(&["rev-parse", "--show-toplevel"]).with_timeout(TIME_LIMIT);
            let Ok(found) = environment.exec_command(request).await else {
                return Check::ok("git", format!("{version}, not in a repository"));
            };
            let message = found.stderr.head_text_lossy(MAX_MESSAGE).unwrap_or_default();
            let root = found.stdout.head_text_lossy(MAX_MESSAGE).unwrap_or_default();
            match (first_line(&root), Git::ownership_remedy(&message)) {
                (_, Some(remedy)) => Check::warning(
                    "git",
                    format!("{version}, in a repository of another user (dubious ownership)"),
                    format!("`{remedy}` allows git to use it"),
                ),
                (Some(root), None) => Check::ok("git", format!("{version}, in the repository {root}")),
                (None, None) => Check::ok("git", format!("{version}, not in a repository")),
            }
        }
        Answer::Missing => Check::warning("git", "not installed", remedy),
        Answer::Failed(why) => Check::warning("git", why, remedy),
    }
}

/// Checks docker, or else podman.
pub(super) async fn containers(environment: &LocalEnvironment) -> Check {
    let mut failures = Vec::new();
    for program in ["docker", "podman"] {
        match ask(environment, &[program, "version", "--format", "{{.Server.Version}}"]).await {
            Answer::Line(version) => return Check::ok("containers", format!("{program} {version}")),
            Answer::Missing => {}
            Answer::Failed(why) => failures.push(format!("{program}: {why}")),
        }
    }
    if failures.is_empty() {
        return Check::ok(
            "containers",
            "neither docker nor podman is installed; only --env docker:… needs one",
        );
    }
    Check::warning("containers", failures.join("; "), "start its service, and check that you may use it")
}

pub(super) async fn ssh(environment: &LocalEnvironment) -> Check {
    match ask(environment, &["ssh", "-V"]).await {
        Answer::Line(version) => Check::ok("ssh", version),
        Answer::Missing => Check::ok("ssh", "not installed; only --env ssh:… needs it"),
        Answer::Failed(why) => Check::warning("ssh", why, "check the installation of ssh"),
    }
}

/// Runs a program that prints a line, on either stream, and exits.
async fn ask(environment: &LocalEnvironment, words: &[&str]) -> Answer {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    match host_command::run(environment, &words, TIME_LIMIT).await {
        Err(_not_started) => Answer::Missing,
        Ok(ProgramOutcome::TimedOut) => {
            Answer::Failed(format!("no answer within {} s", TIME_LIMIT.as_secs()))
        }
        Ok(ProgramOutcome::Exited { code, stdout, stderr }) => {
            let line = first_line(&stdout).or_else(|| first_line(&stderr));
            match (code, line) {
                (0, Some(line)) => Answer::Line(line),
                (code, line) => {
                    Answer::Failed(line.unwrap_or_else(|| format!("failed with exit code {code}")))
                }
            }
        }
    }
}

fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_env::ProcessEnv;

    #[tokio::test(flavor = "multi_thread")]
    async fn programs_answer_with_their_first_line() {
        let process_env = ProcessEnv::from_variables([("PATH", std::ffi::OsStr::new("/usr/bin:/bin"))]);
        let environment = process_env.local_environment(std::path::Path::new("/")).unwrap();
        let line = |text: &str| Answer::Line(text.to_owned());
        let failed = |text: &str| Answer::Failed(text.to_owned());
        let cases: [(&[&str], Answer); 5] = [
            (&["sh", "-c", "echo; echo ' one '; echo two"], line("one")),
            (&["sh", "-c", "echo version >&2"], line("version")),
            (&["sh", "-c", "echo no daemon >&2; exit 1"], failed("no daemon")),
            (&["sh", "-c", "exit 3"], failed("failed with exit code 3")),
            (&["no-such-program-of-doctor"], Answer::Missing),
        ];
        for (words, expected) in cases {
            assert_eq!(ask(&environment, words).await, expected, "{words:?}");
        }
    }
}
