//! Parses a command line and reports usage errors.

#[cfg(feature = "compat")]
mod claude;
mod conversation;
#[cfg(feature = "compat")]
mod exec;
mod given;
mod hint;
mod replaced;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
#[cfg(feature = "compat")]
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

#[cfg(feature = "compat")]
pub(crate) use self::claude::{options as stream_options, own_mode};
pub(crate) use self::replaced::replaced;
use crate::args::{Arguments, CommandWords, ErrorFormat};
use crate::console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render;

/// Parses the words of this process. Returns the arguments, and the words for [`parse_with`].
///
/// Writes help and version to standard output and usage errors to standard error. With a JSON output format, a usage
/// error is also written to standard output as an object.
///
/// The error is the exit status, also if the arguments ask for help. Help that cannot be written is a failure.
pub(crate) fn parse(passed: Vec<OsString>) -> Result<(Arguments, CommandWords), Exit> {
    #[cfg(feature = "compat")]
    if let Some(text) = exec::information(&passed) {
        console::write_object(text);
        return Err(Exit::Done);
    }
    let words = words(passed).map_err(|failure| {
        console::report(&failure);
        Exit::from(failure.kind())
    })?;
    #[cfg_attr(not(feature = "compat"), expect(unused_mut, reason = "another build sets the words"))]
    let mut arguments = arguments(&words.own).map_err(|error| {
        let kind = error.kind();
        let is_help = matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if !is_help && kind != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return report_usage_error(&error, &words.own);
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
    if let Some(run) = arguments.command.session_mut() {
        run.passed = Arc::clone(&words.passed);
    }
    Ok((arguments, words))
}

/// Command line with the flags that a session remembers.
#[derive(Debug)]
pub(crate) struct CommandLine {
    pub(crate) arguments: Arguments,
    /// Names of the flags that were typed or remembered.
    pub(crate) given: BTreeSet<String>,
    /// Names of all flags of the subcommand.
    pub(crate) known: BTreeSet<String>,
    words: CommandWords,
    /// Number of words before the flags of the subcommand.
    position: usize,
}

/// Parses a command line again, with the flags that its session remembers.
pub(crate) fn parse_with(words: &CommandWords, remembered: &[String]) -> Result<CommandLine, Failure> {
    let mut args = words.own.to_vec();
    insert(&mut args, 2, remembered);
    let matches = Arguments::command().try_get_matches_from(&args).map_err(|error| usage_failure(&error))?;
    let (mut position, mut command, mut level) = (1, Arguments::command(), &matches);
    while let Some((name, matches)) = level.subcommand() {
        let Some(subcommand) = command.find_subcommand(name) else { break };
        command = subcommand.clone();
        level = matches;
        position += 1;
    }
    let flags = command.get_arguments().filter_map(|argument| argument.get_long());
    let known: BTreeSet<String> = flags.map(str::to_owned).collect();
    let is_given = |id: &str| level.value_source(id) == Some(ValueSource::CommandLine);
    let given = command.get_arguments().filter(|argument| is_given(argument.get_id().as_str()));
    let given = given.filter_map(|argument| argument.get_long().map(str::to_owned)).collect();
    let arguments = from_matches(&matches).map_err(|error| usage_failure(&error))?;
    Ok(CommandLine { arguments, given, known, words: words.clone(), position })
}

impl CommandLine {
    /// Parses the arguments once more, with flags of the configuration, which the session does not remember. `profile` is the
    /// value of `--profile` if it is the name of a profile in the configuration, which the flags then replace.
    pub(crate) fn configured(
        &self,
        remembered: &[String],
        configured: &[String],
        profile: Option<&str>,
    ) -> Result<Arguments, Failure> {
        let mut args = self.words.own.to_vec();
        let session_rules = given::session_rules(remembered);
        let named = profile.map(|name| format!("--profile={name}"));
        if let Some(name) = profile {
            remove_profile(&mut args, name);
        }
        let remembered = remembered.iter().filter(|word| Some(*word) != named.as_ref());
        let words: Vec<String> = configured.iter().chain(remembered).cloned().collect();
        insert(&mut args, self.position, &words);
        let mut arguments = arguments(&args).map_err(|error| {
            let failure = usage_failure(&error);
            if configured.is_empty() {
                return failure;
            }
            failure.with_hint(&format!("the configuration adds {}", configured.join(" ")))
        })?;
        if let (Some(run), Some(typed)) = (arguments.command.session_mut(), self.arguments.command.session())
        {
            run.session.given.clone_from(&typed.session.given);
            run.typed.clone_from(&typed.typed);
            run.policy.session_rules = session_rules;
            if let Some(name) = profile {
                run.session.given.insert("profile".to_owned(), vec![name.to_owned()]);
            }
        }
        Ok(arguments)
    }
}

/// Inserts flags after the subcommand, which are the first `position` words.
fn insert(args: &mut Vec<OsString>, position: usize, flags: &[String]) {
    let position = position.min(args.len());
    args.splice(position..position, flags.iter().map(OsString::from));
}

/// Removes `--profile NAME`.
fn remove_profile(args: &mut Vec<OsString>, name: &str) {
    let end = args.iter().position(|word| word == "--").unwrap_or(args.len());
    let words = args.get(..end).unwrap_or_default();
    let joined = format!("--profile={name}");
    if let Some(position) = words.iter().position(|word| *word == *joined) {
        args.remove(position);
    } else if let Some(position) = words
        .windows(2)
        .position(|pair| matches!(pair, [flag, value] if flag == "--profile" && value == name))
    {
        args.drain(position..position + 2);
    }
}

/// Returns the words of a command line, translated to own flags and with an omitted subcommand added.
fn words(passed: Vec<OsString>) -> Result<CommandWords, Failure> {
    #[cfg(feature = "compat")]
    let translated = match exec::translated(&passed)? {
        None => claude::translated(&passed)?,
        translated => translated,
    };
    #[cfg(feature = "compat")]
    if let Some(exec::Translated { arguments, warnings }) = translated {
        warnings.iter().for_each(|warning| console::notice(warning));
        return Ok(CommandWords { passed: passed.into(), own: arguments.into() });
    }
    let own = conversation::named(passed.clone());
    Ok(CommandWords { passed: passed.into(), own: own.into() })
}

fn arguments(args: &[OsString]) -> Result<Arguments, clap::Error> {
    from_matches(&Arguments::command().try_get_matches_from(args)?)
}

fn from_matches(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
    let mut arguments = Arguments::from_arg_matches(matches)?;
    if let Some(run) = arguments.command.session_mut() {
        let mut innermost = matches;
        while let Some((_, matches)) = innermost.subcommand() {
            innermost = matches;
        }
        run.session.given = given::remember(innermost);
        run.typed = given::typed(innermost);
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
    Exit::from(failure.kind())
}

/// Returns the parser's error on one line, without its usage and help paragraphs.
fn usage_failure(error: &clap::Error) -> Failure {
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
    Failure::usage(details.join("; ")).with_hint("see `pintle --help`")
}

#[cfg(test)]
pub(crate) use self::tests::session_of;

#[cfg(test)]
mod tests;
