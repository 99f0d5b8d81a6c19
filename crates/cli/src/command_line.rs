//! Parses the command line of this process and reports usage errors.

mod conversation;
mod given;
mod hint;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::args::{Arguments, Command, ErrorFormat};
use crate::console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render;

/// Parses the arguments of this process.
///
/// Writes help and version to standard output and usage errors to standard error. With a JSON output format, a usage
/// error is also written to standard output as an object.
///
/// # Errors
///
/// The exit status, if the arguments ask for help or are invalid.
pub(crate) fn parse() -> Result<Arguments, Exit> {
    let args = own_arguments();
    arguments(&args).map_err(|error| {
        let kind = error.kind();
        let is_help = matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if !is_help && kind != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return report_usage_error(&error, &args);
        }
        // A closed standard output cannot be reported anywhere.
        let _ = error.print();
        if is_help { Exit::Done } else { Exit::Usage }
    })
}

/// Parses the arguments of this process again, with more flags of its subcommand.
///
/// # Errors
///
/// A usage failure.
pub(crate) fn parse_with(flags: Vec<String>) -> Result<Arguments, Failure> {
    let mut args = own_arguments();
    let after_subcommand = args.len().min(2);
    args.splice(after_subcommand..after_subcommand, flags.into_iter().map(OsString::from));
    arguments(&args).map_err(|error| usage_failure(&error))
}

/// Returns the arguments of this process, with the subcommand that they go without.
fn own_arguments() -> Vec<OsString> {
    conversation::named(std::env::args_os().collect())
}

fn arguments(args: &[OsString]) -> Result<Arguments, clap::Error> {
    let matches = Arguments::command().try_get_matches_from(args)?;
    let mut arguments = Arguments::from_arg_matches(&matches)?;
    if let Command::Chat(run) | Command::Run(run) = &mut arguments.command
        && let Some((_, matches)) = matches.subcommand()
    {
        run.session.given = given::remember(matches);
    }
    Ok(arguments)
}

fn report_usage_error(error: &clap::Error, args: &[OsString]) -> Exit {
    let failure = usage_failure(error);
    let failure = match hint::for_error(error, args) {
        Some(hint) => failure.with_hint(&hint),
        None => failure,
    };
    if let Some(format) = ErrorFormat::from_args(args)
        && let Ok(line) = render::failure_line(format.error_type, &failure)
    {
        console::write_object(&line);
    }
    console::report(&failure);
    failure.exit()
}

/// Returns the parser's error on one line, without its usage and help paragraphs.
fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        words.strip_prefix("error: ").unwrap_or(&words).to_owned()
    });
    let before_usage = paragraphs.take_while(|paragraph| !paragraph.starts_with("Usage:"));
    let details: Vec<String> =
        before_usage.filter(|paragraph| !paragraph.starts_with("For more information")).collect();
    Failure::usage(details.join("; ")).with_hint("see `pintle --help`")
}

#[cfg(test)]
mod tests;
