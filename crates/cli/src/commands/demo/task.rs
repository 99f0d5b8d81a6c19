//! `pintle demo --task`: a task with evidence on a copy of the example project, with a scripted model.
#![expect(clippy::disallowed_methods, reason = "the command replaces itself by a task")]

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use pintle_env::{ExecRequest, ExecutionEnvironment as _, LocalEnvironment};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, CONFIG_VARIABLE, ProcessEnv, STATE_VARIABLE};
use pintle_tui::console;

use super::{copy_project, require_cargo, temporary_directory};
use crate::arguments::{DemoArgs, OutputFormat};
use crate::exit::Exit;

/// Script of all sessions of the task.
const SCRIPT: &str = include_str!("../../../demo/task-script.toml");

/// Contract of the task.
const CONTRACT: &str = include_str!("../../../demo/task.toml");

/// Flags of the task besides its files. The commands of the script are known, so they need no sandbox.
const FLAGS: [&str; 7] =
    ["--provider", "scripted", "--dialect", "anthropic", "--toolset", "spec", "--no-sandbox"];

/// Variables of the builds. The project is built once for each clean clone, so builds omit parts that no result needs.
const VARIABLES: [(&str, &str); 3] =
    [("CARGO_TERM_COLOR", "never"), ("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "0")];

/// Settings of the user that would take the task elsewhere.
const REMOVED: [&str; 2] = ["PINTLE_STORE", "PINTLE_RESTATE"];

/// Makes the project a repository. The user's settings of git do not matter.
const COMMIT: &str = "git init --quiet && git add --all && git -c user.name=pintle -c user.email=demo@localhost \
                      -c commit.gpgSign=false -c core.hooksPath=/dev/null commit --quiet --message='Roman numerals'";

/// Replaces this process with `pintle task run` with the scripted model. Project and state are in a temporary directory, which
/// is not removed.
pub(super) async fn run_task(args: &DemoArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    require_cargo(process_env).await?;
    let temporary = temporary_directory()?;
    let directory = match &args.dir {
        Some(dir) => process_env::absolute(dir)?,
        None => temporary.join("roman"),
    };
    process_env.create_directory(&directory)?;
    let environment = process_env.local_environment(&directory)?;
    copy_project(&environment, &directory).await?;
    commit(&environment).await?;
    let script = process_env.write_new(&temporary.join("script.toml"), SCRIPT)?;
    let contract = process_env.write_new(&temporary.join("contract.toml"), CONTRACT)?;
    let state = temporary.join("state");
    introduce(&directory, &contract, &state);
    let program = std::env::current_exe().or_failed("cannot start the task")?;
    let mut task = Command::new(program);
    task.args(["task", "run"]).args(FLAGS).arg("--script").arg(script).arg("--contract").arg(contract);
    task.arg("--dir").arg(&directory).args(["--output", format_name(args.output)]);
    REMOVED.iter().for_each(|name| {
        task.env_remove(name);
    });
    // Tasks of the demonstration do not appear in the user's list.
    task.envs(VARIABLES).env(STATE_VARIABLE, state).env(CONFIG_VARIABLE, temporary.join("no-configuration"));
    let error = task.exec();
    Err(Failure::failed("cannot start the task").caused_by(&error))
}

fn introduce(directory: &Path, contract: &Path, state: &Path) {
    console::notice(&format!(
        "a scripted model works on the project in {}, with the contract {}",
        directory.display(),
        contract.display()
    ));
    console::notice(&format!(
        "candidate 0 fixes a bug, and candidate 1 changes a test instead; with {STATE_VARIABLE}={}, `pintle task` shows the task",
        state.display()
    ));
}

async fn commit(environment: &LocalEnvironment) -> Result<(), Failure> {
    let failed = "the demo needs git to make the project a repository";
    let result = environment.exec_command(ExecRequest::new(COMMIT)).await.or_failed(failed)?;
    if result.success() {
        return Ok(());
    }
    let output = result.output.head_text_lossy(200).unwrap_or_default();
    Err(Failure::failed(format!("{failed}: {}", output.trim())))
}

fn format_name(format: OutputFormat) -> &'static str {
    match format {
        OutputFormat::Text => "text",
        OutputFormat::Json => "json",
        OutputFormat::StreamJson => "stream-json",
    }
}

#[cfg(test)]
mod tests {
    use pintle_testkit::Script;
    use pintle_workflow::contract::Contract;

    use super::super::project::FILES;
    use super::*;

    #[test]
    fn script_and_contract_fit_to_the_project() {
        assert_eq!(Script::parse(SCRIPT).unwrap().turns.len(), 3);
        let contract = Contract::parse(CONTRACT).unwrap();
        assert_eq!((contract.candidates.len(), contract.checks.len()), (2, 1));
        let text = |name: &str| FILES.iter().find(|(path, _)| *path == name).unwrap().1;
        // The lines that the script replaces.
        assert!(text("src/symbol.rs").contains("<= 5\n"));
        assert!(text("src/outline.rs").contains("\"IX. The bridge\", \"X. Home\"]"));
    }
}
