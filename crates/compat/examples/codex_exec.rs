//! A host that `@openai/codex-sdk` can drive, with a scripted model.
//!
//! `tests/compat` runs it. Each process handles one prompt, from standard input, and leaves the session to the next one.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a host reads files and variables, and prints"
)]

#[path = "support/host.rs"]
mod host;

use std::error::Error;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;

use pintle_agent::{Outcome, OutcomeStatus, RunError, Session, SessionConfig, SessionId, UserMessage};
use pintle_compat::Line;
use pintle_compat::codex::{ExecOptions, Formatter, ResumeTarget, SandboxMode};
use pintle_env::{ExecutionEnvironment, LocalEnvironment, ReadOnlyEnvironment};
use pintle_llm::{AnswerSchema, ImageData, Verdict};

use host::Host;

/// How often a model may repair an answer that does not match the schema.
const REPAIRS: u32 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match ExecOptions::parse(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    for warning in &parsed.warnings {
        eprintln!("warning: {warning}");
    }
    match run(&parsed.options).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &ExecOptions) -> Result<bool, Box<dyn Error>> {
    let host = Host::start().await?;
    let schema = match &options.output_schema {
        Some(file) => {
            Some(AnswerSchema::new(serde_json::from_str(&std::fs::read_to_string(file)?)?, REPAIRS)?)
        }
        None => None,
    };
    let session = session(options, &host, schema.as_ref())?;
    let is_success = follow(&session, prompt(options)?, schema).await?;
    // Fails only if the session has ended.
    let _ = session.handle().stop_turn();
    session.detach().await;
    host.server.shutdown().await;
    Ok(is_success)
}

fn session(
    options: &ExecOptions,
    host: &Host,
    schema: Option<&AnswerSchema>,
) -> Result<Session, Box<dyn Error>> {
    let directory = match &options.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir()?,
    };
    let local = Arc::new(LocalEnvironment::with_host_env(directory, std::env::vars_os())?);
    let env: Arc<dyn ExecutionEnvironment> = match options.sandbox {
        Some(SandboxMode::ReadOnly) => Arc::new(ReadOnlyEnvironment::new(local)),
        _ => local,
    };
    let mut config = SessionConfig::default();
    if let Some(schema) = schema {
        config = config.with_user_instructions(schema.instructions());
    }
    let profile = Host::profile(options.model.as_deref());
    let builder = Session::builder(host.client()?, profile, env).with_config(config);
    let resume = match &options.resume {
        Some(ResumeTarget::Id(id)) => Some(id.clone()),
        Some(ResumeTarget::Last) => Some(host.newest()?),
        None => None,
    };
    Ok(host.keep(builder, resume.as_deref(), &SessionId::generate())?.build()?)
}

fn prompt(options: &ExecOptions) -> Result<UserMessage, Box<dyn Error>> {
    let mut text = options.prompt.clone().unwrap_or_default();
    if text.is_empty() {
        std::io::stdin().read_to_string(&mut text)?;
    }
    let mut message = UserMessage::from(text);
    for image in &options.images {
        message = message.with_image(ImageData::data(std::fs::read(image)?, "image/png"));
    }
    Ok(message)
}

/// Writes the lines of the prompt, and of the repairs of its answer.
async fn follow(
    session: &Session,
    prompt: UserMessage,
    mut schema: Option<AnswerSchema>,
) -> Result<bool, Box<dyn Error>> {
    let mut formatter = Formatter::new(session.id().clone());
    print(formatter.begin());
    let mut outcome: Option<Outcome> = None;
    let mut next = Some(prompt);
    while let Some(message) = next.take() {
        let mut run = session.submit(message);
        while let Some(event) = run.next().await {
            print(formatter.event(&event));
        }
        let ended = run.await.or_else(RunError::into_outcome)?;
        let ended = match &outcome {
            Some(earlier) => ended.continuing(earlier),
            None => ended,
        };
        if let Some(schema) = schema.as_mut().filter(|_| ended.status == OutcomeStatus::Completed) {
            match schema.check(&ended.text) {
                Verdict::Accept(value) => print(formatter.answer(&value)),
                Verdict::AskAgain(message) => next = Some(message.into()),
                Verdict::Fail(failure) => {
                    print(formatter.fail(&failure.to_string()));
                    return Ok(false);
                }
            }
        }
        outcome = Some(ended);
    }
    let outcome = outcome.ok_or("there was no prompt")?;
    print(formatter.end(&outcome));
    Ok(matches!(outcome.status, OutcomeStatus::Completed | OutcomeStatus::AwaitingInput))
}

fn print(lines: Vec<Line>) {
    for line in lines {
        println!("{line}");
    }
}
