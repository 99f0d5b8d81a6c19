//! The shipped command with its default settings, for a user with a separate home.
#![expect(clippy::disallowed_methods, reason = "creates files and runs git for the command")]

use std::{
    cell::Cell,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// Model of the measured conversations. The catalog contains it.
pub(crate) const MODEL: &str = "gpt-5.2";

/// Flags of a run with neither sandbox nor store.
pub(crate) const BARE: [&str; 2] = ["--no-sandbox", "--no-session"];

/// Files of a small and of a large repository.
pub(crate) const SMALL: usize = 4;
pub(crate) const LARGE: usize = 10_000;

/// Files in one directory of a repository.
const FILES_PER_DIRECTORY: usize = 100;

/// Files of one kind in the package caches of a user.
struct Cache {
    /// Path below the home.
    directory: &'static str,
    /// Number of directories over which the files are spread; with one, they are in the directory itself.
    shards: usize,
    files: usize,
    bytes: u64,
    /// Whether the files have no contents but their size. Commands only link such files, but they copy an index.
    is_sparse: bool,
}

/// Package caches of about 5,000 files and 400 MB.
const CACHES: [Cache; 5] = [
    Cache {
        directory: ".cargo/registry/cache/index.crates.io",
        shards: 1,
        files: 800,
        bytes: 400_000,
        is_sparse: true,
    },
    Cache {
        directory: ".cargo/registry/src/index.crates.io",
        shards: 400,
        files: 400,
        bytes: 2_000,
        is_sparse: true,
    },
    Cache {
        directory: ".cargo/registry/index/index.crates.io/.cache",
        shards: 200,
        files: 2_500,
        bytes: 12_000,
        is_sparse: false,
    },
    Cache {
        directory: ".npm/_cacache/content-v2/sha512",
        shards: 256,
        files: 1_200,
        bytes: 40_000,
        is_sparse: true,
    },
    Cache { directory: ".npm/_cacache/index-v5", shards: 256, files: 500, bytes: 400, is_sparse: false },
];

/// A home with the state and the caches of a user, and directories with projects. It is in the target directory: the
/// sandbox replaces directories for temporary files, and these may be in memory, where a sync costs nothing.
pub(crate) struct User {
    root: TempDir,
    projects: Cell<usize>,
}

impl User {
    pub(crate) fn new() -> Self {
        let own = std::env::current_exe().expect("this program has a file");
        let target = own.ancestors().nth(2).unwrap_or(Path::new("."));
        let root = TempDir::new_in(target).expect("there is room for a directory");
        for name in ["home", "tmp"] {
            fs::create_dir(root.path().join(name)).expect("there is room for a directory");
        }
        Self { root, projects: Cell::new(0) }
    }

    /// Adds package caches to the home.
    pub(crate) fn with_caches(self) -> Self {
        for cache in &CACHES {
            for number in 0..cache.files {
                cache.create_file(&self.home(), number);
            }
        }
        self
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Creates a repository with so many files, which are committed.
    pub(crate) fn create_project(&self, files: usize) -> PathBuf {
        let number = self.projects.get();
        self.projects.set(number + 1);
        let project = self.root.path().join(format!("project-{number}"));
        for file in 0..files {
            let directory = match files {
                ..=FILES_PER_DIRECTORY => project.clone(),
                _ => project.join(format!("part-{}", file / FILES_PER_DIRECTORY)),
            };
            fs::create_dir_all(&directory).expect("there is room for a directory");
            fs::write(directory.join(format!("file-{file}.txt")), format!("line of file {file}\n"))
                .expect("there is room for a file");
        }
        for arguments in [
            &["init", "--quiet"][..],
            &["add", "."],
            &[
                "-c",
                "user.name=bench",
                "-c",
                "user.email=bench@localhost",
                "commit",
                "--quiet",
                "-m",
                "files",
            ],
        ] {
            succeed(self.with_variables(&mut Command::new("git"), &project).args(arguments));
        }
        project
    }

    /// Returns the shipped command in a directory, with the variables of the user and no other.
    pub(crate) fn pintle(&self, directory: &Path) -> Command {
        let mut command = Command::new(program());
        self.with_variables(&mut command, directory);
        command.env("OPENAI_API_KEY", "sk-bench").env("ANTHROPIC_API_KEY", "sk-bench");
        command
    }

    /// Returns the shortest call of git that reads the state of a repository.
    pub(crate) fn git_status(&self, directory: &Path) -> Command {
        let mut command = Command::new("git");
        self.with_variables(&mut command, directory).args(["status", "--porcelain=v2", "--branch"]);
        command
    }

    fn with_variables<'a>(&self, command: &'a mut Command, directory: &Path) -> &'a mut Command {
        command
            .current_dir(directory)
            .env_clear()
            .env("HOME", self.home())
            .env("TMPDIR", self.root.path().join("tmp"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
    }
}

impl Cache {
    fn create_file(&self, home: &Path, number: usize) {
        let directory = home.join(self.directory);
        let directory = match self.shards {
            1 => directory,
            shards => directory.join(format!("part-{}", number % shards)),
        };
        fs::create_dir_all(&directory).expect("there is room for a directory");
        let path = directory.join(format!("package-{number}"));
        let written = if self.is_sparse {
            File::create(&path).and_then(|file| file.set_len(self.bytes))
        } else {
            fs::write(&path, vec![b'x'; usize::try_from(self.bytes).unwrap_or_default()])
        };
        written.expect("there is room for a file");
    }
}

/// Returns the path of the command as it is shipped.
pub(crate) fn program() -> PathBuf {
    let own = std::env::current_exe().expect("this program has a file");
    own.ancestors().nth(2).unwrap_or(Path::new(".")).join("dist/pintle")
}

/// Runs a program to its end. Panics if it fails.
pub(crate) fn succeed(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("the program is built").success(), "{command:?} fails");
}
