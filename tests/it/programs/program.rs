//! The programs in `tests/programs`, and trees of files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use pintle_env::{ExecRequest, ExecutionEnvironment, LocalEnvironment};
use serde::Deserialize;

/// Time limit for a program's tests, which take milliseconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(20);

/// A program with and without its bug.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) buggy: Tree,
    pub(super) fixed: Tree,
    /// Editing tools that cannot express the fix byte for byte, with the reason.
    pub(super) beyond: BTreeMap<String, String>,
    /// The test command.
    test: String,
}

/// Files by path.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<String, File>);

#[derive(Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) is_executable: bool,
}

/// Content of `program.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    language: String,
    bug: String,
    test: String,
    #[serde(default)]
    delete: Vec<String>,
    #[serde(default)]
    beyond: BTreeMap<String, String>,
}

impl Program {
    /// Loads all programs, by name.
    pub(super) fn all() -> Vec<Self> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let mut directories: Vec<_> = entries.filter(|path| path.is_dir()).collect();
        directories.sort();
        directories.iter().map(|directory| Self::load(directory)).collect()
    }

    fn load(directory: &Path) -> Self {
        let name = directory.file_name().and_then(OsStr::to_str).unwrap().to_owned();
        let text = fs::read_to_string(directory.join("program.toml")).unwrap();
        let manifest: Manifest = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!manifest.language.is_empty() && !manifest.bug.is_empty(), "{name}: says too little");
        let buggy = Tree::read(&directory.join("program"));
        let mut fixed = buggy.clone();
        for path in &manifest.delete {
            assert!(fixed.0.remove(path).is_some(), "{name}: {path} is not there to be deleted");
        }
        // Git keeps no empty directory, so a fix that only deletes files has none.
        fixed.0.extend(Tree::read(&directory.join("fixed")).0);
        assert!(buggy != fixed, "{name}: the fix changes nothing");
        Self { name, buggy, fixed, beyond: manifest.beyond, test: manifest.test }
    }

    /// Runs the program's own tests in a directory. The error is their output.
    pub(super) async fn run_tests(&self, directory: &Path) -> Result<(), String> {
        let env = LocalEnvironment::with_host_env(directory, std::env::vars_os()).unwrap();
        let request = ExecRequest::new(self.test.clone()).with_timeout(LIMIT);
        let result = env.exec_command(request).await.unwrap();
        let output = result.output.to_text_lossy().unwrap();
        // Exit code 127 means that the interpreter is missing, which is not a test failure.
        assert!(result.exit_code != 127, "`{}` cannot be run: {output}", self.test);
        if result.success() { Ok(()) } else { Err(format!("exit code {}: {output}", result.exit_code)) }
    }
}

impl Tree {
    /// Reads the files in a directory, if it exists.
    pub(super) fn read(directory: &Path) -> Self {
        let mut tree = Self::default();
        if directory.is_dir() {
            tree.read_below(directory, "");
        }
        tree
    }

    fn read_below(&mut self, directory: &Path, prefix: &str) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                self.read_below(&entry.path(), &format!("{path}/"));
                continue;
            }
            let is_executable = entry.metadata().unwrap().permissions().mode() & 0o111 != 0;
            self.0.insert(path, File { bytes: fs::read(entry.path()).unwrap(), is_executable });
        }
    }

    /// Writes the files to a directory.
    pub(super) fn write(&self, directory: &Path) {
        for (path, file) in &self.0 {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &file.bytes).unwrap();
            let mode = if file.is_executable { 0o755 } else { 0o644 };
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().map(|(path, file)| {
            let mark = if file.is_executable { " (executable)" } else { "" };
            (format!("{path}{mark}"), String::from_utf8_lossy(&file.bytes))
        });
        f.debug_map().entries(shown).finish()
    }
}
