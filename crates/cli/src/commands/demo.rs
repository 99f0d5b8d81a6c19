//! `pintle demo`: fixes a bug offline. The model is scripted; requests, tools, files and test runs are real.

mod interactive;
mod project;
#[cfg(feature = "task")]
mod task;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::Toolset;
use pintle_env::{EnvError, ExecRequest, ExecutionEnvironment as _, LocalEnvironment};
use pintle_host::environment::EnvSession;
use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use pintle_host::limit_sources::LimitSources;
use pintle_host::model::Model;
use pintle_host::process_env::{self, CONFIG_VARIABLE, ProcessEnv};
use pintle_host::{Host, OpenRequest, OpenSession, SandboxLevel, SessionSpec, Surface, explain};
use pintle_testkit::Script;
use pintle_tui::approve::Prompter;
use pintle_tui::console::{self, Console};
use pintle_tui::interrupt::Interrupts;
use pintle_tui::render::{DemoResult, Detail, Footer};

use crate::arguments::{DemoArgs, OutputFormat};
use crate::commands::run::output_view;
use crate::exit::Exit;
use crate::exit::command_failure::CommandFailure;
use crate::output::follow::{Task, follow};
use crate::testkit_models::start_script;

/// Prompt for the agent.
const TASK: &str = "The tests of this project fail. Find out why, fix the cause, and run the tests again.";

/// Command that verifies the fix. The project has no dependencies to download.
const TEST: &str = "cargo test --offline 2>&1";

/// Timeout of the final test run.
const TEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Timeout of `cargo --version`.
const CARGO_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the agent on the example project, then verifies the result independently.
///
/// Fails unless the tests pass at the end.
pub(crate) async fn demo(args: DemoArgs, process_env: &ProcessEnv) -> Result<Exit, CommandFailure> {
    if args.interactive {
        return interactive::converse(args.dir.as_deref(), process_env).await.map_err(CommandFailure::from);
    }
    #[cfg(feature = "task")]
    if args.task {
        return task::run_task(&args, process_env).await.map_err(CommandFailure::from);
    }
    let interrupts = Interrupts::listen()?;
    let (directory, env) = interrupts.race(prepare(args.dir.as_deref(), process_env)).await?;
    let result = run_agent(&args, &directory, &env, process_env, &interrupts).await;
    let closed = env.cleanup().await;
    let exit = result?;
    closed.or_failed("a command may still be running")?;
    Ok(exit)
}

/// Copies the example project and creates an environment for it, which keeps build output in the same directory.
async fn prepare(
    dir: Option<&Path>,
    process_env: &ProcessEnv,
) -> Result<(PathBuf, Arc<LocalEnvironment>), Failure> {
    require_cargo(process_env).await?;
    let directory = match dir {
        Some(dir) => process_env::absolute(dir)?,
        None => temporary_directory()?,
    };
    let process_env = environment_of_demo(&directory, process_env);
    let env = LocalEnvironment::builder(&directory)
        .with_host_env(process_env.variables())
        .build()
        .or_usage("cannot use --dir")?;
    copy_project(&env, &directory).await?;
    Ok((directory, Arc::new(env)))
}

/// Returns the environment of the process for the commands of the demo, and for a session without configuration of the user.
fn environment_of_demo(directory: &Path, process_env: &ProcessEnv) -> ProcessEnv {
    let target = directory.join("target");
    process_env.with_variables(&BTreeMap::from([
        ("CARGO_TARGET_DIR".to_owned(), target.display().to_string()),
        ("CARGO_TERM_COLOR".to_owned(), "never".to_owned()),
        // The directory does not exist.
        (CONFIG_VARIABLE.to_owned(), target.join("no-configuration").display().to_string()),
    ]))
}

/// Returns the settings of the session, which is not kept.
fn settings(directory: &Path) -> SessionSpec {
    let mut settings = SessionSpec::default();
    // The names of these tools are the same for each provider.
    settings.tools.toolset = Toolset::Spec;
    settings.environment.dir = Some(directory.to_path_buf());
    settings.environment.sandbox = SandboxLevel::Off;
    settings.tools.use_servers = false;
    settings.persistence.keep = false;
    settings
}

/// Opens the session with the scripted model.
async fn open_session(
    args: &DemoArgs,
    directory: &Path,
    env: &Arc<LocalEnvironment>,
    process_env: &ProcessEnv,
    interrupts: &Interrupts,
) -> Result<OpenSession, Failure> {
    let script = Script::parse(project::SCRIPT).or_failed("the demo script is invalid")?;
    let model = Model::scripted(start_script(script, args.dialect).await?)?;
    let prompter = Prompter::from_process(console::style(process_env), None, false);
    let mut surface = Surface::new(Arc::new(prompter));
    surface.check_environment = Some(Box::new(|environment: &EnvSession| {
        let (of_session, of_demo) = (environment.kill_hook(), Arc::clone(env));
        interrupts.on_second_signal(move || {
            of_session.iter().for_each(|kill_all| kill_all());
            of_demo.kill_all();
        });
        Ok(())
    }));
    let request = OpenRequest { model: Some(Arc::new(model)), ..OpenRequest::from(settings(directory)) };
    let host = Host::new(environment_of_demo(directory, process_env));
    host.open(request, surface).await
}

/// Copies the example project into a directory.
///
/// A directory that is not empty is a usage failure.
async fn copy_project(env: &LocalEnvironment, directory: &Path) -> Result<(), Failure> {
    match env.list(directory).await {
        Ok(entries) if entries.is_empty() => {}
        Err(EnvError::NotFound { .. }) => {}
        Ok(_) => {
            return Err(Failure::usage(format!(
                "--dir {} is not empty: expected a new or empty directory",
                directory.display()
            )));
        }
        Err(error) => return Err(Failure::usage("cannot use --dir").caused_by(&error)),
    }
    project::copy_to(env).await.or_failed("cannot copy the example project")
}

async fn require_cargo(process_env: &ProcessEnv) -> Result<(), Failure> {
    let env = process_env.local_environment(Path::new("/"))?;
    let result = env.exec_command(ExecRequest::new("cargo --version").with_timeout(CARGO_TIMEOUT)).await;
    let missing = "the demo needs cargo to test its example project, but `cargo --version` failed";
    match result {
        Ok(result) if result.success() => Ok(()),
        Ok(result) => {
            let output = result.output.head_text_lossy(200).unwrap_or_default();
            Err(Failure::failed(format!("{missing}: {}", output.trim())))
        }
        Err(error) => Err(Failure::failed(missing).caused_by(&error)),
    }
    .map_err(|failure| {
        failure
            .with_hint("install Rust from https://rustup.rs and check that cargo is in PATH")
            .with_hint("`pintle demo --interactive` works without cargo")
    })
}

/// Creates a temporary directory that is not removed.
fn temporary_directory() -> Result<PathBuf, Failure> {
    tempfile::Builder::new()
        .prefix("pintle-demo-")
        .tempdir()
        .map(tempfile::TempDir::keep)
        .or_failed("cannot create a temporary directory")
}

async fn run_agent(
    args: &DemoArgs,
    directory: &Path,
    env: &Arc<LocalEnvironment>,
    process_env: &ProcessEnv,
    interrupts: &Interrupts,
) -> Result<Exit, CommandFailure> {
    let mut view = output_view(args.output, Detail::Normal, console::style(process_env));
    let mut console = Console::new();
    let opened = open_session(args, directory, env, process_env, interrupts).await?;
    let OpenSession { session, environment, model, limits, .. } = opened;
    if args.output == OutputFormat::Text
        && let Err(failure) = console.write(&introduction(args, directory)).await
    {
        session.close().await;
        environment.close_with_notice().await;
        return Err(failure.into());
    }
    let task = Task {
        prompt: Some(TASK.into()),
        unfinished: None,
        is_stored: false,
        is_resumed: false,
        model: &model,
        directory,
        user: None,
        approvals: None,
        limits,
        answers: None,
    };
    let report = follow(session.into_session(), task, &mut view, &mut console, interrupts).await;
    let closed = environment.close().await;
    let report = report?;
    closed?;
    let failure = explain::outcome(&report.outcome, &model.route, &LimitSources::default(), report.reached);
    // Do not start another test run after an interruption.
    let result = match &failure {
        Some(failure) if failure.kind() == FailureKind::Interrupted => None,
        Some(_) | None => Some(interrupts.race(verify(directory, env)).await?),
    };
    let kept = format!("the project is kept in {}", directory.display());
    let verdict = verdict(failure, result.as_ref()).map_err(|failure| failure.with_hint(&kept));
    let footer = Footer { demo: result.as_ref(), ..report.footer(verdict.as_ref().err()) };
    console.write(&view.footer(&footer)?).await?;
    verdict.map_err(CommandFailure::already_in_output)
}

/// Requires passing tests and a change that explains them.
fn verdict(failure: Option<Failure>, result: Option<&DemoResult>) -> Result<Exit, Failure> {
    match (failure, result) {
        (Some(failure), _) => Err(failure),
        (None, Some(result)) if result.passed && !result.diff.is_empty() => Ok(Exit::Done),
        (None, _) => Err(Failure::failed("the agent reported success, but the tests do not pass")),
    }
}

fn introduction(args: &DemoArgs, directory: &Path) -> String {
    format!(
        "A scripted model fixes a small Rust project with real tools, over the wire protocol of {}.\n\
         Project: {}\n\
         Task: {TASK}\n\n",
        args.dialect.name(),
        directory.display()
    )
}

/// Runs the tests and compares the directory with the example project.
async fn verify(directory: &Path, env: &LocalEnvironment) -> Result<DemoResult, Failure> {
    let problem = "cannot check the result";
    let request = ExecRequest::new(TEST).with_timeout(TEST_TIMEOUT);
    let result = env.exec_command(request).await.or_failed(problem)?;
    let diff = project::diff(env).await.or_failed(problem)?;
    let test_output = result.output.tail_text_lossy(64 << 10).unwrap_or_default();
    Ok(DemoResult { directory: directory.to_path_buf(), passed: result.success(), test_output, diff })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_needs_passing_tests_and_a_change() {
        let result = |passed, diff: &str| DemoResult {
            directory: PathBuf::new(),
            passed,
            test_output: String::new(),
            diff: diff.to_owned(),
        };
        assert_eq!(verdict(None, Some(&result(true, "+x"))), Ok(Exit::Done));
        for result in [Some(result(false, "+x")), Some(result(true, "")), None] {
            assert_eq!(verdict(None, result.as_ref()).unwrap_err().kind(), FailureKind::Other);
        }
        let failure = Failure::silent(FailureKind::LimitReached);
        assert_eq!(verdict(Some(failure.clone()), Some(&result(true, "+x"))), Err(failure));
    }
}
