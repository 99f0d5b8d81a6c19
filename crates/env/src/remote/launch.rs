//! The script that runs one remote command.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use super::{channel::ProcessIdentity, quote::quote, records::RecordMarker};
use crate::{
    command::{Program, Stdin},
    shell::shell_arguments,
    variables::TAG_VARIABLE,
};

/// Name of the shell in messages. Lines run in bash if the system has it.
const SHELL: &str = "/bin/sh";

const LAUNCH: &str = include_str!("scripts/launch.sh");

/// Variables that shells reserve for themselves, set with `env` instead.
const RESERVED_BY_SHELLS: [&str; 31] = [
    "BASHOPTS",
    "BASHPID",
    "BASH_VERSINFO",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "ENV",
    "BASH_ENV",
    "EPOCHSECONDS",
    "ERRNO",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "IFS",
    "LINENO",
    "MAIL",
    "MAILPATH",
    "OLDPWD",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "POSIXLY_CORRECT",
    "PPID",
    "PS4",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SHLVL",
    "UID",
    "_",
];

/// A command to be run remotely.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) program: &'a Program,
    /// Absolute.
    pub(super) directory: &'a Path,
    pub(super) variables: &'a BTreeMap<OsString, OsString>,
    /// Names of the remote system's variables that the command does not inherit.
    pub(super) withheld: &'a [String],
    pub(super) stdin: Stdin,
}

impl Launch<'_> {
    /// Returns the script, a single line including its line feed. The remote side reports records
    /// after `marker`, and the processes carry `tag`. The command starts only while `supervisor` is
    /// alive.
    ///
    /// Fails if a word contains a zero byte.
    pub(super) fn script(
        &self,
        tag: &str,
        marker: &RecordMarker,
        supervisor: ProcessIdentity,
    ) -> io::Result<Vec<u8>> {
        let mut script = Script::default();
        script.set("pintle_k", marker.as_bytes());
        script.set("pintle_u", supervisor.id.to_string().as_bytes());
        script.set("pintle_t", supervisor.started.to_string().as_bytes());
        script.set("pintle_d", self.directory.as_os_str().as_bytes());
        script.push("pintle_z=$(command -v setsid);");
        let (plain, odd): (Vec<_>, Vec<_>) =
            self.variables.iter().partition(|(name, _)| is_exportable(name.as_bytes()));
        self.program(&mut script);
        if !odd.is_empty() {
            // Evaluated once the program was found.
            let mut command = Script::default();
            command.push("set -- \"$pintle_v\"");
            for (name, value) in odd {
                command.word(&[name.as_bytes(), b"=", value.as_bytes()].concat());
            }
            command.push(" \"$@\"");
            script.push("pintle_v=$(command -v env);");
            script.set("pintle_e", &command.0);
        }
        // A top-level bash that was started by ssh would read a start-up file, which may print
        // anything.
        script.push("export SHLVL=1; unset OLDPWD");
        for name in self.withheld {
            script.push(" ");
            script.push(name);
        }
        script.push(";");
        for (name, value) in plain {
            script.push("export ");
            script.set(&String::from_utf8_lossy(name.as_bytes()), value.as_bytes());
        }
        // A remote system that is itself run by a tagged command keeps the outer tag.
        script.push(&format!("export {TAG_VARIABLE}=\"${{{TAG_VARIABLE}:+${TAG_VARIABLE}/}}{tag}\";"));
        if self.stdin == Stdin::Null {
            script.push("exec </dev/null;");
        }
        script.push("eval");
        script.word(LAUNCH.as_bytes());
        script.finish()
    }

    /// Sets the positional parameters to the program and its arguments.
    fn program(&self, script: &mut Script) {
        match self.program {
            Program::Shell(line) => {
                script.push("if [ -x /bin/bash ]; then pintle_b=/bin/bash; else pintle_b=/bin/sh; fi;");
                script.push("set -- \"$pintle_b\"");
                for word in shell_arguments(SHELL, line) {
                    script.word(word.as_bytes());
                }
            }
            Program::Argv { program, arguments } => {
                script.push("set --");
                for word in std::iter::once(program).chain(arguments) {
                    script.word(word.as_bytes());
                }
            }
        }
        script.push(";");
    }
}

/// Returns the name of a program for errors.
pub(super) fn program_name(program: &Program) -> String {
    match program {
        Program::Shell(_) => SHELL.to_owned(),
        Program::Argv { program, .. } => program.to_string_lossy().into_owned(),
    }
}

/// Builder for a single-line script.
#[derive(Debug, Default)]
struct Script(Vec<u8>);

impl Script {
    fn push(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn word(&mut self, word: &[u8]) {
        self.push(" ");
        quote(&mut self.0, word);
    }

    fn set(&mut self, name: &str, value: &[u8]) {
        self.push(name);
        self.push("=");
        quote(&mut self.0, value);
        self.push(";");
    }

    fn finish(mut self) -> io::Result<Vec<u8>> {
        if self.0.contains(&0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a zero byte in a command"));
        }
        self.push("\n");
        Ok(self.0)
    }
}

/// Returns true if a shell can export a variable of this name. Names used by the script itself are
/// excluded.
fn is_exportable(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && !name.starts_with(b"pintle_")
        && !RESERVED_BY_SHELLS.iter().any(|kept| OsStr::new(kept).as_bytes() == name)
}
