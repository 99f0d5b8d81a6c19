//! Files that commands name or include.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::shell::split_commands;

/// Maximum number of files that are searched for further files.
const MAX_SEARCHED: usize = 64;

/// Programs that read files and run none of them. A file that only they name is not one that judges.
const READERS: [&str; 35] = [
    "ruff",
    "mypy",
    "pyright",
    "flake8",
    "pylint",
    "black",
    "isort",
    "eslint",
    "prettier",
    "shellcheck",
    "rustfmt",
    "gofmt",
    "clang-format",
    "clang-tidy",
    "cppcheck",
    "xmllint",
    "jq",
    "cat",
    "test",
    "[",
    "ls",
    "wc",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "head",
    "tail",
    "sort",
    "echo",
    "printf",
    "git",
    "rm",
    "mkdir",
    "touch",
];

/// Programs whose arguments are sources under test, unless they are named as tests. Makefiles have some as variables.
const COMPILERS: [&str; 18] = [
    "cc", "gcc", "g++", "c++", "clang", "clang++", "CC", "CXX", "rustc", "javac", "kotlinc", "tsc", "go",
    "ghc", "ocamlc", "swiftc", "fpc", "gfortran",
];

/// Programs that run another program.
const WRAPPERS: [&str; 14] = [
    "env", "exec", "time", "timeout", "nice", "command", "sudo", "xargs", "npx", "bunx", "pipx", "uvx",
    "run", "dlx",
];

/// Words before which a command starts.
const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "while", "until", "do", "!", "{"];

/// The search for the files that judge because commands name or include them.
///
/// The caller reads the files of [`next_file`](Self::next_file) and adds their texts, until no file is left.
#[derive(Debug)]
pub(crate) struct CommandScan {
    tracked: BTreeSet<String>,
    /// Directory in which commands run. Empty for the root.
    directory: String,
    /// Files that a command runs, or reads as settings.
    named: BTreeSet<String>,
    /// Files that a script or a recipe runs or sources. They judge unless the anchor uses them as well.
    included: BTreeSet<String>,
    /// Directories that a command names.
    directories: BTreeSet<String>,
    /// All words of commands, without directories.
    words: BTreeSet<String>,
    /// Programs and modules that commands run.
    programs: BTreeSet<String>,
    /// Files to search, with the directory in which their commands run.
    queue: VecDeque<(String, String)>,
    searched: BTreeMap<String, String>,
    /// Files that commands use if they exist, and that do not: sourced scripts, included makefiles and targets of make.
    awaited: BTreeSet<String>,
    /// Targets of make that run whether a file with their name exists or not.
    phony: BTreeSet<String>,
    /// Whether a makefile includes files by a pattern or a variable.
    includes_any: bool,
    /// Whether the added lines belong to a file, and not to a command.
    is_in_file: bool,
}

impl CommandScan {
    /// Creates a search among these files of a repository.
    pub(crate) fn new(tracked: impl IntoIterator<Item = String>) -> Self {
        Self {
            tracked: tracked.into_iter().collect(),
            directory: String::new(),
            named: BTreeSet::new(),
            included: BTreeSet::new(),
            directories: BTreeSet::new(),
            words: BTreeSet::new(),
            programs: BTreeSet::new(),
            queue: VecDeque::new(),
            searched: BTreeMap::new(),
            awaited: BTreeSet::new(),
            phony: BTreeSet::new(),
            includes_any: false,
            is_in_file: false,
        }
    }

    /// Sets the directory in which commands run.
    pub(crate) fn with_directory(mut self, directory: &str) -> Self {
        directory.clone_into(&mut self.directory);
        self
    }

    /// Returns the files of the repository.
    pub(crate) fn tracked(&self) -> &BTreeSet<String> {
        &self.tracked
    }

    /// Adds the files that a command names.
    pub(crate) fn add_command(&mut self, command: &str) {
        self.is_in_file = false;
        let directory = self.directory.clone();
        self.add_lines(command, &directory);
    }

    /// Returns a file that may include other files, and that was not searched yet.
    pub(crate) fn next_file(&mut self) -> Option<String> {
        while let Some((path, directory)) = self.queue.pop_front() {
            if self.searched.len() < MAX_SEARCHED && !self.searched.contains_key(&path) {
                self.searched.insert(path.clone(), directory);
                return Some(path);
            }
        }
        None
    }

    /// Adds the files that a file includes.
    pub(crate) fn add_file(&mut self, path: &str, text: &str) {
        self.is_in_file = true;
        let directory = self.searched.get(path).cloned().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or(path);
        if name == "package.json" {
            self.add_scripts(text, &directory);
        } else if is_makefile(name) {
            self.add_makefile(text, &directory);
        } else {
            self.add_lines(text, &directory);
        }
    }

    /// Removes included files that the anchor uses: they are under test. `text` is the text of a file of the anchor.
    pub(crate) fn remove_included_in(&mut self, text: &str) {
        let is_used = |path: &String| {
            let name = path.rsplit('/').next().unwrap_or(path);
            text.split(|character: char| character.is_whitespace() || "'\"();<>".contains(character))
                .any(|word| word.rsplit('/').next() == Some(name))
        };
        self.included.retain(|path| !is_used(path));
    }

    /// Returns the files that commands run, read as settings or include.
    pub(crate) fn judges(&self) -> BTreeSet<String> {
        self.named.union(&self.included).cloned().collect()
    }

    /// Returns whether a script or a recipe runs or sources this file.
    pub(crate) fn is_included(&self, path: &str) -> bool {
        self.included.contains(path)
    }

    /// Removes all included files.
    pub(crate) fn remove_included(&mut self) {
        self.included.clear();
    }

    /// Returns whether a command has one of these words.
    pub(crate) fn has_word(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.words.contains(*word))
    }

    /// Returns whether a command names a directory that contains this file.
    pub(crate) fn names_directory_of(&self, path: &str) -> bool {
        self.directories
            .iter()
            .any(|directory| path.strip_prefix(directory.as_str()).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Returns whether commands use a new file because it exists now. A file also creates the directories above it, and make
    /// treats a directory with the name of a target like a file.
    pub(crate) fn is_awaited(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut parents = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        let is_awaited = |path: &str| self.awaited.contains(path) && !self.phony.contains(path);
        is_awaited(path)
            || parents.any(|parent| is_awaited(parent) && !self.has_directory(parent))
            || self.includes_any && name.ends_with(".mk")
    }

    /// Returns whether the repository has files in this directory.
    pub(crate) fn has_directory(&self, directory: &str) -> bool {
        let start = format!("{directory}/");
        self.tracked.range(start.clone()..).next().is_some_and(|path| path.starts_with(&start))
    }

    /// Adds a file that commands use if it exists.
    fn await_file(&mut self, path: Option<String>) {
        self.awaited.extend(path.filter(|path| !path.is_empty() && !self.tracked.contains(path)));
    }

    /// Returns whether a new file replaces a program or a module that commands run: it has the same name, at the top of the
    /// repository or of the directory in which commands run.
    pub(crate) fn is_shadow(&self, path: &str) -> bool {
        let is_inside = !self.directory.is_empty() && is_below(path, &self.directory);
        let start = if is_inside { self.directory.len() + 1 } else { 0 };
        let local = path.get(start..).unwrap_or(path);
        let (first, rest) = local.split_once('/').unwrap_or((local, ""));
        let top = path.get(..start + first.len()).unwrap_or(first);
        let is_new = rest.is_empty() || !self.has_directory(top);
        let module = if rest.is_empty() { first.strip_suffix(".py") } else { Some(first) };
        is_new && module.is_some_and(|module| self.programs.contains(module))
    }

    fn add_lines(&mut self, text: &str, directory: &str) {
        let mut directory = directory.to_owned();
        for command in split_commands(text) {
            let start = command.words.iter().position(|word| !KEYWORDS.contains(&word.as_str()));
            let words = start.and_then(|start| command.words.get(start..)).unwrap_or_default();
            if let [program, target] = words
                && program == "cd"
            {
                directory = join(&directory, target).unwrap_or_default();
                continue;
            }
            self.add_simple_command(words, &directory);
        }
    }

    fn add_simple_command(&mut self, mut words: &[String], directory: &str) {
        let base = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
        self.words.extend(words.iter().map(|word| base(word)));
        // `env A=b npx jest` runs jest, and `timeout -k 5 60 make` runs make.
        let mut is_wrapped = false;
        while let [first, rest @ ..] = words {
            let is_wrapper = WRAPPERS.contains(&first.as_str());
            let is_number = is_wrapped && first.starts_with(|next: char| next.is_ascii_digit());
            if !(is_wrapper || is_number || first.starts_with('-') || first.contains('=')) {
                break;
            }
            is_wrapped |= is_wrapper;
            words = rest;
        }
        let Some((program, arguments)) = words.split_first() else { return };
        let name = base(program);
        self.programs.insert(name.clone());
        self.add_run_programs(arguments);
        if is_syntax_check(&name, arguments) || READERS.contains(&name.as_str()) {
            return;
        }
        if let Some(path) = join(directory, program).filter(|path| self.tracked.contains(path)) {
            self.add_named(path, directory);
        }
        if matches!(name.as_str(), "." | "source") {
            let path = arguments.first().and_then(|file| join(directory, file));
            self.await_file(path.clone());
            if let Some(path) = path.filter(|path| self.tracked.contains(path)) {
                self.queue.push_back((path.clone(), directory.to_owned()));
                // A command that sources a file tests its functions.
                if self.is_in_file {
                    self.included.insert(path);
                }
            }
            return;
        }
        self.add_implicit(&name, arguments, directory);
        for argument in arguments {
            let value = argument.split_once('=').map_or(argument.as_str(), |(_, value)| value);
            let Some(path) = join(directory, value) else { continue };
            if self.tracked.contains(&path) {
                if !COMPILERS.contains(&name.as_str()) || is_named_as_test(&path) {
                    self.add_named(path, directory);
                }
            } else if !path.is_empty() && self.has_directory(&path) {
                self.directories.insert(path);
            }
        }
    }

    /// Adds programs and modules in arguments: `-m pytest`, `run jest`.
    fn add_run_programs(&mut self, arguments: &[String]) {
        for pair in arguments.windows(2) {
            if let [before, name] = pair
                && (before == "-m" || WRAPPERS.contains(&before.as_str()))
            {
                let module = name.split('.').next().unwrap_or(name);
                self.programs.insert(module.to_owned());
            }
        }
    }

    /// Adds a file that judges. Scripts and makefiles are searched.
    fn add_named(&mut self, path: String, directory: &str) {
        let name = path.rsplit('/').next().unwrap_or(&path);
        let is_script = !name.contains('.')
            || is_makefile(name)
            || [".sh", ".bash", ".zsh", ".ksh", ".bats"].iter().any(|end| name.ends_with(end));
        if is_script {
            self.queue.push_back((path.clone(), directory.to_owned()));
        }
        if self.is_in_file {
            self.included.insert(path)
        } else {
            self.named.insert(path)
        };
    }

    /// Adds the files that a program reads without being asked to. Their names judge already.
    fn add_implicit(&mut self, program: &str, arguments: &[String], directory: &str) {
        let names: &[&str] = match program {
            "make" | "gmake" => &["GNUmakefile", "makefile", "Makefile"],
            "npm" | "yarn" | "pnpm" | "bun" => &["package.json"],
            "just" => &["justfile", "Justfile", ".justfile"],
            _ => return,
        };
        let mut directory = directory.to_owned();
        for pair in arguments.windows(2) {
            if let [flag, value] = pair
                && matches!(flag.as_str(), "-C" | "--directory" | "--prefix" | "--cwd")
            {
                directory = join(&directory, value).unwrap_or_default();
            }
        }
        for name in names {
            let path = join(&directory, name).filter(|path| self.tracked.contains(path));
            self.queue.extend(path.map(|path| (path, directory.clone())));
        }
    }

    fn add_scripts(&mut self, text: &str, directory: &str) {
        let manifest: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let scripts = manifest.get("scripts").and_then(serde_json::Value::as_object);
        for (name, script) in scripts.into_iter().flatten() {
            // Other scripts of the project run the product.
            let command = ["pre", "post"].iter().find_map(|start| name.strip_prefix(start)).unwrap_or(name);
            let is_run = self.words.contains(command) || self.words.contains(name);
            if let Some(script) = script.as_str().filter(|_| is_run) {
                self.add_lines(script, directory);
            }
        }
    }

    fn add_makefile(&mut self, text: &str, directory: &str) {
        for line in text.lines() {
            if let Some(recipe) = line.strip_prefix('\t') {
                // `$(CC)` is the name of a program.
                let recipe = recipe.trim_start_matches(['@', '-', '+']).replace("$(", "").replace(')', " ");
                self.add_lines(&recipe, directory);
                continue;
            }
            let included =
                ["include ", "-include ", "sinclude "].iter().find_map(|word| line.strip_prefix(word));
            if included.is_none() {
                self.add_targets(line, directory);
            }
            for file in included.unwrap_or_default().split_whitespace() {
                self.includes_any |= file.contains(['$', '*', '?']);
                self.await_file(join(directory, file));
                if let Some(path) = join(directory, file).filter(|path| self.tracked.contains(path)) {
                    self.queue.push_back((path.clone(), directory.to_owned()));
                    self.named.insert(path);
                }
            }
        }
    }
}

impl CommandScan {
    /// Adds the targets of a rule. A file with the name of a target keeps its recipe from running, unless the target is phony.
    fn add_targets(&mut self, line: &str, directory: &str) {
        let Some((targets, rest)) = line.split_once(':') else { return };
        if targets.trim() == ".PHONY" {
            self.phony.extend(rest.split_whitespace().filter_map(|target| join(directory, target)));
            return;
        }
        if rest.starts_with('=') || targets.contains(['=', '#', '$', '%']) {
            return;
        }
        for target in targets.split_whitespace().filter(|target| !target.starts_with('.')) {
            self.await_file(join(directory, target));
        }
    }
}

fn is_makefile(name: &str) -> bool {
    name.ends_with(".mk") || name.eq_ignore_ascii_case("makefile") || name == "GNUmakefile"
}

/// Returns the path of a file in a directory, from the root of the repository. `None` for a path that leaves it.
fn join(directory: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns whether a file is in a directory.
fn is_below(file: &str, directory: &str) -> bool {
    file.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns whether a source has the name of a test.
fn is_named_as_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    ["test", "tests", "check", "spec", "verify"]
        .iter()
        .any(|word| stem.starts_with(word) || stem.ends_with(word))
}

/// Returns whether a program only parses its argument.
fn is_syntax_check(program: &str, arguments: &[String]) -> bool {
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    match program {
        "sh" | "bash" | "dash" | "zsh" | "ksh" => has("-n"),
        "ruby" | "perl" => has("-c"),
        "php" => has("-l"),
        "node" => has("--check"),
        _ => program.starts_with("python") && (has("py_compile") || has("compileall")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_repository() {
        for (directory, path, expected) in [
            ("", "./a.sh", Some("a.sh")),
            ("b", "../a.sh", Some("a.sh")),
            ("b", "c/./d", Some("b/c/d")),
            ("", "../a.sh", None),
            ("b", "/a.sh", None),
        ] {
            assert_eq!(join(directory, path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn keywords_are_no_programs() {
        let mut scan = CommandScan::new(["sub/check.sh".to_owned()]);
        scan.add_command("if true; then cd sub; fi\nif ! sh check.sh 2>&1; then exit 1; fi");
        assert_eq!(scan.judges().into_iter().collect::<Vec<_>>(), ["sub/check.sh"]);
        assert!(!scan.has_word(&["then", "2", "!"]));
    }
}
