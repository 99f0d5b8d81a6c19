//! A file tree in memory.

use std::{
    collections::BTreeMap,
    ops::Bound,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    error::EnvError,
    file::{DirEntry, FileKind, Metadata},
};

/// Permission bits of all files and directories.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// Files and directories by absolute path. The root always exists.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
    /// Time of the last change, in seconds since the epoch.
    clock: u64,
}

#[derive(Clone, Debug)]
enum Node {
    Directory { mode: u32 },
    File { content: Vec<u8>, modified: u64, mode: u32 },
}

/// A newly created directory.
const NEW_DIRECTORY: Node = Node::Directory { mode: DIRECTORY_MODE };

impl Tree {
    /// Adds a file, replacing whatever is in the way.
    pub(super) fn put_file(&mut self, path: &Path, content: Vec<u8>) {
        if let Some(parent) = path.parent() {
            self.put_ancestors(parent);
        }
        self.remove_tree(path);
        self.insert_file(path, content);
    }

    /// Adds an empty directory, replacing whatever is in the way.
    pub(super) fn put_directory(&mut self, path: &Path) {
        self.remove_tree(path);
        self.put_ancestors(path);
    }

    pub(super) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = self.nodes.iter().filter_map(|(path, node)| match node {
            Node::File { content, .. } => Some((path.clone(), content.clone())),
            Node::Directory { .. } => None,
        });
        files.collect()
    }

    pub(super) fn read(&self, path: &Path) -> Result<Vec<u8>, EnvError> {
        match self.node(path)? {
            Node::File { content, .. } => Ok(content.clone()),
            Node::Directory { .. } => Err(is_a_directory(path)),
        }
    }

    pub(super) fn write(&mut self, path: &Path, content: Vec<u8>) -> Result<(), EnvError> {
        self.expect_no_directory(path)?;
        if let Some(mode) = self.metadata(path).ok().and_then(|metadata| metadata.read_only_mode()) {
            return Err(EnvError::ReadOnlyFile { path: path.to_path_buf(), mode });
        }
        self.create_parents(path)?;
        self.insert_file(path, content);
        Ok(())
    }

    pub(super) fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        Ok(match self.node(path)? {
            Node::Directory { mode } => Metadata::new(FileKind::Directory, 0).with_mode(*mode),
            Node::File { content, modified, mode } => {
                let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(*modified);
                Metadata::new(FileKind::File, content.len() as u64)
                    .with_modified(Some(modified))
                    .with_mode(*mode)
            }
        })
    }

    pub(super) fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        if let Node::File { .. } = self.node(path)? {
            return Err(not_a_directory(path));
        }
        let children = self.below(path).filter(|(below, _)| below.parent() == Some(path));
        let entries = children.filter_map(|(below, node)| {
            let name = below.file_name()?;
            Some(match node {
                Node::Directory { .. } => DirEntry::directory(name),
                Node::File { content, .. } => DirEntry::file(name, content.len() as u64),
            })
        });
        Ok(entries.collect())
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<(), EnvError> {
        let is_empty = match self.node(path)? {
            Node::Directory { .. } => path.parent().is_some() && self.below(path).count() == 1,
            Node::File { .. } => true,
        };
        if !is_empty {
            return Err(is_a_directory(path));
        }
        self.nodes.remove(path);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.node(from)?;
        self.expect_no_directory(to)?;
        self.create_parents(to)?;
        let moved: Vec<_> = self.below(from).map(|(path, _)| path.clone()).collect();
        for path in moved {
            if let (Some(node), Ok(rest)) = (self.nodes.remove(&path), path.strip_prefix(from)) {
                // Joining an empty path would append a slash.
                let target = if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) };
                self.nodes.insert(target, node);
            }
        }
        Ok(())
    }

    pub(super) fn create_directory(&mut self, path: &Path) -> Result<(), EnvError> {
        if path.ancestors().any(|above| self.is_file(above)) {
            return Err(not_a_directory(path));
        }
        self.put_ancestors(path);
        Ok(())
    }

    pub(super) fn set_mode(&mut self, path: &Path, new: u32) -> Result<(), EnvError> {
        self.node(path)?;
        match self.nodes.get_mut(path) {
            Some(Node::Directory { mode } | Node::File { mode, .. }) => *mode = new & 0o7777,
            None => {}
        }
        Ok(())
    }

    /// Returns the node at a path, with the errors of a file system for an invalid path.
    fn node(&self, path: &Path) -> Result<&Node, EnvError> {
        if path.parent().is_none() {
            return Ok(&NEW_DIRECTORY);
        }
        if let Some(node) = self.nodes.get(path) {
            return Ok(node);
        }
        let blocked = path.ancestors().any(|above| self.is_file(above));
        Err(if blocked { not_a_directory(path) } else { EnvError::not_found(path) })
    }

    fn is_file(&self, path: &Path) -> bool {
        matches!(self.nodes.get(path), Some(Node::File { .. }))
    }

    /// Returns the node itself and all nodes below it, sorted by path.
    fn below(&self, path: &Path) -> impl Iterator<Item = (&PathBuf, &Node)> {
        let from = (Bound::Included(path), Bound::Unbounded);
        self.nodes.range::<Path, _>(from).take_while(move |(below, _)| below.starts_with(path))
    }

    fn insert_file(&mut self, path: &Path, content: Vec<u8>) {
        self.clock += 1;
        let modified = self.clock;
        let mode = match self.nodes.get(path) {
            Some(Node::File { mode, .. }) => *mode,
            Some(Node::Directory { .. }) | None => FILE_MODE,
        };
        self.nodes.insert(path.to_path_buf(), Node::File { content, modified, mode });
    }

    fn create_parents(&mut self, path: &Path) -> Result<(), EnvError> {
        let Some(parent) = path.parent() else {
            return Err(is_a_directory(path));
        };
        if let Some(file) = parent.ancestors().find(|above| self.is_file(above)) {
            return Err(not_a_directory(file));
        }
        self.put_ancestors(parent);
        Ok(())
    }

    /// Makes the path and all its ancestors directories.
    fn put_ancestors(&mut self, path: &Path) {
        for above in path.ancestors().filter(|above| above.parent().is_some()) {
            let node = self.nodes.entry(above.to_path_buf()).or_insert(NEW_DIRECTORY);
            if let Node::File { .. } = node {
                *node = NEW_DIRECTORY;
            }
        }
    }

    fn remove_tree(&mut self, path: &Path) {
        self.nodes.retain(|below, _| !below.starts_with(path));
    }

    fn expect_no_directory(&self, path: &Path) -> Result<(), EnvError> {
        match self.node(path) {
            Ok(Node::Directory { .. }) => Err(is_a_directory(path)),
            Ok(Node::File { .. }) | Err(_) => Ok(()),
        }
    }
}

fn is_a_directory(path: &Path) -> EnvError {
    EnvError::IsADirectory { path: path.to_path_buf() }
}

fn not_a_directory(path: &Path) -> EnvError {
    EnvError::NotADirectory { path: path.to_path_buf() }
}
