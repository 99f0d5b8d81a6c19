//! `pintle exec`: the command line of `codex exec`, as SDKs for it write it, in the words of `pintle run`.

use std::ffi::OsString;

use pintle_compat::codex::{ApprovalPolicy, ExecOptions, Resume, SandboxMode, WebSearchMode};

use crate::failure::{Failure, OrFailure as _};

/// The subcommand.
const NAME: &str = "exec";

/// Flag for the stream of lines.
pub(crate) const STREAM: &str = "codex-stream";

/// Arguments of a run, and what was ignored to get them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Translated {
    pub(super) arguments: Vec<OsString>,
    pub(super) warnings: Vec<String>,
}

/// Returns the arguments of a run for those of `exec`; `None` for another command.
///
/// # Errors
///
/// A usage failure for an option that is not understood, or that could restrict the run and is not supported.
pub(super) fn translated(args: &[OsString]) -> Result<Option<Translated>, Failure> {
    let [program, command, rest @ ..] = args else { return Ok(None) };
    if command != NAME {
        return Ok(None);
    }
    let words = rest.iter().map(|word| word.to_str().ok_or_else(|| word.to_string_lossy().into_owned()));
    let words = words.collect::<Result<Vec<&str>, String>>();
    let words = words.map_err(|word| Failure::usage(format!("exec: {word} is not valid UTF-8")))?;
    let parsed = ExecOptions::parse(&words).or_usage(NAME)?;
    let mut translated = Translated { warnings: parsed.warnings, ..Translated::default() };
    translated.arguments.extend([program.clone(), "run".into()]);
    translated.add(&parsed.options);
    Ok(Some(translated))
}

impl Translated {
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
        options.images.iter().for_each(|image| self.value("image", Some(image)));
        match &options.resume {
            Some(Resume::Id(id)) => self.value("resume", Some(id)),
            Some(Resume::Last) => self.flag("continue"),
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
        // Without a prompt, a session would take up what was under way.
        self.arguments.push("--".into());
        self.arguments.push(options.prompt.as_deref().unwrap_or("-").into());
    }

    /// Adds what the run may do. As in codex, a run that says nothing only reads.
    fn authority(&mut self, options: &ExecOptions) {
        let is_asking = options.approval == Some(ApprovalPolicy::Untrusted);
        match options.sandbox {
            None | Some(SandboxMode::ReadOnly) => self.value("mode", Some("plan")),
            // Without a person to ask, calls that need approval are denied.
            Some(SandboxMode::WorkspaceWrite | SandboxMode::DangerFullAccess) if is_asking => {
                self.value("mode", Some("edit"));
            }
            Some(SandboxMode::WorkspaceWrite | SandboxMode::DangerFullAccess) => {
                self.value("mode", Some("auto"))
            }
        }
        if options.sandbox == Some(SandboxMode::DangerFullAccess) {
            self.flag("no-sandbox");
        } else if options.network.is_some() {
            self.value("network", Some(if options.network == Some(true) { "on" } else { "off" }));
        }
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

/// Returns the arguments that a translation makes of a line, or its message.
#[cfg(test)]
pub(super) fn shown(
    translate: fn(&[OsString]) -> Result<Option<Translated>, Failure>,
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
        shown(translated, line)
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
        ] {
            assert_eq!(translate(line).as_deref(), Ok(expected), "{line}");
        }
        let refused = translate("pintle exec --json --deny-tools shell").unwrap_err();
        assert!(refused.contains("--deny-tools"), "{refused}");
    }
}
