//! `pintle doctor`: checks keys, network, programs, sandbox, terminal and directories.

mod directories;
mod network;
mod programs;
mod report;

use pintle_env::{ExecutionEnvironment as _, LocalEnvironment};
use pintle_host::environment::SANDBOX_HINT;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::keys::ConfiguredKeys;
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::provider::Provider;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_tui::console::{self, Console};
use pintle_tui::interrupt::Interrupts;

use self::report::{DoctorCheck, DoctorReport};
use crate::arguments::{DoctorArgs, ReportFormat};
use crate::exit::Exit;

/// Remedy for a missing key.
const NO_KEY: &str = "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or run `pintle login`; a local server needs no key";

/// Checks everything and reports it, one line for each check.
pub(crate) async fn doctor(args: &DoctorArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let interrupts = Interrupts::listen()?;
    let environment = process_env.local_environment(&process_env.directory(None)?)?;
    let checks = interrupts.race(async { Ok(checks(args, &environment, process_env).await) }).await;
    environment.cleanup().await.or_failed("a command may still be running")?;
    let report = DoctorReport::new(checks?);
    let text = match args.output {
        ReportFormat::Json => json_line(&report)?,
        ReportFormat::Text => sanitize(&report.text()).into_owned(),
    };
    Console::new().write(&text).await?;
    Ok(if report.has_problem() { Exit::Failed } else { Exit::Done })
}

async fn checks(
    args: &DoctorArgs,
    environment: &LocalEnvironment,
    process_env: &ProcessEnv,
) -> Vec<DoctorCheck> {
    let mut checks = vec![DoctorCheck::ok("version", env!("PINTLE_VERSION"))];
    checks.push(directories::configuration(process_env));
    let (keys, providers) = keys(process_env);
    checks.push(keys);
    if args.offline {
        checks.push(DoctorCheck::ok("network", "not checked (--offline)"));
    } else {
        checks.extend(network::checks(&providers, process_env).await);
    }
    checks.push(programs::git(environment).await);
    checks.push(sandbox(environment).await);
    checks.push(programs::containers(environment).await);
    checks.push(programs::ssh(environment).await);
    checks.push(terminal(process_env));
    checks.push(directories::store(process_env).await);
    checks.push(directories::state(process_env));
    checks
}

/// Checks where keys come from, and returns the providers that have one. Commands that print keys do not run.
fn keys(process_env: &ProcessEnv) -> (DoctorCheck, Vec<Provider>) {
    let configured = ConfiguredKeys::read(process_env);
    let none = ConfiguredKeys::default();
    let known = configured.as_ref().unwrap_or(&none);
    let found: Vec<(Provider, &str)> = Provider::ALL
        .into_iter()
        .filter_map(|provider| Some((provider, known.source_or_variable(provider, process_env)?)))
        .collect();
    let sources: Vec<String> =
        found.iter().map(|(provider, source)| format!("{} ({source})", provider.name())).collect();
    let sources = if sources.is_empty() { "none".to_owned() } else { sources.join(", ") };
    let check = match &configured {
        // With a key in a variable, the damaged file is only a warning.
        Err(failure) if found.is_empty() => {
            DoctorCheck::problem("keys", failure.message(), "correct the file")
        }
        Err(failure) => DoctorCheck::warning("keys", failure.message(), "correct the file"),
        Ok(_) if found.is_empty() => DoctorCheck::warning("keys", sources, NO_KEY),
        Ok(_) => DoctorCheck::ok("keys", sources),
    };
    (check, found.into_iter().map(|(provider, _)| provider).collect())
}

#[cfg(target_os = "linux")]
async fn sandbox(environment: &LocalEnvironment) -> DoctorCheck {
    use pintle_env::{SandboxLevel, SandboxSupport};

    let support = match SandboxSupport::probe(environment).await {
        Ok(support) => support,
        Err(error) => {
            return DoctorCheck::problem(
                "sandbox",
                pintle_llm::error_chain(&error),
                "this machine cannot start commands",
            );
        }
    };
    let reason = |level| support.unavailable(level).map(ToString::to_string).unwrap_or_default();
    match support.levels().first() {
        Some(SandboxLevel::Full) => DoctorCheck::ok(
            "sandbox",
            format!("level full ({})", support.bubblewrap_version().unwrap_or_default()),
        ),
        Some(level) => DoctorCheck::warning(
            "sandbox",
            format!("level {level}; no level full: {}", reason(SandboxLevel::Full)),
            "install bubblewrap and allow user namespaces, so that commands do not see your keys",
        ),
        None => DoctorCheck::warning(
            "sandbox",
            format!("none: {}; {}", reason(SandboxLevel::Full), reason(SandboxLevel::Writes)),
            SANDBOX_HINT,
        ),
    }
}

#[cfg(not(target_os = "linux"))]
async fn sandbox(_environment: &LocalEnvironment) -> DoctorCheck {
    DoctorCheck::warning("sandbox", "none: a sandbox requires Linux", SANDBOX_HINT)
}

fn terminal(process_env: &ProcessEnv) -> DoctorCheck {
    let style = console::style(process_env);
    let term = process_env.variable("TERM").unwrap_or_else(|| "not set".to_owned());
    let colours = if style.colour { "colours" } else { "no colours" };
    let is_input = process_env::stdin_is_terminal();
    match (is_input && style.terminal, style.moves) {
        (true, true) => {
            let size = console::size();
            let (columns, rows) = (size.columns, size.rows);
            let message = format!("TERM {term}, {colours}, {columns} by {rows}, keyboard protocol unknown");
            DoctorCheck::ok("terminal", message)
        }
        (true, false) => DoctorCheck::warning(
            "terminal",
            format!("TERM {term} cannot move its cursor"),
            "a conversation needs another terminal; `pintle run` does not",
        ),
        (false, _) => DoctorCheck::ok("terminal", format!("none at standard input and output; TERM {term}")),
    }
}
