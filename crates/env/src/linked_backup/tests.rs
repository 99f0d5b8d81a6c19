#![expect(clippy::disallowed_methods, reason = "the tests change files as programs do")]

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use tempfile::TempDir;

use super::*;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Counts a read of a directory, or of the state of an entry.
pub(super) fn count_call() {
    CALLS.set(CALLS.get() + 1);
}

/// Returns the number of such reads by this function.
fn calls_by(work: impl FnOnce()) -> usize {
    CALLS.set(0);
    work();
    CALLS.get()
}

struct Fixture {
    directory: TempDir,
    backup: LinkedBackup,
}

impl Fixture {
    fn new(files: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("backup")).unwrap();
        let root = directory.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        let backup = LinkedBackup::new(at("git"), ["HEAD", "objects", "refs"], at("backup"), 100);
        let fixture = Self { directory, backup };
        fs::create_dir(fixture.at("git")).unwrap();
        files.iter().for_each(|file| fixture.write(file));
        fixture
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes its own name to a file of the source, as git does: under another name first.
    fn write(&self, file: &str) {
        let path = self.at("git").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = path.with_extension("lock");
        fs::write(&new, file).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn files_below(&self, directory: &str) -> Vec<String> {
        let (mut found, mut pending) = (Vec::new(), vec![self.at(directory)]);
        while let Some(path) = pending.pop() {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => pending.push(entry.path()),
                    false => found.push(entry.path()),
                }
            }
        }
        let root = self.at(directory);
        let relative = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let mut found: Vec<String> = found.into_iter().map(relative).collect();
        found.sort();
        found
    }
}

const FILES: [&str; 5] = ["HEAD", "config", "objects/ab/1", "objects/pack/p.pack", "refs/heads/main"];

fn missing(backup: &LinkedBackup) -> Vec<String> {
    let missing = backup.missing().unwrap();
    missing.into_iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn removed_files_are_restored() {
    let fixture = Fixture::new(&FILES);
    fixture.backup.update().unwrap();
    assert_eq!(
        fixture.files_below("backup"),
        ["HEAD", "objects/ab/1", "objects/pack/p.pack", "refs/heads/main"]
    );
    assert_eq!(missing(&fixture.backup), [""; 0]);
    let inode = fs::metadata(fixture.at("git/objects/ab/1")).unwrap().ino();
    for removed in ["objects", "refs/heads/main", "HEAD"] {
        let path = fixture.at("git").join(removed);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    assert_eq!(missing(&fixture.backup), ["HEAD", "objects/ab/1", "objects/pack/p.pack", "refs/heads/main"]);
    assert_eq!(fixture.backup.restore("objects").unwrap(), 2);
    assert_eq!(missing(&fixture.backup), ["HEAD", "refs/heads/main"]);
    assert_eq!(fixture.backup.restore("").unwrap(), 2);
    assert_eq!(fixture.files_below("git"), FILES);
    assert_eq!(fs::metadata(fixture.at("git/objects/ab/1")).unwrap().ino(), inode, "nothing is copied");
    fs::remove_dir_all(fixture.at("git")).unwrap();
    assert_eq!(missing(&fixture.backup).len(), 4);
    assert!(fixture.backup.update().is_err(), "nothing is known to be gone for good");
    assert_eq!(fixture.backup.restore("").unwrap(), 4);
    assert_eq!(fixture.backup.restore("").unwrap(), 0);
}

#[test]
fn an_update_adds_what_the_source_has() {
    let fixture = Fixture::new(&FILES);
    for _ in 0..3 {
        fixture.backup.update().unwrap();
        fixture.write("objects/ab/2");
        fixture.write("objects/cd/3");
        fixture.write("objects/cd/tmp_obj_4");
        fixture.write("refs/heads/tmp_branch");
        fixture.write("HEAD");
        fs::remove_file(fixture.at("git/objects/ab/1")).unwrap();
        assert_eq!(missing(&fixture.backup), ["objects/ab/1"]);
        fixture.backup.update().unwrap();
        let expected = [
            "HEAD",
            "objects/ab/1",
            "objects/ab/2",
            "objects/cd/3",
            "objects/pack/p.pack",
            "refs/heads/main",
            "refs/heads/tmp_branch",
        ];
        assert_eq!(fixture.files_below("backup"), expected);
        let inode = |path: &str| fs::metadata(fixture.at(path)).unwrap().ino();
        assert_eq!(inode("backup/HEAD"), inode("git/HEAD"), "it was replaced");
        fs::remove_dir_all(fixture.at("git/objects/cd")).unwrap();
        fixture.write("objects/ab/1");
        fs::remove_file(fixture.at("git/objects/ab/2")).unwrap();
    }
}

/// A command may set the time of a directory back, but not the time at which its status changed.
#[test]
fn a_directory_whose_time_was_set_back_is_compared() {
    let fixture = Fixture::new(&FILES);
    let directory = fixture.at("git/objects/ab");
    let old = fs::metadata(&directory).unwrap().modified().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(150));
    fixture.backup.update().unwrap();
    assert_eq!(missing(&fixture.backup), [""; 0]);
    fs::remove_file(directory.join("1")).unwrap();
    File::open(&directory).unwrap().set_modified(old).unwrap();
    assert_eq!(missing(&fixture.backup), ["objects/ab/1"]);
    fixture.backup.restore("").unwrap();
    assert!(directory.join("1").exists());
}

#[test]
fn files_that_were_missing_at_an_update_are_not_found_again() {
    let fixture = Fixture::new(&FILES);
    fixture.backup.update().unwrap();
    fs::remove_file(fixture.at("git/objects/ab/1")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(150));
    fixture.backup.update().unwrap();
    assert_eq!(missing(&fixture.backup), [""; 0]);
    assert_eq!(fixture.backup.restore("objects").unwrap(), 1, "it is still there");
}

/// A walk that compares and updates costs little more than one that only updates, not twice as much.
#[test]
fn a_complete_source_is_compared_and_updated_in_one_walk() {
    let fixture = Fixture::new(&FILES);
    (0..60).for_each(|number| fixture.write(&format!("objects/{number}/1")));
    fixture.backup.update().unwrap();
    // Directories that have just changed are compared in any case.
    std::thread::sleep(std::time::Duration::from_millis(150));
    fixture.backup.update().unwrap();
    let update = calls_by(|| fixture.backup.update().unwrap());
    let complete = calls_by(|| assert!(fixture.backup.update_if_complete().unwrap()));
    assert!(update >= 60 && complete <= update + 10, "{complete} calls, {update} without the comparison");
    fixture.write("objects/7/2");
    fixture.write("refs/heads/new");
    assert!(fixture.backup.update_if_complete().unwrap());
    let kept = fixture.files_below("backup");
    assert!(["objects/7/2", "refs/heads/new"].iter().all(|file| kept.iter().any(|kept| kept == file)));
}

#[test]
fn an_update_ends_where_the_source_lacks_a_file() {
    let remove = |fixture: &Fixture, removed: &str| {
        let path = fixture.at("git").join(removed);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    };
    for (removed, lost) in [
        ("HEAD", &["HEAD"][..]),
        ("objects/ab/1", &["objects/ab/1"]),
        ("objects/ab", &["objects/ab/1"]),
        ("objects", &["objects/ab/1", "objects/pack/p.idx", "objects/pack/p.pack"]),
        ("objects/pack/p.pack", &["objects/pack/p.pack"]),
        ("refs/heads/main", &["refs/heads/main"]),
    ] {
        for is_settled in [false, true] {
            let fixture = Fixture::new(&FILES);
            fixture.write("objects/pack/p.idx");
            fixture.backup.update().unwrap();
            if is_settled {
                std::thread::sleep(std::time::Duration::from_millis(150));
                fixture.backup.update().unwrap();
            }
            remove(&fixture, removed);
            for _ in 0..2 {
                assert!(!fixture.backup.update_if_complete().unwrap(), "{removed}");
                assert_eq!(missing(&fixture.backup), lost, "{removed}");
            }
            assert_eq!(fixture.backup.restore("").unwrap(), lost.len(), "{removed}");
            assert!(fixture.backup.update_if_complete().unwrap(), "{removed}");
        }
    }
    let fixture = Fixture::new(&FILES);
    fixture.backup.update().unwrap();
    // The index of a removed pack lists the lost objects. A command may replace it.
    fixture.write("objects/pack/p.idx");
    fixture.backup.update().unwrap();
    remove(&fixture, "objects/pack/p.pack");
    fs::write(fixture.at("git/new"), "forged").unwrap();
    fs::rename(fixture.at("git/new"), fixture.at("git/objects/pack/p.idx")).unwrap();
    assert!(!fixture.backup.update_if_complete().unwrap());
    assert_eq!(fs::read_to_string(fixture.at("backup/objects/pack/p.idx")).unwrap(), "objects/pack/p.idx");
    // A file in place of a directory, and the reverse.
    for (removed, is_file) in [("objects/ab", true), ("HEAD", false)] {
        let fixture = Fixture::new(&FILES);
        fixture.backup.update().unwrap();
        remove(&fixture, removed);
        let path = fixture.at("git").join(removed);
        if is_file {
            fs::write(path, "").unwrap()
        } else {
            fs::create_dir(path).unwrap()
        }
        assert!(!fixture.backup.update_if_complete().unwrap(), "{removed}");
        assert_eq!(missing(&fixture.backup).len(), 1, "{removed}");
    }
    // Git refuses a repository without this directory, even if all branches are in a list.
    let fixture = Fixture::new(&["HEAD"]);
    fs::create_dir(fixture.at("git/refs")).unwrap();
    fixture.backup.update().unwrap();
    remove(&fixture, "refs");
    assert!(!fixture.backup.update_if_complete().unwrap());
    remove(&fixture, "");
    assert_eq!(fixture.backup.update_if_complete().unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn files_of_copied_entries_may_be_changed_in_place() {
    let fixture = Fixture::new(&["HEAD", "logs/HEAD"]);
    let backup = fixture.backup.clone().with_copied_entry("logs");
    for text in ["logs/HEAD", "one line", "two lines", "two linez"] {
        fs::write(fixture.at("git/logs/HEAD"), text).unwrap();
        backup.update().unwrap();
        assert_eq!(fs::read_to_string(fixture.at("backup/logs/HEAD")).unwrap(), text);
        fs::write(fixture.at("git/logs/HEAD"), "").unwrap();
        assert_eq!(fs::read_to_string(fixture.at("backup/logs/HEAD")).unwrap(), text);
    }
    fs::remove_dir_all(fixture.at("git/logs")).unwrap();
    assert_eq!(backup.restore("").unwrap(), 1);
    assert_eq!(fs::metadata(fixture.at("git/logs/HEAD")).unwrap().nlink(), 1);
}

/// Commands choose the names in the source.
#[test]
fn links_are_neither_followed_nor_kept() {
    let fixture = Fixture::new(&["HEAD", "objects/ab/1"]);
    fs::create_dir(fixture.at("secrets")).unwrap();
    fs::write(fixture.at("secrets/key"), "secret").unwrap();
    symlink(fixture.at("secrets/key"), fixture.at("git/objects/ab/key")).unwrap();
    symlink(fixture.at("secrets"), fixture.at("git/objects/cd")).unwrap();
    symlink(fixture.at("secrets"), fixture.at("git/refs")).unwrap();
    fixture.backup.update().unwrap();
    assert_eq!(fixture.files_below("backup"), ["HEAD", "objects/ab/1"]);
    let source = |path: &str| fixture.backup.read(BackupSide::Source, Path::new(path), 9).unwrap();
    assert_eq!(source("objects/ab/1").as_deref(), Some(&b"objects/ab/1"[..]).filter(|text| text.len() <= 9));
    assert_eq!((source("HEAD").as_deref(), source("refs/key")), (Some(&b"HEAD"[..]), None));
    // A link in place of a directory leads no file elsewhere.
    fs::remove_dir_all(fixture.at("git/objects")).unwrap();
    symlink(fixture.at("secrets"), fixture.at("git/objects")).unwrap();
    assert_eq!(missing(&fixture.backup), ["objects/ab/1"]);
    assert_eq!(fixture.backup.restore("").unwrap(), 1);
    assert_eq!(fixture.files_below("git/objects"), ["ab/1"]);
    // Neither does a file.
    fs::remove_dir_all(fixture.at("git/objects")).unwrap();
    fs::write(fixture.at("git/objects"), "").unwrap();
    assert_eq!(fixture.backup.restore("").unwrap_err().kind(), io::ErrorKind::NotADirectory);
    // Nor does one on the way to the source.
    let below = LinkedBackup::new(fixture.at("elsewhere/git"), ["HEAD"], fixture.at("backup"), 9);
    symlink(fixture.at("secrets"), fixture.at("elsewhere")).unwrap();
    assert!(below.update().is_err() && below.restore("").is_err());
    fs::remove_file(fixture.at("elsewhere")).unwrap();
    fs::rename(fixture.at("git"), fixture.at("elsewhere")).unwrap();
    symlink(fixture.at("secrets"), fixture.at("git")).unwrap();
    assert!(fixture.backup.update().is_err() && fixture.backup.restore("").is_err());
    assert_eq!(fixture.files_below("secrets"), ["key"]);
    assert_eq!(fixture.files_below("backup"), ["HEAD", "objects/ab/1"]);
}

#[test]
fn a_source_with_too_many_files_is_refused() {
    let fixture = Fixture::new(&["HEAD"]);
    (0..100).for_each(|number| fixture.write(&format!("objects/ab/{number}")));
    for _ in 0..2 {
        assert_eq!(fixture.backup.update().unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
    }
}
