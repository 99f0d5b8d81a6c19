//! `pintle demo`: the main job, offline. The model's words are scripted; requests, tools, files and test runs are real.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{Session, TurnLimits};
use pintle_env::{EnvError, ExecRequest, ExecutionEnvironment as _, LocalEnvironment};
use pintle_testkit::Script;

use crate::args::{DemoArgs, OutputFormat};
use crate::console::{self, Console};
use crate::example;
use crate::exit::Exit;
use crate::explain;
use crate::failure::Failure;
use crate::follow::{Task, follow};
use crate::host::{self, Host};
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::render::{Closing, Demonstration, Detail, View};

/// What the agent is told.
const TASK: &str = "The tests of this project fail. Find out why, fix the cause, and run the tests again.";

/// What shows that the fix is one. Nothing is downloaded, since the example has no dependencies.
const TEST: &str = "cargo test --offline 2>&1";

/// How long the test run of the command itself may take.
const TEST_LIMIT: Duration = Duration::from_secs(300);

/// How long cargo may take to say that it is there.
const CARGO_LIMIT: Duration = Duration::from_secs(60);

/// Shows the agent at work, then looks for itself whether the work is done.
///
/// # Errors
///
/// Everything but a demonstration that ends with passing tests.
pub(crate) async fn demo(args: DemoArgs, host: &Host) -> Result<Exit, Failure> {
    let interrupts = Interrupts::listen()?;
    let (folder, env) = interrupts.unless(prepare(args.dir.as_deref(), host)).await?;
    let killed = Arc::clone(&env);
    interrupts.guard(move || killed.kill_all());
    let shown = show(&args, &folder, &env, host, &interrupts).await;
    let cleaned = env.cleanup().await;
    let exit = shown?;
    cleaned
        .map_err(|error| Failure::failed("a command of the demonstration is left running").because(&error))?;
    Ok(exit)
}

/// A folder with the example in it, and the environment to work there. Nothing outside of the folder is built.
async fn prepare(dir: Option<&Path>, host: &Host) -> Result<(PathBuf, Arc<LocalEnvironment>), Failure> {
    require_cargo(host).await?;
    let folder = match dir {
        Some(dir) => host::absolute(dir)?,
        None => fresh_folder()?,
    };
    let env = LocalEnvironment::builder(&folder)
        .host_env(host.variables())
        .variable("CARGO_TARGET_DIR", folder.join("target"))
        .variable("CARGO_TERM_COLOR", "never")
        .build()
        .map_err(|error| Failure::usage("--dir cannot be used").because(&error))?;
    match env.list(&folder).await {
        Ok(entries) if entries.is_empty() => {}
        Err(EnvError::NotFound { .. }) => {}
        Ok(_) => {
            return Err(Failure::usage(format!(
                "--dir {} is not empty: expected a new or an empty directory",
                folder.display()
            )));
        }
        Err(error) => return Err(Failure::usage("--dir cannot be used").because(&error)),
    }
    let copied = example::copy_to(&env).await;
    copied.map_err(|error| Failure::failed("the example cannot be copied").because(&error))?;
    Ok((folder, Arc::new(env)))
}

async fn require_cargo(host: &Host) -> Result<(), Failure> {
    let env = host.environment(Path::new("/"))?;
    let asked = env.exec_command(ExecRequest::new("cargo --version").with_timeout(CARGO_LIMIT)).await;
    let missing = "the demonstration runs the tests of its example with cargo, and `cargo --version` failed";
    match asked {
        Ok(result) if result.success() => Ok(()),
        Ok(result) => {
            let said = result.output.head_text_lossy(200).unwrap_or_default();
            Err(Failure::failed(format!("{missing}: {}", said.trim())))
        }
        Err(error) => Err(Failure::failed(missing).because(&error)),
    }
    .map_err(|failure| failure.advise("install Rust from https://rustup.rs and see that cargo is in PATH"))
}

/// A folder for temporary files that stays.
fn fresh_folder() -> Result<PathBuf, Failure> {
    tempfile::Builder::new()
        .prefix("pintle-demo-")
        .tempdir()
        .map(tempfile::TempDir::keep)
        .map_err(|error| Failure::failed("there is no room for a fresh folder").because(&error))
}

async fn show(
    args: &DemoArgs,
    folder: &Path,
    env: &Arc<LocalEnvironment>,
    host: &Host,
    interrupts: &Interrupts,
) -> Result<Exit, Failure> {
    let script = Script::parse(example::SCRIPT)
        .map_err(|error| Failure::failed("the script of the demonstration is wrong").because(&error))?;
    let model = Model::scripted(script, args.dialect).await?;
    let session = Session::builder(model.client.clone(), model.profile(), Arc::clone(env) as _)
        .shared_environment()
        .build()
        .map_err(|error| Failure::failed("the session cannot begin").because(&error))?;
    let mut view = View::new(args.output, Detail::Normal, console::style(host), model.drafts.clone());
    let mut console = Console::new();
    if args.output == OutputFormat::Text {
        console.write(&introduction(args, folder)).await?;
    }
    let limits = TurnLimits::default();
    let task = Task { prompt: TASK.to_owned(), model: &model, directory: folder, person: None, limits };
    let followed = follow(session, task, &mut view, &mut console, interrupts).await?;
    let failure = explain::outcome(&followed.outcome, &model.route);
    // An interrupted demonstration proves nothing, and must not start another test run.
    let found = match &failure {
        Some(failure) if failure.exit() == Exit::Interrupted => None,
        Some(_) | None => Some(interrupts.unless(verify(folder, env)).await?),
    };
    let kept = format!("the folder is kept: {}", folder.display());
    let verdict = verdict(failure, found.as_ref()).map_err(|failure| failure.advise(&kept));
    let closing = Closing { demonstration: found.as_ref(), ..followed.closing(verdict.as_ref().err()) };
    console.write(&view.closing(&closing)?).await?;
    verdict.map_err(Failure::in_output)
}

/// Done is what the tests say is done, with a change that explains it.
fn verdict(failure: Option<Failure>, found: Option<&Demonstration>) -> Result<Exit, Failure> {
    match (failure, found) {
        (Some(failure), _) => Err(failure),
        (None, Some(found)) if found.passed && !found.diff.is_empty() => Ok(Exit::Done),
        (None, _) => Err(Failure::failed("the agent says that it is done, and the tests do not agree")),
    }
}

fn introduction(args: &DemoArgs, folder: &Path) -> String {
    format!(
        "A scripted model works with real tools on a small Rust project whose tests fail, over the wire of {}.\n\
         The project: {}\n\
         The task: {TASK}\n\n",
        args.dialect.name(),
        folder.display()
    )
}

/// Runs the tests and compares the folder with the example.
async fn verify(folder: &Path, env: &LocalEnvironment) -> Result<Demonstration, Failure> {
    let failed = |error: EnvError| Failure::failed("the result cannot be checked").because(&error);
    let result = env.exec_command(ExecRequest::new(TEST).with_timeout(TEST_LIMIT)).await.map_err(failed)?;
    let diff = example::diff(env).await.map_err(failed)?;
    let test_output = result.output.tail_text_lossy(64 << 10).unwrap_or_default();
    Ok(Demonstration { folder: folder.to_path_buf(), passed: result.success(), test_output, diff })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passing_tests_and_a_change_are_a_success() {
        let found = |passed, diff: &str| Demonstration {
            folder: PathBuf::new(),
            passed,
            test_output: String::new(),
            diff: diff.to_owned(),
        };
        assert_eq!(verdict(None, Some(&found(true, "+x"))), Ok(Exit::Done));
        for found in [Some(found(false, "+x")), Some(found(true, "")), None] {
            assert_eq!(verdict(None, found.as_ref()).unwrap_err().exit(), Exit::Failed);
        }
        let failure = Failure::silent(Exit::LimitReached);
        assert_eq!(verdict(Some(failure.clone()), Some(&found(true, "+x"))), Err(failure));
    }
}
