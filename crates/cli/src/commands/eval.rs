//! `pintle eval`: measures agents on suites.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_eval::{
    AgentKind, AgentSetup, AttemptRecord, EvalRun, Machine, RunConfiguration, RunProgress, RunReport, Suite,
    read_run,
};
use pintle_host::boxed_future::box_future;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::model::Model;
use pintle_host::named_value::NamedValue as _;
use pintle_host::process_env::{ProcessEnv, absolute};
use pintle_host::sanitize::sanitize;
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;

use crate::arguments::{
    EvalArgs, EvalCommand, EvalExportFormat, EvalReportFormat, ExportEvalArgs, ModelArgs, ReportEvalArgs,
    RunEvalArgs, VerifyEvalArgs,
};
use crate::config::resolve_model;
use crate::exit::Exit;

/// Runs `pintle eval`.
pub(crate) async fn eval(args: EvalArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    match args.command {
        EvalCommand::Run(args) => {
            let interrupts = Interrupts::listen()?;
            interrupts.race(box_future(|| run(&args, process_env))).await
        }
        EvalCommand::Report(args) => box_future(|| report(&args, process_env)).await,
        EvalCommand::Verify(args) => {
            let interrupts = Interrupts::listen()?;
            interrupts.race(box_future(|| verify(&args, process_env))).await
        }
        EvalCommand::Export(args) => box_future(|| export(&args, process_env)).await,
    }
}

async fn run(args: &RunEvalArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let machine = machine(args.suite.no_sandbox, process_env);
    let suite = Suite::load(&args.suite.suite, &machine).await?;
    let instances = suite.select(args.suite.tasks.as_deref())?;
    let agent = setup(args, &suite, process_env).await?;
    let run = EvalRun::open(&suite, &agent, &machine, &args.out).await?;
    let (kept, elsewhere) = (Cell::new(0_u64), Cell::new(0_u64));
    let show = |progress: RunProgress<'_>| match progress {
        RunProgress::Finished(record) => console::notice(&describe(record)),
        RunProgress::Kept => kept.set(kept.get() + 1),
        RunProgress::Elsewhere => elsewhere.set(elsewhere.get() + 1),
        RunProgress::LeftOut(instance, program) => {
            console::notice(&format!("{} is left out: it needs `{program}`", instance.id));
        }
        _ => {}
    };
    run.perform(&instances, args.attempts, usize::from(args.suite.jobs), &show).await?;
    if kept.get() > 0 {
        console::notice(&format!("attempts that had finished before: {}", kept.get()));
    }
    if elsewhere.get() > 0 {
        console::notice(&format!("attempts that another process runs: {}", elsewhere.get()));
    }
    let (configuration, records) = read_records(&args.out, process_env)?;
    let report = RunReport::new(&configuration, &records);
    console::print(&sanitize(&report.to_text())).await?;
    Ok(if report.has_expected_ends() { Exit::Done } else { Exit::Failed })
}

/// Returns the line for a finished attempt.
fn describe(record: &AttemptRecord) -> String {
    format!("{}, attempt {}: {}", record.instance, record.attempt, record.describe_end())
}

fn machine(no_sandbox: bool, process_env: &ProcessEnv) -> Machine {
    let machine = Machine::new(process_env.clone());
    if no_sandbox { machine.without_sandbox() } else { machine }
}

/// Returns the agent of the flags. A model without a key is refused before an attempt starts. Tasks of a suite with scripts need
/// no model.
async fn setup(args: &RunEvalArgs, suite: &Suite, process_env: &ProcessEnv) -> Result<AgentSetup, Failure> {
    let is_program = matches!(args.agent, AgentKind::Program(_));
    let uses_scripts = suite.is_scripted() && args.agent == AgentKind::Task && !has_model(&args.model);
    if !args.flags.is_empty() && (is_program || args.agent == AgentKind::Mini) {
        return Err(Failure::usage("flags after `--` are for the agents session and task"));
    }
    let (mut model, mut client) = (args.model.model.clone(), None);
    let mut flags = Vec::new();
    if uses_scripts {
        model = Some("scripted".to_owned());
        flags.clone_from(&args.flags);
    } else if !is_program {
        let resolved = resolve_model(&args.model, args.configuration, process_env).await?;
        let chosen = Model::choose(&(&resolved).into(), process_env).await?;
        process_env.notices().report_all(chosen.unknown_model());
        model = Some(chosen.route.model.clone());
        flags = model_flags(&args.model)?;
        flags.extend(args.flags.iter().cloned());
        client = (args.agent == AgentKind::Mini).then(|| Arc::new(chosen));
    }
    Ok(AgentSetup {
        kind: args.agent.clone(),
        model,
        flags,
        uses_scripts,
        program: std::env::current_exe().or_failed("cannot find the program of this process")?,
        client,
        time_limit: args.time_limit,
    })
}

/// Returns whether the flags select a model.
fn has_model(args: &ModelArgs) -> bool {
    let ModelArgs { provider, model, base_url, script, profile, .. } = args;
    provider.is_some()
        || [model, base_url].into_iter().any(Option::is_some)
        || [script, profile].into_iter().any(Option::is_some)
}

/// Returns the flags that select the same model in another directory.
fn model_flags(args: &ModelArgs) -> Result<Vec<String>, Failure> {
    let file = |path: &Option<PathBuf>| match path {
        // A profile may be a name.
        Some(path) if path.exists() => absolute(path).map(|path| Some(path.display().to_string())),
        other => Ok(other.as_ref().map(|path| path.display().to_string())),
    };
    let timeout = args.timeout.map(|time| format!("{}ms", time.as_millis()));
    let flags = [
        ("--provider", args.provider.map(|provider| provider.value_name().to_owned())),
        ("--model", args.model.clone()),
        ("--base-url", args.base_url.clone()),
        ("--script", file(&args.script)?),
        ("--dialect", args.dialect.map(|dialect| dialect.name().to_owned())),
        ("--profile", file(&args.profile)?),
        ("--reasoning-effort", args.reasoning_effort.clone()),
        ("--timeout", timeout),
        ("--catalog", file(&args.catalog.catalog)?),
    ];
    let given = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
    Ok(given.flatten().collect())
}

fn read_records(
    directory: &Path,
    process_env: &ProcessEnv,
) -> Result<(RunConfiguration, Vec<AttemptRecord>), Failure> {
    let (configuration, attempts) = read_run(directory, process_env)?;
    Ok((configuration, attempts.into_iter().map(|(record, _)| record).collect()))
}

async fn report(args: &ReportEvalArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (configuration, records) = read_records(&args.run, process_env)?;
    let mut report = RunReport::new(&configuration, &records);
    if let Some(directory) = &args.against {
        let (other, others) = read_records(directory, process_env)?;
        if other.suite != configuration.suite {
            let message = format!("the runs are of the suites {} and {}", configuration.suite, other.suite);
            return Err(Failure::usage(message));
        }
        report = report.against(&directory.display().to_string(), &others);
    }
    let text = match args.output {
        EvalReportFormat::Text => sanitize(&report.to_text()).into_owned(),
        EvalReportFormat::Json => {
            format!("{}\n", report.to_json().or_failed("the report cannot be written as JSON")?)
        }
        EvalReportFormat::Html => report.to_html(),
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

async fn verify(args: &VerifyEvalArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let machine = machine(args.suite.no_sandbox, process_env);
    let suite = Suite::load(&args.suite.suite, &machine).await?;
    let instances = suite.select(args.suite.tasks.as_deref())?;
    let invalid = Cell::new(0_usize);
    let show = |verified: &pintle_eval::VerifiedInstance| {
        if !verified.problems.is_empty() {
            invalid.set(invalid.get() + 1);
        }
        for problem in &verified.problems {
            console::notice(&format!("{}: {problem}", verified.instance));
        }
    };
    pintle_eval::verify(&instances, &machine, usize::from(args.suite.jobs), &show).await?;
    let valid = instances.len() - invalid.get();
    console::print(&format!("{valid} of {} tasks are valid\n", instances.len())).await?;
    Ok(if invalid.get() == 0 { Exit::Done } else { Exit::Failed })
}

async fn export(args: &ExportEvalArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (configuration, attempts) = read_run(&args.run, process_env)?;
    let text = match args.format {
        EvalExportFormat::Predictions => {
            pintle_eval::predictions(&configuration, &attempts, &machine(false, process_env)).await?
        }
        EvalExportFormat::Junit => pintle_eval::junit(&configuration, &attempts),
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}
