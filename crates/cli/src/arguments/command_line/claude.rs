//! Command line of Claude Code's `stream-json`, as its SDK passes it, translated to `pintle run`.

use std::ffi::OsString;

use pintle_compat::claude::{PermissionMode, StreamOptions};
use pintle_governance::Mode;
use pintle_host::failure::{Failure, OrFailure as _};

use super::exec::TranslatedArguments;

/// Flag for the conversation.
const STREAM: &str = "claude-stream";

/// Options that select the surface.
const FORMATS: [&str; 2] = ["--input-format", "--output-format"];

/// Name of the command in messages.
const NAME: &str = "stream-json";

/// Translates the SDK's arguments to arguments of a run; `None` for another command line.
///
/// An unknown option, or an unsupported option that could restrict the session, is a usage failure.
pub(super) fn translate_arguments(args: &[OsString]) -> Result<Option<TranslatedArguments>, Failure> {
    let [program, first, ..] = args else { return Ok(None) };
    let words = args.get(1..).unwrap_or_default();
    let is_option = first.to_str().is_some_and(|word| word.starts_with('-'));
    if !is_option || !words.iter().any(names_format) {
        return Ok(None);
    }
    let (options, warnings) = parsed(words)?;
    let mut translated = TranslatedArguments { warnings, ..TranslatedArguments::default() };
    translated.arguments.extend([program.clone(), "run".into()]);
    translated.flag(STREAM);
    add(&mut translated, &options)?;
    Ok(Some(translated))
}

/// Returns the options in the arguments of a process.
pub(crate) fn options(words: &[OsString]) -> Result<StreamOptions, Failure> {
    parsed(words.get(1..).unwrap_or_default()).map(|(options, _)| options)
}

fn names_format(word: &OsString) -> bool {
    let name = word.to_str().map(|word| word.split_once('=').map_or(word, |(name, _)| name));
    name.is_some_and(|name| FORMATS.contains(&name))
}

fn parsed(args: &[OsString]) -> Result<(StreamOptions, Vec<String>), Failure> {
    let words = args.iter().map(|word| word.to_str().ok_or_else(|| word.to_string_lossy().into_owned()));
    let words = words.collect::<Result<Vec<&str>, String>>();
    let words = words.map_err(|word| Failure::usage(format!("{NAME}: {word} is not valid UTF-8")))?;
    for format in FORMATS {
        let is_given = |word: &&str| word.split_once('=').map_or(*word, |(name, _)| name) == format;
        if !words.iter().any(is_given) {
            return Err(Failure::usage(format!("{format} is missing: expected `{format} stream-json`"))
                .with_hint("`pintle run --output json` runs one task without a control channel"));
        }
    }
    let parsed = StreamOptions::parse(&words).or_usage(NAME)?;
    Ok((parsed.options, parsed.warnings))
}

/// Returns the mode of a session for a mode of the host.
///
/// In `auto`, Claude Code classifies each command with a model. Here, commands require approval instead.
pub(crate) fn own_mode(mode: PermissionMode) -> Mode {
    match mode {
        PermissionMode::Plan => Mode::Plan,
        PermissionMode::Default | PermissionMode::DontAsk => Mode::Ask,
        PermissionMode::AcceptEdits | PermissionMode::Auto => Mode::Edit,
        PermissionMode::BypassPermissions => Mode::Auto,
    }
}

/// Adds the flags that a session remembers, and the flags that select it. All others are applied when it is opened.
fn add(translated: &mut TranslatedArguments, options: &StreamOptions) -> Result<(), Failure> {
    let mode = options.permission_mode.or(options.settings.mode).unwrap_or_default();
    if mode == PermissionMode::BypassPermissions && !options.may_bypass {
        return Err(Failure::usage(
            "permission mode bypassPermissions of --settings needs --allow-dangerously-skip-permissions",
        ));
    }
    translated.value("mode", Some(own_mode(mode).as_str()));
    translated.value("model", options.model.as_ref().or(options.settings.model.as_ref()));
    translated.value("reasoning-effort", options.effort.as_ref());
    translated.value("max-turns", options.max_turns.map(|turns| turns.to_string()));
    translated.value("max-cost", options.max_budget_usd.map(|dollars| format!("{dollars:.6}")));
    match (&options.resume, options.continues, options.forks) {
        (Some(id), _, true) => translated.value("fork", Some(id)),
        (Some(id), _, false) => translated.value("resume", Some(id)),
        (None, true, true) => {
            return Err(Failure::usage(
                "--fork-session with --continue is not supported: name the session with --resume",
            ));
        }
        (None, true, false) => translated.flag("continue"),
        (None, false, _) => {}
    }
    if options.ephemeral {
        translated.flag("no-session");
    }
    let ignored = [
        (options.fallback_model.is_some(), "--fallback-model: no other model takes over"),
        (options.thinking.is_some(), "--thinking: use --effort"),
        (
            options.settings.sandbox == Some(false),
            "--settings sandbox.enabled: only --no-sandbox of pintle turns it off",
        ),
    ];
    for (is_given, warning) in ignored {
        if is_given {
            translated.warnings.push(format!("option {warning}"));
        }
    }
    for directory in &options.added_directories {
        let shown = directory.display();
        translated.warnings.push(format!("--add-dir {shown}: commands cannot write there"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::exec::render_translation;
    use super::*;

    const BASE: &str = "pintle --output-format stream-json --verbose --input-format=stream-json";

    fn translate(line: &str) -> Result<String, String> {
        render_translation(translate_arguments, line)
    }

    #[test]
    fn options_become_those_of_a_run() {
        for (more, expected) in [
            ("", "pintle run --claude-stream --mode=ask"),
            ("--model m --max-turns 3", "pintle run --claude-stream --mode=ask --model=m --max-turns=3"),
            (
                "--permission-mode plan --resume a1 --fork-session",
                "pintle run --claude-stream --mode=plan --fork=a1",
            ),
            (
                "--permission-mode acceptEdits --continue --max-budget-usd 0.5",
                "pintle run --claude-stream --mode=edit --max-cost=0.500000 --continue",
            ),
            ("--permission-mode bypassPermissions", "pintle run --claude-stream --mode=auto"),
            (
                "--dangerously-skip-permissions --no-session-persistence",
                "pintle run --claude-stream --mode=auto --no-session",
            ),
        ] {
            assert_eq!(translate(&format!("{BASE} {more}")).as_deref(), Ok(expected), "{more}");
        }
        for line in ["pintle", "pintle run x", "pintle --model x", "pintle exec --output-format x"] {
            let translated = translate(line);
            assert_eq!(translated.as_deref(), Ok("another command"), "{line}");
        }
    }

    #[test]
    fn options_that_restrict_or_lack_a_partner_are_refused() {
        for (line, problem) in [
            (format!("{BASE} --managed-settings {{}}"), "--managed-settings"),
            (
                format!("{BASE} --settings {{\"permissions\":{{\"defaultMode\":\"bypassPermissions\"}}}}"),
                "--allow-dangerously-skip-permissions",
            ),
            (format!("{BASE} --continue --fork-session"), "name the session with --resume"),
            ("pintle -p hello --output-format json".to_owned(), "--input-format stream-json"),
        ] {
            let message = translate(&line).unwrap_err();
            assert!(message.contains(problem), "{line}: {message}");
        }
    }
}
