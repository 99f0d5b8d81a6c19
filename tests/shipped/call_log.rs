//! A log of programs, which they can write to in a sandbox that keeps them from writing files.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// Last line of a recording.
const END: &str = "end of the recording";

/// A named pipe. Writing to one needs no writable file system.
pub(super) struct CallLog(PathBuf);

impl CallLog {
    /// Creates the pipe at a path.
    pub(super) fn create(path: PathBuf) -> Self {
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Calls a function, and returns the lines that programs wrote meanwhile.
    pub(super) fn record<T>(&self, run: impl FnOnce() -> T) -> (T, Vec<String>) {
        // With both ends open, neither opening nor reading waits for a program.
        let pipe = OpenOptions::new().read(true).write(true).open(&self.0).unwrap();
        let reader = BufReader::new(pipe.try_clone().unwrap());
        std::thread::scope(|scope| {
            let lines =
                scope.spawn(|| reader.lines().map(Result::unwrap).take_while(|line| line != END).collect());
            let end = EndOfRecording(pipe);
            let result = run();
            drop(end);
            (result, lines.join().unwrap())
        })
    }
}

/// Ends the recording when it is dropped, also by a panic.
struct EndOfRecording(File);

impl Drop for EndOfRecording {
    fn drop(&mut self) {
        let _ = writeln!(self.0, "{END}");
    }
}
