//! Programs as they lie in `tests/programs`, and trees of files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use pintle_env::{ExecRequest, ExecutionEnvironment, LocalEnvironment};
use serde::Deserialize;

/// How long a program's tests may take: they take some milliseconds, on a machine that does nothing else.
const LIMIT: Duration = Duration::from_secs(20);

/// A program with a bug, and without.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) buggy: Tree,
    pub(super) fixed: Tree,
    /// The editing tools that cannot say the fix to the byte, with the reason.
    pub(super) beyond: BTreeMap<String, String>,
    /// The command that judges.
    test: String,
}

/// Files by their paths.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<String, File>);

#[derive(Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) is_executable: bool,
}

/// What `program.toml` says.
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
    /// All of them, by name.
    pub(super) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
        folders.sort();
        folders.iter().map(|folder| Self::load(folder)).collect()
    }

    fn load(folder: &Path) -> Self {
        let name = folder.file_name().and_then(OsStr::to_str).unwrap().to_owned();
        let text = fs::read_to_string(folder.join("program.toml")).unwrap();
        let manifest: Manifest = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!manifest.language.is_empty() && !manifest.bug.is_empty(), "{name}: says too little");
        let buggy = Tree::read(&folder.join("program"));
        let mut fixed = buggy.clone();
        for path in &manifest.delete {
            assert!(fixed.0.remove(path).is_some(), "{name}: {path} is not there to be deleted");
        }
        // Git leaves no empty folder: a fix that only deletes has none.
        fixed.0.extend(Tree::read(&folder.join("fixed")).0);
        assert!(buggy != fixed, "{name}: the fix changes nothing");
        Self { name, buggy, fixed, beyond: manifest.beyond, test: manifest.test }
    }

    /// Runs the program's own tests in a folder; the error is their output.
    pub(super) async fn judge(&self, folder: &Path) -> Result<(), String> {
        let env = LocalEnvironment::with_host_env(folder, std::env::vars_os()).unwrap();
        let request = ExecRequest::new(self.test.clone()).with_timeout(LIMIT);
        let result = env.exec_command(request).await.unwrap();
        let output = result.output.to_text_lossy().unwrap();
        // What the shell says when an interpreter is missing is no verdict.
        assert!(result.exit_code != 127, "`{}` cannot be run: {output}", self.test);
        if result.success() { Ok(()) } else { Err(format!("exit code {}: {output}", result.exit_code)) }
    }
}

impl Tree {
    /// What lies below a folder; nothing if there is none.
    pub(super) fn read(folder: &Path) -> Self {
        let mut tree = Self::default();
        if folder.is_dir() {
            tree.read_below(folder, "");
        }
        tree
    }

    fn read_below(&mut self, folder: &Path, prefix: &str) {
        for entry in fs::read_dir(folder).unwrap() {
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

    /// Writes the files below a folder.
    pub(super) fn write(&self, folder: &Path) {
        for (path, file) in &self.0 {
            let path = folder.join(path);
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
