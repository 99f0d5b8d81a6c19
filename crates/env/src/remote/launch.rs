//! The script that runs one command on the far side.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use super::{channel::Leader, quote::quote, records::Mark};
use crate::{
    command::{Program, Stdin},
    local::TAG_VARIABLE,
};

const LAUNCH: &str = include_str!("scripts/launch.sh");

/// Variables that shells keep for themselves: given by `env` once no shell is in the way.
const KEPT_BY_SHELLS: [&str; 31] = [
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

/// A command on its way to the far side.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) program: &'a Program,
    /// Absolute.
    pub(super) directory: &'a Path,
    pub(super) variables: &'a BTreeMap<OsString, OsString>,
    /// Names of the far side's own variables that the command does not get.
    pub(super) withheld: &'a [String],
    pub(super) stdin: Stdin,
}

impl Launch<'_> {
    /// The script, one line with its line end: the far side answers behind `mark`, and the processes carry `tag`. The
    /// command begins only while `supervisor` is alive.
    ///
    /// It is an error if a word holds a zero byte, which no word can.
    pub(super) fn script(&self, tag: &str, mark: &Mark, supervisor: Leader) -> io::Result<Vec<u8>> {
        let mut script = Script::default();
        script.set("pintle_k", mark.as_bytes());
        script.set("pintle_u", supervisor.id.to_string().as_bytes());
        script.set("pintle_t", supervisor.started.to_string().as_bytes());
        script.set("pintle_d", self.directory.as_os_str().as_bytes());
        script.push("pintle_z=$(command -v setsid);");
        let (plain, odd): (Vec<_>, Vec<_>) =
            self.variables.iter().partition(|(name, _)| is_for_shells(name.as_bytes()));
        self.program(&mut script);
        if !odd.is_empty() {
            // To be evaluated when the program has been found.
            let mut command = Script::default();
            command.push("set -- \"$pintle_v\"");
            for (name, value) in odd {
                command.word(&[name.as_bytes(), b"=", value.as_bytes()].concat());
            }
            command.push(" \"$@\"");
            script.push("pintle_v=$(command -v env);");
            script.set("pintle_e", &command.0);
        }
        // A bash on the first level that finds itself started by ssh reads a start-up file, whatever that prints.
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
        // A far side that is itself run by a command of somebody keeps that one's mark.
        script.push(&format!("export {TAG_VARIABLE}=\"${{{TAG_VARIABLE}:+${TAG_VARIABLE}/}}{tag}\";"));
        if self.stdin == Stdin::Null {
            script.push("exec </dev/null;");
        }
        script.push("eval");
        script.word(LAUNCH.as_bytes());
        script.finish()
    }

    /// Makes the program and its arguments the positional parameters.
    fn program(&self, script: &mut Script) {
        match self.program {
            Program::Shell(line) => {
                script.push("if [ -x /bin/bash ]; then pintle_b=/bin/bash; else pintle_b=/bin/sh; fi;");
                // The dashes keep a line that begins with one from being taken for an option.
                script.push("set -- \"$pintle_b\" -c --");
                script.word(line.as_bytes());
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

/// The name of a program for errors.
pub(super) fn program_name(program: &Program) -> String {
    match program {
        Program::Shell(_) => "/bin/sh".to_owned(),
        Program::Argv { program, .. } => program.to_string_lossy().into_owned(),
    }
}

/// A script on one line.
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

/// Whether a shell can give a variable of this name to what it starts. Our own script has some, too.
fn is_for_shells(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && !name.starts_with(b"pintle_")
        && !KEPT_BY_SHELLS.iter().any(|kept| OsStr::new(kept).as_bytes() == name)
}
