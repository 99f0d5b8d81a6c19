//! Git as this project runs it: settings and variables of the caller change neither its output nor its effect.

use std::collections::BTreeMap;

use crate::command::ExecRequest;

/// Settings of all invocations. Each is a default of git, or prevents git from starting a program.
///
/// Settings that decide which content belongs to a working tree are not here: line ends, filters, ignored files and file
/// modes.
const NEUTRAL: [&str; 78] = [
    "add.ignoreErrors=false",
    "advice.addEmbeddedRepo=false",
    "apply.ignoreWhitespace=no",
    "apply.whitespace=nowarn",
    "branch.autoSetupMerge=false",
    "branch.autoSetupRebase=never",
    "branch.sort=refname",
    "color.advice=false",
    "color.branch=false",
    "color.diff=false",
    "color.grep=false",
    "color.interactive=false",
    "color.push=false",
    "color.remote=false",
    "color.showBranch=false",
    "color.status=false",
    "color.transport=false",
    "color.ui=false",
    "column.branch=never",
    "column.status=never",
    "column.ui=never",
    "commit.gpgSign=false",
    "core.abbrev=auto",
    "core.bigFileThreshold=512m",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.ignoreStat=false",
    "core.pager=cat",
    "core.quotePath=false",
    "core.safecrlf=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.whitespace=",
    "diff.algorithm=default",
    "diff.autoRefreshIndex=true",
    "diff.colorMoved=no",
    "diff.context=3",
    "diff.dirstat=changes",
    "diff.dstPrefix=b/",
    "diff.ignoreSubmodules=none",
    "diff.indentHeuristic=true",
    "diff.interHunkContext=0",
    "diff.mnemonicPrefix=false",
    "diff.noPrefix=false",
    "diff.orderFile=/dev/null",
    "diff.relative=false",
    "diff.renameLimit=1000",
    "diff.renames=true",
    "diff.srcPrefix=a/",
    "diff.submodule=short",
    "diff.suppressBlankEmpty=false",
    "diff.wsErrorHighlight=none",
    "gc.auto=0",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "log.abbrevCommit=false",
    "log.date=default",
    "log.decorate=no",
    "log.follow=false",
    "log.mailmap=false",
    "log.showRoot=true",
    "log.showSignature=false",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "status.aheadBehind=true",
    "status.branch=false",
    "status.displayCommentPrefix=false",
    "status.relativePaths=true",
    "status.renameLimit=1000",
    "status.renames=true",
    "status.short=false",
    "status.showStash=false",
    "status.showUntrackedFiles=normal",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
    "user.useConfigOnly=false",
    "worktree.guessRemote=false",
    "worktree.useRelativePaths=false",
];

/// Settings with which content is compared byte by byte.
const EXACT: [&str; 4] =
    ["core.attributesFile=/dev/null", "core.autocrlf=false", "core.fileMode=true", "core.symlinks=true"];

/// Variables of the installation, in a pattern of the shell. All other `GIT_*` variables are removed.
const OF_INSTALLATION: &str = "GIT_EXEC_PATH";

/// Variables that name the user's settings, the limits of a search for a repository, and how a server is reached.
const OF_USER: &str = "GIT_CONFIG_GLOBAL|GIT_CONFIG_SYSTEM|GIT_CONFIG_NOSYSTEM|GIT_CONFIG_COUNT|GIT_CONFIG_KEY_*|\
     GIT_CONFIG_VALUE_*|GIT_ATTR_NOSYSTEM|GIT_CEILING_DIRECTORIES|GIT_DISCOVERY_ACROSS_FILESYSTEM|GIT_ASKPASS|GIT_SSH|\
     GIT_SSH_COMMAND|GIT_SSH_VARIANT|GIT_SSL_*|GIT_HTTP_*|GIT_PROXY_COMMAND";

/// Room for the settings of a command line, in bytes.
const SETTINGS_LENGTH: usize = 4096;

/// Variables of invocations that read no settings of the user and of the system.
const WITHOUT_SETTINGS: [(&str, &str); 3] =
    [("GIT_ATTR_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")];

/// Git for the application itself. Settings of the user, the system and the repository do not change its output or its
/// effect, and it inherits no `GIT_*` variable that names a repository, as hooks of git have them.
///
/// The lines are for the environment's shell. Messages of git are in English. Git does not wait for the package caches of a
/// sandbox.
///
/// ```
/// # async fn example(env: &dyn pintle_env::ExecutionEnvironment) -> Result<(), pintle_env::EnvError> {
/// let result = env.exec_command(pintle_env::Git::new().request(&["rev-parse", "HEAD"])).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Git {
    /// Whether only the settings of the repository are read.
    is_exact: bool,
    variables: BTreeMap<String, String>,
}

impl Git {
    /// Comparison of two trees, file by file. The format, such as `--patch`, and the trees follow. No driver of a diff runs.
    pub const DIFF: [&str; 10] = [
        "diff-tree",
        "-r",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--no-renames",
        "--ignore-submodules=none",
        "--submodule=short",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    ];

    /// Status of a working tree with the local changes of its submodules, for [`changed_submodules`](Self::changed_submodules).
    pub const SUBMODULE_STATUS: [&str; 5] =
        ["status", "--porcelain=v2", "-z", "--untracked-files=normal", "--ignore-submodules=none"];

    /// Creates git for a repository of the user. The user's filters, line ends and ignored files apply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads no settings of the user and of the system, so that content is compared byte by byte.
    #[must_use]
    pub fn without_user_settings(mut self) -> Self {
        self.is_exact = true;
        self
    }

    /// Sets a `GIT_*` variable, which must be one that git itself reads.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Returns the request for one command of git with these arguments.
    #[must_use]
    pub fn request(&self, arguments: &[&str]) -> ExecRequest {
        let mut line = "git".to_owned();
        for word in arguments {
            line.push(' ');
            push_shell_word(&mut line, word);
        }
        self.script(&line)
    }

    /// Returns the request for a script of the shell, in which `git` is this git.
    #[must_use]
    pub fn script(&self, script: &str) -> ExecRequest {
        let kept =
            if self.is_exact { OF_INSTALLATION.to_owned() } else { format!("{OF_INSTALLATION}|{OF_USER}") };
        let exact = if self.is_exact { &WITHOUT_SETTINGS[..] } else { &[] };
        // Settings name targets of traces, which only variables override.
        let traces = [("GIT_TRACE2", "0"), ("GIT_TRACE2_EVENT", "0"), ("GIT_TRACE2_PERF", "0")];
        let defaults = [("GIT_TERMINAL_PROMPT", "0")].into_iter().chain(traces);
        let defaults = defaults.chain(exact.iter().copied());
        let own = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut variables = String::new();
        for (name, value) in defaults.chain(own) {
            variables.extend([" ", name, "="]);
            push_shell_word(&mut variables, value);
        }
        let exact = if self.is_exact { &EXACT[..] } else { &[] };
        let mut settings = String::with_capacity(SETTINGS_LENGTH);
        for setting in NEUTRAL.iter().chain(exact) {
            settings.push_str(" -c ");
            push_shell_word(&mut settings, setting);
        }
        // Builtins of the shell list the variables, since each further process delays the command. A value with white space is
        // split into words, and a word that looks like a variable is at most unset without need.
        let unset =
            format!(r#"case $pintle_name in {kept}|*[!A-Za-z0-9_]*) ;; GIT_*) unset "$pintle_name" ;; esac"#);
        let names = format!(
            "set -f; for pintle_name in $(export -p); do pintle_name=${{pintle_name%%=*}}; {unset}; done; set +f"
        );
        let line = format!(
            r#"{names}; export{variables}; git() {{ command git --no-pager{settings} "$@"; }}; {script}"#,
        );
        ExecRequest::new(line).with_env("LC_ALL", "C").without_package_caches()
    }

    /// Returns the paths of the submodules with changed or new files, from the output of
    /// [`SUBMODULE_STATUS`](Self::SUBMODULE_STATUS). A submodule without local changes at another commit is not included.
    #[must_use]
    pub fn changed_submodules(status: &[u8]) -> Vec<String> {
        let mut fields = status.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let mut changed = Vec::new();
        while let Some(field) = fields.next() {
            // A renamed file has one field more before its path, and its former path as the next entry.
            let count = match field.split_once(' ') {
                Some(("1", _)) => 9,
                Some(("2", _)) => {
                    fields.next();
                    10
                }
                Some(_) | None => continue,
            };
            let words: Vec<&str> = field.splitn(count, ' ').collect();
            let has_changes = words.get(2).is_some_and(|state| {
                state.starts_with('S') && (state.ends_with('U') || state.get(2..3) == Some("M"))
            });
            if let (true, Some(path)) = (has_changes, words.last()) {
                changed.push((*path).to_owned());
            }
        }
        changed
    }

    /// Returns the command that git names as the remedy, if it refused a repository of another user ("dubious ownership").
    #[must_use]
    pub fn ownership_remedy(message: &str) -> Option<&str> {
        let mut lines = message.lines().map(str::trim);
        lines.find(|line| line.starts_with("git config --global --add safe.directory "))
    }
}

/// Quotes a word for a POSIX shell. It must not contain a zero byte.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let mut quoted = String::with_capacity(word.len() + 2);
    push_shell_word(&mut quoted, word);
    quoted
}

/// Appends a word as [`shell_word`] quotes it.
fn push_shell_word(line: &mut String, word: &str) {
    line.push('\'');
    for (index, part) in word.split('\'').enumerate() {
        if index > 0 {
            line.push_str(r"'\''");
        }
        line.push_str(part);
    }
    line.push('\'');
}

#[cfg(feature = "local")]
#[cfg(test)]
mod tests;
