//! A file system in memory that can lose its power, its space and its health.
//!
//! It keeps what is on disk apart from what is only in memory. A loss of power keeps what was synced, and any part of the
//! rest: of the bytes after the last sync any blocks of 512, zeros where later blocks were written, and of the names that
//! were added, changed or removed after the last sync of their directory any of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use pintle_agent::Timestamp;

use super::super::disk::{Disk, DiskFile, DiskLock, ReadSeek};

const BLOCK: usize = 512;

/// Number of a file or directory.
type Node = u64;

const ROOT: Node = 0;

#[derive(Clone, Debug)]
pub(super) struct Double {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<Node, FileNode>,
    directories: BTreeMap<Node, DirectoryNode>,
    next: Node,
    locked: BTreeSet<Node>,
    lock_texts: BTreeMap<Node, String>,
    /// Operations so far that change something.
    operations: u64,
    /// Waits for the disk so far. Syncs in one group are one wait.
    waits: u64,
    fault: Option<Fault>,
    is_dead: bool,
    /// Whether locks fail, as on some network file systems.
    refuses_locks: bool,
}

#[derive(Clone, Debug, Default)]
struct FileNode {
    data: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct DirectoryNode {
    entries: BTreeMap<String, Node>,
    synced: BTreeMap<String, Node>,
}

/// Fault at one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The process or the machine dies in the middle of operation `at`, and nothing works any more.
    Death { at: u64 },
    /// Operation `at` fails; the ones after it work, unless `lasting`.
    Error { at: u64, kind: io::ErrorKind, lasting: bool },
}

/// Source of the choices of one loss of power.
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        // SplitMix64, Steele et al. 2014.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap()
    }

    fn flip(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

impl Double {
    /// Creates a disk with an empty directory `/disk`.
    pub(super) fn new() -> Self {
        let mut state = State { next: 2, ..State::default() };
        let root = BTreeMap::from([("disk".to_owned(), 1)]);
        state.directories.insert(ROOT, DirectoryNode { entries: root.clone(), synced: root });
        state.directories.insert(1, DirectoryNode::default());
        Self { state: Arc::new(Mutex::new(state)) }
    }

    pub(super) fn set_fault(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }

    pub(super) fn operations(&self) -> u64 {
        self.state().operations
    }

    pub(super) fn waits(&self) -> u64 {
        self.state().waits
    }

    pub(super) fn refuse_locks(&self) {
        self.state().refuses_locks = true;
    }

    /// Returns the disk after the death of the process: everything that was written is there, and no lock.
    pub(super) fn after_kill(&self) -> Self {
        let state = self.state();
        let state = State {
            files: state.files.clone(),
            directories: state.directories.clone(),
            next: state.next,
            ..State::default()
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Returns the disk after a loss of power.
    pub(super) fn after_power_loss(&self, random: &mut Random) -> Self {
        let this = self.after_kill();
        {
            let mut state = this.state();
            for directory in state.directories.values_mut() {
                directory.lose(random);
            }
            for file in state.files.values_mut() {
                file.lose(random);
            }
        }
        this
    }

    /// Changes the bytes of a file, on disk as well.
    pub(super) fn change(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let node = state.find(Path::new(path)).unwrap();
        let file = state.files.get_mut(&node).unwrap();
        change(&mut file.data);
        file.synced = file.data.clone();
    }

    pub(super) fn bytes(&self, path: &str) -> Vec<u8> {
        let state = self.state();
        state.files[&state.find(Path::new(path)).unwrap()].data.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl DirectoryNode {
    fn lose(&mut self, random: &mut Random) {
        let names: BTreeSet<String> = self.entries.keys().chain(self.synced.keys()).cloned().collect();
        for name in names {
            let (now, then) = (self.entries.get(&name).copied(), self.synced.get(&name).copied());
            let kept = if random.flip() { now } else { then };
            match kept {
                Some(node) => self.entries.insert(name, node),
                None => self.entries.remove(&name),
            };
        }
        self.synced = self.entries.clone();
    }
}

impl FileNode {
    fn lose(&mut self, random: &mut Random) {
        let synced = self.synced.len();
        // Files are only appended to.
        let length = synced + random.below(self.data.len() - synced + 1);
        let mut kept = vec![0; length];
        kept[..synced].copy_from_slice(&self.synced);
        for start in (0..length).step_by(BLOCK) {
            let range = start.max(synced)..(start + BLOCK).min(length);
            if range.start < range.end && random.flip() {
                kept[range.clone()].copy_from_slice(&self.data[range]);
            }
        }
        self.data = kept.clone();
        self.synced = kept;
    }
}

impl State {
    fn find(&self, path: &Path) -> io::Result<Node> {
        let mut node = ROOT;
        for component in path.components() {
            if let Component::Normal(name) = component {
                let directory = self.directories.get(&node).ok_or(io::ErrorKind::NotADirectory)?;
                let name = name.to_str().ok_or(io::ErrorKind::InvalidInput)?;
                node = *directory.entries.get(name).ok_or(io::ErrorKind::NotFound)?;
            }
        }
        Ok(node)
    }

    /// Returns the nodes of all names below a directory.
    fn names(&self, directory: Node) -> Vec<Node> {
        let Some(found) = self.directories.get(&directory) else { return Vec::new() };
        found.entries.values().flat_map(|node| [vec![*node], self.names(*node)].concat()).collect()
    }

    fn parent(&mut self, path: &Path) -> io::Result<(&mut DirectoryNode, String)> {
        let node = self.find(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
        let name = path.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidInput)?;
        let directory = self.directories.get_mut(&node).ok_or(io::ErrorKind::NotADirectory)?;
        Ok((directory, name.to_owned()))
    }

    /// Counts an operation. Returns whether only a part of it is done, after which the returned error is reported.
    fn operate(&mut self) -> io::Result<Option<io::Error>> {
        self.alive()?;
        self.operations += 1;
        match self.fault {
            Some(Fault::Death { at }) if self.operations == at => {
                self.is_dead = true;
                Ok(Some(io::Error::other("the power is gone")))
            }
            Some(Fault::Error { at, kind, lasting })
                if self.operations == at || (lasting && self.operations > at) =>
            {
                Ok(Some(kind.into()))
            }
            _ => Ok(None),
        }
    }

    fn alive(&self) -> io::Result<()> {
        if self.is_dead { Err(io::Error::other("the power is gone")) } else { Ok(()) }
    }

    /// Counts an operation that is done as a whole, or not at all.
    fn whole(&mut self) -> io::Result<()> {
        self.operate()?.map_or(Ok(()), Err)
    }

    fn add(&mut self, path: &Path, node: Node) -> io::Result<()> {
        let (directory, name) = self.parent(path)?;
        if directory.entries.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        directory.entries.insert(name, node);
        Ok(())
    }
}

impl Disk for Double {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.whole()?;
        let node = state.next;
        state.next += 1;
        state.directories.insert(node, DirectoryNode::default());
        state.add(path, node)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.whole()?;
        let node = state.next;
        state.next += 1;
        state.files.insert(node, FileNode::default());
        state.add(path, node)?;
        Ok(Box::new(Open { state: Arc::clone(&self.state), node }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        let state = self.state();
        state.alive()?;
        let file = state.files.get(&state.find(path)?).ok_or(io::ErrorKind::IsADirectory)?;
        Ok(Box::new(Cursor::new(file.data.clone())))
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.waits += 1;
        state.whole()?;
        let node = state.find(path)?;
        let file = state.files.get_mut(&node).ok_or(io::ErrorKind::IsADirectory)?;
        file.synced = file.data.clone();
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.waits += 1;
        state.whole()?;
        let node = state.find(path)?;
        let directory = state.directories.get_mut(&node).ok_or(io::ErrorKind::NotADirectory)?;
        directory.synced = directory.entries.clone();
        Ok(())
    }

    fn sync_together(&self, file: &mut dyn DiskFile, directories: &[PathBuf]) -> io::Result<()> {
        let waits = self.waits();
        // The last directory first: any order is allowed.
        let synced = directories.iter().rev().try_for_each(|directory| self.sync_dir(directory));
        let synced = synced.and_then(|()| file.sync());
        self.state().waits = waits + 1;
        synced
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.whole()?;
        let (directory, name) = state.parent(from)?;
        let node = directory.entries.remove(&name).ok_or(io::ErrorKind::NotFound)?;
        let (directory, name) = state.parent(to)?;
        directory.entries.insert(name, node);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(from)?;
        state.whole()?;
        state.add(to, node)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.whole()?;
        let (directory, name) = state.parent(path)?;
        directory.entries.remove(&name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.remove_file(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.alive()?;
        let directory = state.directories.get(&state.find(path)?).ok_or(io::ErrorKind::NotADirectory)?;
        Ok(directory.entries.keys().cloned().collect())
    }

    fn modified(&self, path: &Path) -> io::Result<Timestamp> {
        // Everything is old.
        self.state().find(path).map(|_| Timestamp::from_millis(0))
    }

    fn links(&self, path: &Path) -> io::Result<u64> {
        let state = self.state();
        state.alive()?;
        let node = state.find(path)?;
        Ok(state.names(ROOT).into_iter().filter(|named| *named == node).count() as u64)
    }

    fn lock(&self, path: &Path, text: &str) -> io::Result<Result<Box<dyn DiskLock>, String>> {
        let mut state = self.state();
        if state.refuses_locks {
            return Err(io::Error::other("no locks available"));
        }
        let node = match state.find(path) {
            Ok(node) => node,
            Err(_) => {
                state.whole()?;
                let node = state.next;
                state.next += 1;
                state.files.insert(node, FileNode::default());
                state.add(path, node)?;
                node
            }
        };
        if !state.locked.insert(node) {
            return Ok(Err(state.lock_texts.get(&node).cloned().unwrap_or_default()));
        }
        state.lock_texts.insert(node, text.to_owned());
        Ok(Ok(Box::new(Locked { state: Arc::clone(&self.state), node })))
    }

    fn lock_holder(&self, path: &Path) -> io::Result<Option<String>> {
        let state = self.state();
        let node = state.find(path)?;
        let text = state.lock_texts.get(&node).cloned().unwrap_or_default();
        Ok(state.locked.contains(&node).then_some(text))
    }
}

#[derive(Debug)]
struct Open {
    state: Arc<Mutex<State>>,
    node: Node,
}

impl DiskFile for Open {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let fault = state.operate()?;
        let file = state.files.get_mut(&self.node).unwrap();
        // A write that fails may have written a part.
        let written = if fault.is_some() { &bytes[..bytes.len() / 2] } else { bytes };
        file.data.extend_from_slice(written);
        fault.map_or(Ok(()), Err)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.waits += 1;
        // After a failed sync, the kernel forgets what it could not write: a later one succeeds and keeps nothing of it.
        state.whole()?;
        let file = state.files.get_mut(&self.node).unwrap();
        file.synced = file.data.clone();
        Ok(())
    }
}

#[derive(Debug)]
struct Locked {
    state: Arc<Mutex<State>>,
    node: Node,
}

impl DiskLock for Locked {}

impl Drop for Locked {
    fn drop(&mut self) {
        self.state.lock().unwrap().locked.remove(&self.node);
    }
}
