//! Parses a command line and reports usage errors.

#[cfg(feature = "compat")]
mod claude;
mod conversation;
mod definition;
#[cfg(feature = "compat")]
mod exec;
mod given;
mod hint;

use std::ffi::OsString;
use std::io;

use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches as _};
use pintle_host::failure::Failure;
use pintle_tui::{console, render};

#[cfg(feature = "compat")]
pub(crate) use self::claude::{options as stream_options, own_mode};
use crate::arguments::{Arguments, ErrorFormat};
use crate::exit::Exit;
use crate::exit::command_failure::error_object;

/// Parses the arguments of this process.
///
/// Writes help and version to standard output and usage errors to standard error. With a JSON output format, a usage
/// error is also written to standard output as an object.
///
/// The error is the exit status, also if the arguments ask for help. Help that cannot be written is a failure.
pub(crate) fn parse(passed: Vec<OsString>) -> Result<Arguments, Exit> {
    #[cfg(feature = "compat")]
    if let Some(text) = exec::information(&passed) {
        console::write_object(text);
        return Err(Exit::Done);
    }
    #[cfg(feature = "compat")]
    let words = passed.clone();
    let own = native_arguments(passed).map_err(|failure| {
        console::report(&failure);
        Exit::from(failure.kind())
    })?;
    let parsed = arguments(&own).map_err(|error| {
        let kind = error.kind();
        let is_help = matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if !is_help && kind != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return report_usage_error(&error, &own);
        }
        let written = error.print();
        if !is_help {
            return Exit::Usage;
        }
        match written {
            // A reader may close the pipe early.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let failure = console::unwritten(&error);
                console::report(&failure);
                Exit::from(failure.kind())
            }
            Ok(()) | Err(_) => Exit::Done,
        }
    })?;
    #[cfg(feature = "compat")]
    let parsed = with_passed_arguments(parsed, words);
    Ok(parsed)
}

/// Stores the arguments of the process in the flags of a session.
#[cfg(feature = "compat")]
fn with_passed_arguments(mut arguments: Arguments, words: Vec<OsString>) -> Arguments {
    if let Some(run) = arguments.command.session_mut() {
        run.passed = words.into();
    }
    arguments
}

/// Returns the arguments of a command line, with the command's own flags in place of the flags of other agents, and with the
/// subcommand of a conversation if the caller omitted it.
fn native_arguments(passed: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    #[cfg(feature = "compat")]
    let translated = match exec::translate_arguments(&passed)? {
        None => claude::translate_arguments(&passed)?,
        translated => translated,
    };
    #[cfg(feature = "compat")]
    if let Some(exec::TranslatedArguments { arguments, warnings }) = translated {
        warnings.iter().for_each(|warning| console::notice(warning));
        return Ok(arguments);
    }
    Ok(conversation::insert_chat(passed))
}

/// Parses the arguments of a process, with the definition of only one subcommand if they have no error.
fn arguments(args: &[OsString]) -> Result<Arguments, clap::Error> {
    let alone = definition::for_first_argument(args);
    // Errors and help describe the whole command.
    match alone.and_then(|subcommand| parse_with(subcommand, args).ok()) {
        Some(arguments) => Ok(arguments),
        None => parse_with(definition::complete(), args),
    }
}

fn parse_with(mut command: clap::Command, args: &[OsString]) -> Result<Arguments, clap::Error> {
    let matches = command.try_get_matches_from_mut(args)?;
    from_matches(&command, &matches)
}

fn from_matches(command: &clap::Command, matches: &ArgMatches) -> Result<Arguments, clap::Error> {
    let mut arguments = Arguments::from_arg_matches(matches)?;
    let (mut command, mut matches) = (command, matches);
    while let Some((name, inner)) = matches.subcommand()
        && let Some(subcommand) = command.find_subcommand(name)
    {
        (command, matches) = (subcommand, inner);
    }
    arguments.typed = given::typed_flags(matches);
    if let Some(run) = arguments.command.session_mut() {
        run.session.given = given::remember(command, matches);
        run.typed.clone_from(&arguments.typed);
    }
    Ok(arguments)
}

fn report_usage_error(error: &clap::Error, args: &[OsString]) -> Exit {
    let failure = usage_failure(error, args);
    let failure = match hint::for_error(error, args) {
        Some(hint) => failure.with_hint(&hint),
        None => failure,
    };
    if let Some(format) = ErrorFormat::from_args(args)
        && let Ok(line) = render::failure_line(format.error_type, &error_object(&failure))
    {
        console::write_object(&line);
    }
    console::report(&failure);
    Exit::from(failure.kind())
}

/// Returns the parser's error on one line, without its usage and help paragraphs.
fn usage_failure(error: &clap::Error, args: &[OsString]) -> Failure {
    let text = error.render().to_string();
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        words.strip_prefix("error: ").unwrap_or(&words).to_owned()
    });
    let before_usage = paragraphs.take_while(|paragraph| !paragraph.starts_with("Usage:"));
    let misleads = hint::misleads(error);
    let is_detail = |paragraph: &String| {
        let is_misleading = misleads && paragraph.starts_with("tip:");
        !paragraph.starts_with("For more information") && !is_misleading
    };
    let details: Vec<String> = before_usage.filter(is_detail).collect();
    Failure::usage(details.join("; ")).with_hint(&format!("see `{}`", hint::help_command(args)))
}

#[cfg(test)]
pub(crate) use self::tests::session_of;

#[cfg(test)]
mod tests;
