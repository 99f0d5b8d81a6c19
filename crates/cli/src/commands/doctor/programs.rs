//! Checks of the programs that the command uses, if they are there.

use std::time::Duration;

use pintle_env::{ExecutionEnvironment as _, Git, LocalEnvironment};
use pintle_host::host_command::{self, ProgramOutcome};

use super::report::DoctorCheck;

/// How long a program may take to answer.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Most bytes of git's output that are read.
const MAX_MESSAGE: usize = 4_000;

/// Output of a program.
#[derive(Debug, PartialEq)]
enum ProgramOutput {
    /// First line of its output.
    Line(String),
    /// It is not installed.
    Missing,
    /// Why it does not work.
    Failed(String),
}

pub(super) async fn git(environment: &LocalEnvironment) -> DoctorCheck {
    let remedy = "install git: worktrees of sessions need it";
    match ask(environment, &["git", "--version"]).await {
        ProgramOutput::Line(version) => {
            let request = Git::new().request(&["rev-parse", "--show-toplevel"]).with_timeout(TIME_LIMIT);
            let Ok(found) = environment.exec_command(request).await else {
                return DoctorCheck::ok("git", format!("{version}, not in a repository"));
            };
            let message = found.stderr.head_text_lossy(MAX_MESSAGE).unwrap_or_default();
            let root = found.stdout.head_text_lossy(MAX_MESSAGE).unwrap_or_default();
            match (first_line(&root), Git::ownership_remedy(&message)) {
                (_, Some(remedy)) => DoctorCheck::warning(
                    "git",
                    format!("{version}, in a repository of another user (dubious ownership)"),
                    format!("`{remedy}` allows git to use it"),
                ),
                (Some(root), None) => DoctorCheck::ok("git", format!("{version}, in the repository {root}")),
                (None, None) => DoctorCheck::ok("git", format!("{version}, not in a repository")),
            }
        }
        ProgramOutput::Missing => DoctorCheck::warning("git", "not installed", remedy),
        ProgramOutput::Failed(why) => DoctorCheck::warning("git", why, remedy),
    }
}

/// Checks docker, or else podman.
pub(super) async fn containers(environment: &LocalEnvironment) -> DoctorCheck {
    let mut failures = Vec::new();
    for program in ["docker", "podman"] {
        match ask(environment, &[program, "version", "--format", "{{.Server.Version}}"]).await {
            ProgramOutput::Line(version) => {
                return DoctorCheck::ok("containers", format!("{program} {version}"));
            }
            ProgramOutput::Missing => {}
            ProgramOutput::Failed(why) => failures.push(format!("{program}: {why}")),
        }
    }
    if failures.is_empty() {
        return DoctorCheck::ok(
            "containers",
            "neither docker nor podman is installed; only --env docker:… needs one",
        );
    }
    DoctorCheck::warning(
        "containers",
        failures.join("; "),
        "start its service, and check that you may use it",
    )
}

pub(super) async fn ssh(environment: &LocalEnvironment) -> DoctorCheck {
    match ask(environment, &["ssh", "-V"]).await {
        ProgramOutput::Line(version) => DoctorCheck::ok("ssh", version),
        ProgramOutput::Missing => DoctorCheck::ok("ssh", "not installed; only --env ssh:… needs it"),
        ProgramOutput::Failed(why) => DoctorCheck::warning("ssh", why, "check the installation of ssh"),
    }
}

/// Runs a program that prints a line, on either stream, and exits.
async fn ask(environment: &LocalEnvironment, words: &[&str]) -> ProgramOutput {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    match host_command::run(environment, &words, TIME_LIMIT).await {
        Err(_not_started) => ProgramOutput::Missing,
        Ok(ProgramOutcome::TimedOut) => {
            ProgramOutput::Failed(format!("no answer within {} s", TIME_LIMIT.as_secs()))
        }
        Ok(ProgramOutcome::Exited { code, stdout, stderr }) => {
            let line = first_line(&stdout).or_else(|| first_line(&stderr));
            match (code, line) {
                (0, Some(line)) => ProgramOutput::Line(line),
                (code, line) => {
                    ProgramOutput::Failed(line.unwrap_or_else(|| format!("failed with exit code {code}")))
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
    use pintle_host::process_env::ProcessEnv;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn programs_answer_with_their_first_line() {
        let process_env = ProcessEnv::from_variables([("PATH", std::ffi::OsStr::new("/usr/bin:/bin"))]);
        let environment = process_env.local_environment(std::path::Path::new("/")).unwrap();
        let line = |text: &str| ProgramOutput::Line(text.to_owned());
        let failed = |text: &str| ProgramOutput::Failed(text.to_owned());
        let cases: [(&[&str], ProgramOutput); 5] = [
            (&["sh", "-c", "echo; echo ' one '; echo two"], line("one")),
            (&["sh", "-c", "echo version >&2"], line("version")),
            (&["sh", "-c", "echo no daemon >&2; exit 1"], failed("no daemon")),
            (&["sh", "-c", "exit 3"], failed("failed with exit code 3")),
            (&["no-such-program-of-doctor"], ProgramOutput::Missing),
        ];
        for (words, expected) in cases {
            assert_eq!(ask(&environment, words).await, expected, "{words:?}");
        }
    }
}
