//! A directory tree of text files, the same in every run.
#![expect(clippy::disallowed_methods, reason = "writes the tree to search")]

use std::{
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use tempfile::TempDir;

const FILES: usize = 5_000;
const FILES_PER_DIRECTORY: usize = 40;

/// Average size of a file.
const FILE_BYTES: usize = 10_000;

/// A word in about one of ten thousand lines.
pub(crate) const RARE_WORD: &str = "hapax_legomenon";

const WORDS: [&str; 24] = [
    "let",
    "self",
    "return",
    "buffer",
    "index",
    "value",
    "error",
    "match",
    "struct",
    "parser",
    "token",
    "0",
    "255",
    "(left,",
    "right)",
    "{",
    "}",
    "->",
    "=>",
    "state.next()",
    "// the",
    "length",
    "of",
    "window",
];

/// A tree of about 50 MB, removed on drop.
pub(crate) struct Tree {
    directory: TempDir,
    files: Vec<PathBuf>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("there is room for a tree");
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let files = (0..FILES).map(|number| {
            let path = directory.path().join(relative_path(number));
            fs::create_dir_all(path.parent().expect("it has one")).expect("a directory is made");
            fs::write(&path, text(&mut random)).expect("a file is written");
            path
        });
        let files = files.collect();
        fs::write(directory.path().join(".gitignore"), "/target\n*.log\n").expect("a file is written");
        Self { directory, files }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Evicts the content of the files from the page cache. Names and sizes remain cached.
    pub(crate) fn cool(&self) {
        for path in &self.files {
            let file = File::open(path).expect("it was written");
            file.sync_data().expect("it was written");
            let advised = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
            advised.expect("pages can be given up");
        }
    }
}

/// Returns a path with two levels of directories, as in a source tree.
fn relative_path(number: usize) -> String {
    let directory = number / FILES_PER_DIRECTORY;
    format!("part_{}/module_{directory}/file_{number}.rs", directory % 10)
}

/// Returns the text of a file, of 0.5 to 1.5 times the average size.
fn text(random: &mut Random) -> String {
    let wanted = FILE_BYTES / 2 + random.below(FILE_BYTES);
    let mut text = String::with_capacity(wanted + 100);
    while text.len() < wanted {
        for _ in 0..4 + random.below(8) {
            text.push_str(WORDS.get(random.below(WORDS.len())).expect("it is below the length"));
            text.push(' ');
        }
        match random.below(10_000) {
            0 => text.push_str(RARE_WORD),
            1..100 => write!(text, "call_{}({})", random.below(1_000), random.below(1_000)).expect("it fits"),
            _ => {}
        }
        text.push('\n');
    }
    text
}

/// Xorshift generator: good enough for text.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits fit") % limit
    }
}
