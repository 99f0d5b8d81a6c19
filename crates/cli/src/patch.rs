//! `pintle patch`: the v4a patch engine on files, without a model.

mod report;
mod root;

use std::path::Path;

use pintle_env::ExecutionEnvironment;
use pintle_patch::{ApplyOptions, MAX_PATCH_BYTES, Plan, parse, plan};
use pintle_tools::builtin::{apply_plan, read_files};

use self::root::Root;
use crate::args::{PatchArgs, PatchCommand, PatchInput, ReportFormat};
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::{self, Host};
use crate::interrupt::Interrupts;
use crate::render;

/// Says what a patch does to the files, and does it unless it is only to be checked: all of it, or nothing.
///
/// A signal stops the work until the first file is written, and no more after that.
///
/// # Errors
///
/// A usage failure if the patch or the directory cannot be had, else the reason why no file is changed.
pub(crate) async fn patch(args: PatchArgs, host: &Host) -> Result<Exit, Failure> {
    let (input, writes) = match args.command {
        PatchCommand::Apply(args) => (args.input, !args.dry_run),
        PatchCommand::Check(input) => (input, false),
    };
    // Until here and while standard input is read, a signal simply ends the process.
    let root = Root::at(&host.directory(input.dir.as_deref())?)?;
    let text = patch_text(input.file.as_deref())?;
    let interrupts = Interrupts::listen()?;
    let env = host.environment(root.path())?;
    let plan = interrupts.unless(planned(&text, &input, &root, &env)).await?;
    if writes {
        // A signal may have come while the plan was made.
        interrupts.unless(async { Ok(()) }).await?;
        apply_plan(&env, &plan)
            .await
            .map_err(|error| Failure::failed("the patch fits and is not applied").because(&error))?;
    }
    tell(&plan, input.output, host).await?;
    Ok(Exit::Done)
}

/// The patch: a file, or standard input for `-` and where nothing is named.
fn patch_text(file: Option<&Path>) -> Result<String, Failure> {
    let limit = MAX_PATCH_BYTES as u64;
    match file {
        Some(path) if path != Path::new("-") => host::read_text_within(limit, "patch", path),
        None if host::stdin_is_terminal() => {
            Err(Failure::usage("no patch: expected FILE, or `-` for standard input"))
        }
        Some(_) | None => host::read_stdin_within(limit),
    }
}

async fn planned(
    text: &str,
    input: &PatchInput,
    root: &Root,
    env: &dyn ExecutionEnvironment,
) -> Result<Plan, Failure> {
    let patch = parse(text).map_err(|error| Failure::in_lines(Exit::Failed, &error.to_string()))?;
    let patch = patch.resolve_paths(|path| root.name(path, env))?;
    let files = read_files(env, &patch)
        .await
        .map_err(|error| Failure::failed("a file of the patch cannot be read").because(&error))?;
    let options = if input.reference { ApplyOptions::reference() } else { ApplyOptions::default() };
    plan(&patch, &files, &options).map_err(|error| Failure::in_lines(Exit::Failed, &error.to_string()))
}

async fn tell(plan: &Plan, format: ReportFormat, host: &Host) -> Result<(), Failure> {
    match format {
        ReportFormat::Text => {
            for diagnostic in &plan.diagnostics {
                console::notice(&format!("note: {diagnostic}"));
            }
            Console::new().write(&console::style(host).answer(&plan.summary(), None)).await
        }
        ReportFormat::Json => Console::new().write(&render::line(&report::Report::of(plan))?).await,
    }
}
