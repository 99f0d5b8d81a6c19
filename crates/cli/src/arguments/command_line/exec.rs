//! `pintle exec`: the command line of `codex exec`, as its SDKs pass it, translated to `pintle run`.

use std::ffi::OsString;

use pintle_compat::codex::{ApprovalPolicy, ExecOptions, ResumeTarget, SandboxMode, WebSearchMode};
use pintle_host::failure::{Failure, OrFailure as _};

/// The subcommand.
const NAME: &str = "exec";

/// The server used by the desktop application of codex and by its Python package `openai-codex`.
const APP_SERVER: &str = "app-server";

/// Help of the subcommand, whose arguments are translated before they are parsed.
const HELP: &str = "\
Run one task with the options of `codex exec`

This subcommand is for programs that start `codex exec`, such as the SDKs of codex. `pintle run` is the command for users.

Usage: pintle exec [OPTIONS] [PROMPT]
       pintle exec [OPTIONS] resume <ID|--last> [PROMPT]

Options:
      --json                        Write the events as lines of JSON
  -m, --model <MODEL>               Model name
  -s, --sandbox <MODE>              read-only (the default), workspace-write or danger-full-access
  -a, --ask-for-approval <POLICY>   untrusted, on-failure, on-request or never
      --full-auto                   Default to --sandbox workspace-write and --ask-for-approval on-request
  -C, --cd <DIR>                    Working directory
  -i, --image <FILE>                Attach this image to the prompt; may be repeated
      --output-schema <FILE>        JSON schema of the final message
  -o, --output-last-message <FILE>  Write the final message to this file
      --ephemeral                   Keep no session
  -c, --config <KEY=VALUE>          Setting of codex, such as approval_policy or web_search
  -h, --help                        Print help
  -V, --version                     Print version

Without a prompt, it is read from standard input. `pintle run --help` lists the options of Pintle itself.
";

/// Version of this program, as `pintle --version` prints it.
const VERSION: &str = concat!("pintle ", env!("PINTLE_VERSION"), "\n");

/// Hint at the end of usage errors.
const HELP_HINT: &str = "see `pintle exec --help`";

/// Flag for the stream of lines.
pub(crate) const STREAM: &str = "codex-stream";

/// Arguments of a run, and the arguments that the translation ignored.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TranslatedArguments {
    pub(super) arguments: Vec<OsString>,
    pub(super) warnings: Vec<String>,
}

/// Translates the arguments of `exec` to arguments of a run; `None` for another command.
///
/// An unknown option, or an unsupported option that could restrict the run, is a usage failure.
pub(super) fn translate_arguments(args: &[OsString]) -> Result<Option<TranslatedArguments>, Failure> {
    let [program, command, rest @ ..] = args else { return Ok(None) };
    if command == APP_SERVER {
        return Err(Failure::usage(format!("the {APP_SERVER} of codex is not supported"))
            .with_hint("programs that start `codex exec` are, such as the packages @openai/codex-sdk and openai-codex-sdk"));
    }
    if command != NAME {
        return Ok(None);
    }
    let words = rest.iter().map(|word| word.to_str().ok_or_else(|| word.to_string_lossy().into_owned()));
    let words = words.collect::<Result<Vec<&str>, String>>();
    let words = words.map_err(|word| Failure::usage(format!("exec: {word} is not valid UTF-8")));
    let words = words.map_err(|failure| failure.with_hint(HELP_HINT))?;
    let parsed = ExecOptions::parse(&words).or_usage(NAME);
    let parsed = parsed.map_err(|failure| failure.with_hint(HELP_HINT))?;
    let mut translated = TranslatedArguments { warnings: parsed.warnings, ..TranslatedArguments::default() };
    translated.arguments.extend([program.clone(), "run".into()]);
    translated.add(&parsed.options);
    Ok(Some(translated))
}

/// Returns the help or the version if the arguments ask for it.
pub(super) fn information(args: &[OsString]) -> Option<&'static str> {
    let [_, command, rest @ ..] = args else { return None };
    if command == "help" && matches!(rest, [name] if name == NAME) {
        return Some(HELP);
    }
    let mut options = rest.iter().take_while(|word| *word != "--").filter(|_| command == NAME);
    options.find_map(|word| match word.to_str() {
        Some("--help" | "-h") => Some(HELP),
        Some("--version" | "-V") => Some(VERSION),
        _ => None,
    })
}

impl TranslatedArguments {
    fn add(&mut self, options: &ExecOptions) {
        if options.json {
            self.flag(STREAM);
        }
        self.authority(options);
        self.value("model", options.model.as_ref());
        self.value("base-url", options.base_url.as_ref());
        self.value("reasoning-effort", options.reasoning_effort.as_ref());
        self.value("dir", options.directory.as_ref());
        self.value("output-schema", options.output_schema.as_ref());
        self.value("output-last-message", options.last_message.as_ref());
        options.images.iter().for_each(|image| self.value("image", Some(image)));
        match &options.resume {
            Some(ResumeTarget::Id(id)) => self.value("resume", Some(id)),
            Some(ResumeTarget::Last) => self.flag("continue"),
            None => {}
        }
        if options.ephemeral {
            self.flag("no-session");
        }
        for directory in &options.added_directories {
            let shown = directory.display();
            self.warnings
                .push(format!("--add-dir {shown}: commands cannot write there, which only --cd allows"));
        }
        // Without a prompt, a session would resume its unfinished run.
        self.arguments.push("--".into());
        self.arguments.push(options.prompt.as_deref().unwrap_or("-").into());
    }

    /// Adds the permissions of the run. As in codex, the default is read-only.
    fn authority(&mut self, options: &ExecOptions) {
        let is_asking = options.approval == Some(ApprovalPolicy::Untrusted);
        match options.sandbox {
            None | Some(SandboxMode::ReadOnly) => self.value("mode", Some("plan")),
            // Without a user to ask, calls that need approval are denied.
            Some(SandboxMode::WorkspaceWrite | SandboxMode::DangerFullAccess) if is_asking => {
                self.value("mode", Some("edit"));
            }
            Some(SandboxMode::WorkspaceWrite | SandboxMode::DangerFullAccess) => {
                self.value("mode", Some("auto"))
            }
        }
        if options.sandbox == Some(SandboxMode::DangerFullAccess) {
            self.flag("no-sandbox");
        }
        self.value("network", options.network.map(|is_on| if is_on { "on" } else { "off" }));
        if options.web_search == Some(WebSearchMode::Disabled) {
            self.value("deny", Some("web_search"));
        }
    }

    pub(super) fn flag(&mut self, name: &str) {
        self.arguments.push(format!("--{name}").into());
    }

    pub(super) fn value(&mut self, name: &str, value: Option<impl AsRef<std::ffi::OsStr>>) {
        let Some(value) = value else { return };
        let mut word = OsString::from(format!("--{name}="));
        word.push(value.as_ref());
        self.arguments.push(word);
    }
}

/// Returns the translated arguments of a line, or the error message.
#[cfg(test)]
pub(super) fn render_translation(
    translate: fn(&[OsString]) -> Result<Option<TranslatedArguments>, Failure>,
    line: &str,
) -> Result<String, String> {
    let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let translated = translate(&args).map_err(|failure| failure.message())?;
    Ok(translated.map_or_else(
        || "another command".to_owned(),
        |translated| {
            let words = translated.arguments.iter().map(|word| word.to_string_lossy());
            words.collect::<Vec<_>>().join(" ")
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(line: &str) -> Result<String, String> {
        render_translation(translate_arguments, line)
    }

    #[test]
    fn options_become_those_of_a_run() {
        for (line, expected) in [
            ("pintle run x", "another command"),
            ("pintle", "another command"),
            ("pintle exec --experimental-json", "pintle run --codex-stream --mode=plan -- -"),
            (
                "pintle exec --json --model m --sandbox workspace-write --cd /w --output-schema s.json --image a.png",
                "pintle run --codex-stream --mode=auto --model=m --dir=/w --output-schema=s.json --image=a.png -- -",
            ),
            (
                "pintle exec --full-auto -o last.txt hello",
                "pintle run --mode=auto --output-last-message=last.txt -- hello",
            ),
            (
                "pintle exec --json --sandbox danger-full-access resume 01a",
                "pintle run --codex-stream --mode=auto --no-sandbox --resume=01a -- -",
            ),
            (
                "pintle exec --sandbox workspace-write --config approval_policy=\"untrusted\" hello",
                "pintle run --mode=edit -- hello",
            ),
            (
                "pintle exec --sandbox workspace-write -c sandbox_workspace_write.network_access=true x",
                "pintle run --mode=auto --network=on -- x",
            ),
            (
                "pintle exec --sandbox read-only -c sandbox_workspace_write.network_access=true x",
                "pintle run --mode=plan --network=off -- x",
            ),
            (
                "pintle exec --sandbox danger-full-access -c sandbox_workspace_write.network_access=false x",
                "pintle run --mode=auto --no-sandbox -- x",
            ),
            ("pintle exec --full-auto -c sandbox_mode=read-only Go", "pintle run --mode=plan -- Go"),
            ("pintle exec --full-auto Go -c approval_policy=untrusted", "pintle run --mode=edit -- Go"),
            (
                "pintle exec -sworkspace-write -Cdir -mm -olast.txt --search Go",
                "pintle run --mode=auto --model=m --dir=dir --output-last-message=last.txt -- Go",
            ),
        ] {
            assert_eq!(translate(line).as_deref(), Ok(expected), "{line}");
        }
        let refused = translate("pintle app-server --listen stdio://").unwrap_err();
        assert!(refused.contains("app-server") && refused.contains("codex exec"), "{refused}");
    }

    #[test]
    fn usage_errors_end_with_the_way_to_the_help() {
        for (line, problem) in [
            ("pintle exec --json --deny-tools shell", "--deny-tools"),
            ("pintle exec --yolo --sandbox read-only Go", "--yolo permits more than --sandbox read-only"),
            ("pintle exec --sandbox none", "expected read-only"),
            ("pintle exec one two", "unexpected argument `two`"),
            ("pintle exec resume", "needs the id of a session"),
        ] {
            let message = translate(line).unwrap_err();
            assert!(message.contains(problem), "{line}: {message}");
            assert!(message.ends_with("; see `pintle exec --help`"), "{line}: {message}");
        }
        for (line, meant) in [
            ("pintle exec --sandboxx read-only", "--sandbox"),
            ("pintle exec --cdd ../p2 Go", "--cd"),
            ("pintle exec --output-schem s.json Go", "--output-schema"),
        ] {
            let message = translate(line).unwrap_err();
            let end = format!("is unknown; did you mean {meant}? See `pintle exec --help`");
            assert!(message.ends_with(&end), "{line}: {message}");
        }
    }

    #[test]
    fn help_and_version_are_given_for_this_subcommand_alone() {
        for (line, expected) in [
            ("pintle exec --help", Some(HELP)),
            ("pintle exec --json -h", Some(HELP)),
            ("pintle help exec", Some(HELP)),
            ("pintle help run", None),
            ("pintle help", None),
            ("pintle exec --version", Some(VERSION)),
            ("pintle exec --json -V", Some(VERSION)),
            ("pintle exec -- --help", None),
            ("pintle exec -- -V", None),
            ("pintle exec x", None),
            ("pintle run --help", None),
            ("pintle run --version", None),
        ] {
            let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert_eq!(information(&args), expected, "{line}");
        }
    }
}
