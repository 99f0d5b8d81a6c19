//! Tests with a real git.
#![expect(clippy::disallowed_methods, reason = "the tests prepare the files of a user")]

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::environment::ExecutionEnvironment as _;
use crate::local::LocalEnvironment;

/// Settings of a user: sections, and lines in them. Words in capitals are paths of the fixture; `PROGRAM` and `HOOKS` fail.
const OF_A_USER: &[(&str, &str)] = &[
    ("add", "ignoreErrors = true"),
    ("advice", "addEmbeddedRepo = true"),
    ("advice", "statusHints = true"),
    ("apply", "ignoreWhitespace = change"),
    ("apply", "whitespace = error-all"),
    ("apply", "whitespace = fix"),
    ("branch", "autoSetupMerge = always"),
    ("branch", "autoSetupRebase = always"),
    ("branch", "sort = -committerdate"),
    ("color", "advice = always"),
    ("color", "branch = always"),
    ("color", "diff = always"),
    ("color", "interactive = always"),
    ("color", "pager = true"),
    ("color", "status = always"),
    ("color", "ui = always"),
    ("column", "branch = always"),
    ("column", "status = always"),
    ("column", "ui = always"),
    ("commit", "gpgSign = true"),
    ("commit", "status = false"),
    ("commit", "template = EMPTY"),
    ("commit", "verbose = true"),
    ("core", "abbrev = 20"),
    ("core", "bigFileThreshold = 1"),
    ("core", "commentChar = %"),
    ("core", "editor = PROGRAM"),
    ("core", "fsmonitor = PROGRAM"),
    ("core", "hooksPath = HOOKS"),
    ("core", "ignoreStat = true"),
    ("core", "pager = PROGRAM"),
    ("core", "quotePath = true"),
    ("core", "safecrlf = true\n\tautocrlf = input"),
    ("core", "splitIndex = true"),
    ("core", "untrackedCache = true"),
    ("core", "whitespace = tab-in-indent,blank-at-eol"),
    ("diff", "algorithm = patience"),
    ("diff", "autoRefreshIndex = false"),
    ("diff", "colorMoved = zebra"),
    ("diff", "context = 0"),
    ("diff", "dirstat = files"),
    ("diff", "dstPrefix = new/"),
    ("diff", "external = PROGRAM"),
    ("diff", "ignoreSubmodules = all"),
    ("diff", "indentHeuristic = false"),
    ("diff", "interHunkContext = 9"),
    ("diff", "mnemonicPrefix = true"),
    ("diff", "noPrefix = true"),
    ("diff", "noprefix = true"),
    ("diff", "orderFile = ORDER"),
    ("diff", "relative = true"),
    ("diff", "renameLimit = 1"),
    ("diff", "renames = copies"),
    ("diff", "srcPrefix = old/"),
    ("diff", "statGraphWidth = 3"),
    ("diff", "submodule = log"),
    ("diff", "suppressBlankEmpty = true"),
    ("diff", "wordRegex = ."),
    ("diff", "wsErrorHighlight = all"),
    ("core", "attributesFile = ATTRIBUTES\n[diff \"driver\"]\n\tcommand = PROGRAM"),
    ("core", "attributesFile = ATTRIBUTES\n[diff \"driver\"]\n\ttextconv = PROGRAM"),
    ("feature", "experimental = true"),
    ("feature", "manyFiles = true"),
    ("format", "noprefix = true"),
    ("format", "pretty = oneline"),
    ("format", "signOff = true"),
    ("gc", "auto = 1"),
    ("i18n", "commitEncoding = ISO-8859-1"),
    ("i18n", "logOutputEncoding = ISO-8859-1"),
    ("interactive", "diffFilter = PROGRAM"),
    ("log", "abbrevCommit = true"),
    ("log", "date = iso"),
    ("log", "decorate = full"),
    ("log", "showSignature = true"),
    ("maintenance", "auto = true"),
    ("merge", "conflictStyle = zdiff3"),
    ("merge", "ff = only"),
    ("merge", "renames = false"),
    ("merge", "renormalize = true"),
    ("pager", "diff = PROGRAM\n\tlog = PROGRAM\n\tstatus = PROGRAM"),
    ("status", "branch = true"),
    ("status", "displayCommentPrefix = true"),
    ("status", "relativePaths = false"),
    ("status", "renames = false"),
    ("status", "short = true"),
    ("status", "showStash = true"),
    ("status", "showUntrackedFiles = no"),
    ("status", "submoduleSummary = true"),
    ("submodule", "recurse = true"),
    ("tag", "gpgSign = true"),
    ("trace2", "eventTarget = 2"),
    ("trace2", "normalTarget = 2"),
    ("trace2", "perfTarget = 2"),
    ("user", "useConfigOnly = true"),
    ("worktree", "guessRemote = true"),
    ("worktree", "useRelativePaths = true"),
];

/// A home, a repository in it with two commits and changes, and the commands that are compared.
struct Fixture {
    home: TempDir,
}

impl Fixture {
    async fn new() -> Self {
        let home = TempDir::new().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::create_dir_all(at("hooks")).unwrap();
        for program in ["program", "hooks/post-checkout", "hooks/reference-transaction"] {
            fs::write(at(program), "#!/bin/sh\necho ran >&2\nexit 3\n").unwrap();
            fs::set_permissions(at(program), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        fs::write(at("empty"), "").unwrap();
        fs::write(at("order"), "z\n*\n").unwrap();
        fs::write(at("attributes"), "*.txt diff=driver\n").unwrap();
        let fixture = Self { home };
        fixture
            .print(
                "git init -q -b main repository && cd repository && mkdir d && seq 1 60 >d/a.txt && printf 'a\\n\\nb \\n' >z && \
                 git add . && git commit -qm First && sed -i 's/^30$/thirty/' d/a.txt && printf 'a\\n\\nb \\n\\tc \\n' >z && \
                 git mv z 'd/ä' && touch z && git add . && git commit -qm 'Zweite Änderung' && echo local >>z && touch new",
            )
            .await;
        fixture
    }

    /// Runs a script and returns what it prints, with its exit code.
    async fn print(&self, script: &str) -> String {
        self.print_with(script, &[]).await
    }

    async fn print_with(&self, script: &str, variables: &[(&str, &str)]) -> String {
        let home = self.home.path();
        let builder = LocalEnvironment::builder(home)
            .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
            .with_variable("HOME", home)
            .with_variable("GIT_CONFIG_NOSYSTEM", "1");
        let builder =
            variables.iter().fold(builder, |builder, (name, value)| builder.with_variable(*name, *value));
        let environment = builder.build().unwrap();
        let git = ["AUTHOR", "COMMITTER"].iter().fold(Git::new(), |git, role| {
            git.with_variable(format!("GIT_{role}_NAME"), "t")
                .with_variable(format!("GIT_{role}_EMAIL"), "t@localhost")
                .with_variable(format!("GIT_{role}_DATE"), "1000000000 +0000")
        });
        let request = git.script(script).with_timeout(std::time::Duration::from_secs(60));
        let result = environment.exec_command(request).await.unwrap();
        environment.cleanup().await.unwrap();
        format!("{}{}", result.output.to_text_lossy().unwrap(), result.exit_code)
    }

    /// Output of the commands that the crates of this project use, in the repository.
    async fn observe(&self, variables: &[(&str, &str)]) -> String {
        let script = format!(
            "cd repository && git {0} --patch --binary --full-index HEAD~1 HEAD && git {0} --name-status HEAD~1 HEAD && \
             git {0} --raw --numstat -z HEAD~1 HEAD | od -c && git {0} --patch --binary HEAD~1 HEAD >../patch && \
             git status --porcelain && git status --porcelain=v2 --branch && git log --format='%h %s' && git branch && \
             git ls-files --others --exclude-standard && git stash create >/dev/null && \
             cp .git/index ../index && (export GIT_INDEX_FILE=../index; git read-tree HEAD~1 && \
             git apply --cached --check ../patch && git apply --cached ../patch && git add --all && \
             git commit-tree $(git write-tree) -p HEAD -m 'Größe') && \
             git worktree add --quiet -b b ../linked HEAD && cat ../linked/d/a.txt ../linked/.git | sed 's/.*repository//' && \
             git config --list --local && git worktree remove --force --force ../linked && git branch --quiet -D b && \
             ls .git",
            Git::DIFF.join(" ")
        );
        self.print_with(&script, variables).await
    }

    fn configure(&self, text: &str) {
        let path = |name: &str| self.home.path().join(name).display().to_string();
        let text = text.replace("PROGRAM", &path("program")).replace("HOOKS", &path("hooks"));
        let text = text.replace("ORDER", &path("order")).replace("ATTRIBUTES", &path("attributes"));
        fs::write(self.home.path().join(".gitconfig"), text.replace("EMPTY", &path("empty"))).unwrap();
    }
}

#[tokio::test]
async fn settings_of_the_user_change_nothing() {
    let fixture = Fixture::new().await;
    let expected = fixture.observe(&[]).await;
    assert!(expected.ends_with("refs\n0"), "{expected}");
    let sections: Vec<String> =
        OF_A_USER.iter().map(|(section, setting)| format!("[{section}]\n\t{setting}\n")).collect();
    fixture.configure(&sections.concat());
    assert_eq!(fixture.observe(&[]).await, expected);
    if !pintle_test_conditions::is_full() {
        return;
    }
    for section in &sections {
        fixture.configure(section);
        assert_eq!(fixture.observe(&[]).await, expected, "{section}");
    }
}

#[tokio::test]
async fn variables_of_hooks_are_not_inherited() {
    let fixture = Fixture::new().await;
    let expected = fixture.observe(&[]).await;
    let variables = [
        ("GIT_DIR", ".git"),
        ("GIT_WORK_TREE", "/"),
        ("GIT_INDEX_FILE", ".git/index"),
        ("GIT_COMMON_DIR", "/nonexistent"),
        ("GIT_OBJECT_DIRECTORY", "/nonexistent"),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/nonexistent"),
        ("GIT_NAMESPACE", "n"),
        ("GIT_PREFIX", "d/"),
        ("GIT_CONFIG_PARAMETERS", "'diff.noprefix'='true'"),
        ("GIT_CONFIG", "/nonexistent"),
        ("GIT_EXTERNAL_DIFF", "/bin/false"),
        ("GIT_DIFF_OPTS", "--unified=0"),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("GIT_ICASE_PATHSPECS", "1"),
        ("GIT_PAGER", "/bin/false"),
        ("GIT_EDITOR", "/bin/false"),
        ("GIT_QUARANTINE_PATH", "/nonexistent"),
        ("GIT_TRACE", "1"),
        ("GIT_TRACE2", "1"),
        ("GIT_REPLACE_REF_BASE", "refs/other"),
        ("GIT_SHALLOW_FILE", "/nonexistent"),
        ("GIT_ATTR_SOURCE", "HEAD~1"),
        ("GIT_UNKNOWN_TO_ALL", "line\nGIT_DIR=/nonexistent"),
    ];
    for variable in variables {
        assert_eq!(fixture.observe(&[variable]).await, expected, "{variable:?}");
    }
    assert_eq!(fixture.observe(&variables).await, expected);
}

/// Each process delays the command, and the first request of a session waits for one.
#[tokio::test]
async fn no_other_program_is_needed() {
    let fixture = Fixture::new().await;
    let program = fixture.print("unset -f git; command -v git").await;
    let programs = fixture.home.path().join("programs");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(program.trim_end_matches("\n0"), programs.join("git")).unwrap();
    for shell in ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| std::path::Path::new(shell).exists()) {
        let environment = LocalEnvironment::builder(fixture.home.path().join("repository"))
            .with_shell(shell)
            .with_variable("PATH", &programs)
            .with_variable("HOME", fixture.home.path())
            .with_variable("GIT_DIR", "/nonexistent")
            .with_variable("GIT_TRACE", "1 GIT_DIR;x=1 *\nGIT_EXEC_PATH=/nonexistent")
            .build()
            .unwrap();
        let request =
            Git::new().script("git rev-parse --abbrev-ref HEAD; echo \"$- [$GIT_TRACE]\" \"$PWD\"/z*");
        let result = environment.exec_command(request).await.unwrap();
        let output = result.output.to_text_lossy().unwrap();
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines.first(), Some(&"main"), "{shell}: {output}");
        let (options, rest) = lines[1].split_once(' ').unwrap();
        assert!(!options.contains('f'), "{shell}: {output}");
        assert!(rest.starts_with("[] ") && rest.ends_with("/repository/z"), "{shell}: {output}");
        environment.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn the_settings_that_decide_on_content_are_those_of_the_user() {
    let fixture = Fixture::new().await;
    let ignored = fixture.home.path().join("ignored").display().to_string();
    fs::write(&ignored, "new\n").unwrap();
    let list = "cd repository; git ls-files --others --exclude-standard";
    assert_eq!(fixture.print(list).await, "new\n0");
    fs::write(fixture.home.path().join("settings"), format!("[core]\n\texcludesFile = {ignored}\n")).unwrap();
    let settings = fixture.home.path().join("settings").display().to_string();
    for variables in [
        &[("GIT_CONFIG_GLOBAL", settings.as_str())][..],
        &[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.excludesFile"),
            ("GIT_CONFIG_VALUE_0", ignored.as_str()),
        ],
    ] {
        assert_eq!(fixture.print_with(list, variables).await, "0", "{variables:?}");
    }
    fixture.configure(&format!("[core]\n\texcludesFile = {ignored}\n"));
    assert_eq!(fixture.print(list).await, "0");
    let request = Git::new().without_user_settings().script(list);
    let environment = LocalEnvironment::builder(fixture.home.path())
        .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
        .with_variable("HOME", fixture.home.path())
        .build()
        .unwrap();
    let result = environment.exec_command(request).await.unwrap();
    assert_eq!(result.output.to_text_lossy().unwrap(), "new\n");
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn submodules_with_local_changes_are_found() {
    let fixture = Fixture::new().await;
    let file = "-c protocol.file.allow=always";
    let setup = format!(
        "git init -q lib && cd lib && echo 1 >f && git add f && git commit -qm f && cd ../repository && \
         for name in 'a b' c s t; do git {file} submodule --quiet add \"$HOME/lib\" \"$name\" || exit; done && \
         git commit -qm submodules && echo 2 >>'a b/f' && touch c/new && git mv s moved && echo 2 >>moved/f && \
         git -C t commit -q --allow-empty -m more; cd .. "
    );
    assert_eq!(fixture.print(&setup).await, "0");
    let words = Git::SUBMODULE_STATUS.join(" ");
    let status = fixture.print(&format!("cd repository; git {words}")).await;
    let mut found = Git::changed_submodules(status.as_bytes());
    found.sort();
    assert_eq!(found, ["a b", "c", "moved"], "{status:?}");
}

#[test]
fn words_reach_the_shell_as_they_are() {
    assert_eq!(shell_word("it's $HOME"), r"'it'\''s $HOME'");
    let line = Git::new().request(&["add", "a b"]).command;
    assert!(line.ends_with("; git 'add' 'a b'"), "{line}");
}

#[test]
fn the_remedy_for_a_repository_of_another_user_is_that_of_git() {
    for (message, expected) in [
        (
            "fatal: detected dubious ownership in repository at '/p'\nTo add an exception for this directory, call:\n\n\t\
             git config --global --add safe.directory /p\n",
            Some("git config --global --add safe.directory /p"),
        ),
        (
            "fatal: unsafe repository ('/p' is owned by someone else)\nTo add an exception for this directory, call:\n\n\t\
             git config --global --add safe.directory '/p q'",
            Some("git config --global --add safe.directory '/p q'"),
        ),
        ("fatal: not a git repository (or any of the parent directories): .git", None),
    ] {
        assert_eq!(Git::ownership_remedy(message), expected);
    }
}

/// Settings in git's list that are not neutralised, by key or, with a full stop at the end, by section, after the reason. Sections
/// that change output are listed by key.
const EXCEPTIONS: &[(&str, &[&str])] = &[
    (
        "no command of this project reads them",
        &[
            "add.interactive.",
            "am.",
            "bitmapPseudoMerge.",
            "blame.",
            "browser.",
            "bundle.",
            "clean.",
            "clone.",
            "column.clean",
            "column.tag",
            "commit.",
            "completion.",
            "diff.guitool",
            "diff.tool",
            "difftool.",
            "fastimport.",
            "fsck.",
            "gitcvs.",
            "gitweb.",
            "grep.",
            "gui.",
            "guitool.",
            "help.",
            "imap.",
            "instaweb.",
            "interactive.",
            "mailinfo.",
            "man.",
            "merge.",
            "mergetool.",
            "notes.",
            "pull.",
            "push.",
            "rebase.",
            "rerere.",
            "revert.",
            "sendemail.",
            "sequence.",
            "showBranch.",
            "stash.",
            "tag.",
            "tar.",
            "uploadarchive.",
            "versionsort.",
            "web.",
        ],
    ),
    ("mail, signatures, and logs without a format have them", &["format.", "gpg.", "pretty."]),
    (
        "`fetch` runs without settings of the user",
        &[
            "core.alternateRefsCommand",
            "core.alternateRefsPrefixes",
            "fetch.",
            "lsrefs.",
            "protocol.",
            "transfer.",
        ],
    ),
    (
        "no command reaches a server",
        &[
            "core.askPass",
            "core.gitProxy",
            "core.sshCommand",
            "credential.",
            "credentialCache.",
            "credentialStore.",
            "http.",
            "ssh.",
        ],
    ),
    ("a remote has them", &["promisor.", "remote.", "remotes.", "url."]),
    ("another git of a fetch reads them", &["receive.", "uploadpack.", "uploadpackfilter."]),
    (
        "a command name is never an alias, and no pager runs",
        &["alias.", "core.editor", "pager.", "color.pager"],
    ),
    (
        "messages, which are not read",
        &["advice.", "core.commentChar", "core.commentString", "core.warnAmbiguousRefs"],
    ),
    ("variables override them", &["author.", "committer.", "trace2.", "user."]),
    (
        "they decide which content belongs to a working tree",
        &[
            "attr.",
            "core.checkRoundtripEncoding",
            "core.checkStat",
            "core.eol",
            "core.excludesFile",
            "core.ignoreCase",
            "core.sparseCheckout",
            "core.sparseCheckoutCone",
            "core.trustctime",
            "filter.",
            "sparse.",
        ],
    ),
    ("options of `init` override them", &["init."]),
    ("options of commands override them", &["diff.external", "log.diffMerges"]),
    (
        "other settings turn the output on, and are neutral",
        &[
            "checkout.defaultRemote",
            "checkout.guess",
            "diff.colorMovedWS",
            "diff.statGraphWidth",
            "diff.statNameWidth",
            "diff.trustExitCode",
            "diff.wordRegex",
            "log.excludeDecoration",
            "log.graphColors",
            "log.initialDecorationSet",
            "mailmap.",
            "submodule.active",
            "submodule.alternateErrorStrategy",
            "submodule.alternateLocation",
            "submodule.fetchJobs",
            "submodule.propagateBranches",
        ],
    ),
    (
        "the repository or its file system has them",
        &[
            "core.bare",
            "core.hideDotFiles",
            "core.precomposeUnicode",
            "core.protectHFS",
            "core.protectNTFS",
            "core.repositoryFormatVersion",
            "core.restrictinheritedhandles",
            "core.sharedRepository",
            "core.unsetenvvars",
            "core.useReplaceRefs",
            "core.worktree",
            "core.notesRef",
            "extensions.",
        ],
    ),
    (
        "they change how git stores data and how fast it is",
        &[
            "checkout.thresholdForParallelism",
            "checkout.workers",
            "commitGraph.",
            "core.commitGraph",
            "core.compression",
            "core.createObject",
            "core.deltaBaseCacheLimit",
            "core.filesRefLockTimeout",
            "core.fsmonitorHookVersion",
            "core.fsync",
            "core.fsyncMethod",
            "core.fsyncObjectFiles",
            "core.logAllRefUpdates",
            "core.looseCompression",
            "core.maxTreeDepth",
            "core.multiPackIndex",
            "core.packedGitLimit",
            "core.packedGitWindowSize",
            "core.packedRefsTimeout",
            "core.preferSymlinkRefs",
            "core.preloadIndex",
            "feature.",
            "fsmonitor.",
            "gc.",
            "index.",
            "maintenance.",
            "pack.",
            "reftable.",
            "repack.",
            "splitIndex.",
        ],
    ),
    ("they name further settings", &["include.", "includeIf."]),
    ("the user decides which repositories are safe", &["safe."]),
];

/// Each setting in git's own list is neutral or has a reason for an exception.
#[tokio::test]
async fn git_has_no_setting_that_is_unknown_here() {
    let fixture = Fixture::new().await;
    let settings = NEUTRAL.iter().chain(&EXACT).filter_map(|setting| setting.split_once('='));
    let known: Vec<String> = settings.map(|(name, _)| name.to_ascii_lowercase()).collect();
    let exceptions: Vec<String> =
        EXCEPTIONS.iter().flat_map(|(_, names)| names.iter()).map(|name| name.to_ascii_lowercase()).collect();
    for git in ["git", "command /usr/bin/git"] {
        let listed = fixture.print(&format!("{git} help --config-for-completion 2>/dev/null || true")).await;
        let keys: Vec<&str> = listed.lines().filter(|line| line.contains('.')).collect();
        assert!(keys.len() > 300 || git != "git", "{listed}");
        let unknown: Vec<&&str> = keys
            .iter()
            .filter(|name| {
                let name = name.to_ascii_lowercase();
                // It applies to one branch, remote or driver, or is a colour.
                let has_subsection = name.matches('.').count() > 1 || name.ends_with('.');
                let is_exception = exceptions.iter().any(|exception| match exception.ends_with('.') {
                    true => name.starts_with(exception.as_str()),
                    false => name == *exception,
                });
                !has_subsection && !is_exception && !known.contains(&name)
            })
            .collect();
        assert_eq!(unknown, Vec::<&&str>::new(), "{git}");
    }
}
