//! `pintle patch`: the v4a patch engine on files, without a model.

mod report;
mod root;

use std::path::Path;

use pintle_env::ExecutionEnvironment;
use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::sanitize::json_line;
use pintle_patch::{ApplyOptions, MAX_PATCH_BYTES, Plan, parse, plan};
use pintle_tools::builtin::{apply_plan, read_files};
use pintle_tui::console::{self, Console};
use pintle_tui::interrupt::Interrupts;

use self::root::PatchRoot;
use crate::arguments::{PatchArgs, PatchCommand, PatchInput, ReportFormat};
use crate::exit::Exit;

/// Checks a patch or applies it atomically, and reports the changes.
///
/// A signal cancels the command until the first file is written, and is ignored afterwards.
pub(crate) async fn patch(args: PatchArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (input, writes) = match args.command {
        PatchCommand::Apply(args) => (args.input, !args.dry_run),
        PatchCommand::Check(input) => (input, false),
    };
    // Until the handlers are installed, a signal terminates the process, also while it reads standard input.
    let root = PatchRoot::new(&process_env.directory(input.dir.as_deref())?)?;
    let text = patch_text(input.file.as_deref())?;
    let interrupts = Interrupts::listen()?;
    let env = process_env.local_environment(root.path())?;
    let plan = interrupts.race(make_plan(&text, &input, &root, &env)).await?;
    if writes {
        // A signal may have arrived while the plan was made.
        interrupts.race(async { Ok(()) }).await?;
        apply_plan(&env, &plan).await.or_failed("cannot apply the patch")?;
    }
    report(&plan, input.output, process_env).await?;
    Ok(Exit::Done)
}

/// Reads the patch from a file, or from standard input for `-` or without a file.
fn patch_text(file: Option<&Path>) -> Result<String, Failure> {
    let limit = MAX_PATCH_BYTES as u64;
    match file {
        Some(path) if path != Path::new("-") => process_env::read_text_within(limit, "patch", path),
        None if process_env::stdin_is_terminal() => {
            Err(Failure::usage("no patch given: expected FILE, or `-` for standard input"))
        }
        Some(_) | None => process_env::read_stdin_within(limit),
    }
}

async fn make_plan(
    text: &str,
    input: &PatchInput,
    root: &PatchRoot,
    env: &dyn ExecutionEnvironment,
) -> Result<Plan, Failure> {
    let patch = parse(text).map_err(|error| Failure::multi_line(FailureKind::Other, &error.to_string()))?;
    let patch = patch.resolve_paths(|path| root.canonical_name(path, env))?;
    let files = read_files(env, &patch).await.or_failed("cannot read a file named in the patch")?;
    let options = if input.reference { ApplyOptions::reference() } else { ApplyOptions::default() };
    plan(&patch, &files, &options)
        .map_err(|error| Failure::multi_line(FailureKind::Other, &error.to_string()))
}

async fn report(plan: &Plan, format: ReportFormat, process_env: &ProcessEnv) -> Result<(), Failure> {
    match format {
        ReportFormat::Text => {
            for diagnostic in &plan.diagnostics {
                console::notice(&format!("note: {diagnostic}"));
            }
            Console::new().write(&console::style(process_env).body(&plan.summary(), None)).await
        }
        ReportFormat::Json => Console::new().write(&json_line(&report::PatchReport::new(plan))?).await,
    }
}
