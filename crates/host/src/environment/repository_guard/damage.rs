//! Damage of a repository: files of its backup that are missing.

use std::io;
use std::path::{Path, PathBuf};

use pintle_env::{BackupSide, LinkedBackup};

use super::pack_index::PackIndex;

/// Largest index of a pack that is read, in bytes: some 16 million objects.
const MAX_INDEX: u64 = 512 << 20;

/// Largest list of packed branches that is read, in bytes.
const MAX_PACKED_REFS: u64 = 64 << 20;

/// Largest `HEAD` that is read, in bytes.
const MAX_HEAD: u64 = 4 << 10;

/// Damage of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepositoryDamage {
    /// Single objects are missing. They may have been unreachable.
    Objects,
    /// Packs are missing.
    Packs,
    /// The branch that is checked out is missing, or all branches or all objects are.
    History,
}

/// Compares a repository with its backup; `None` if nothing is missing that git has not replaced: it moves objects into packs
/// and branches into a list.
///
/// After an error of the file system, something may be missing.
pub(super) fn find_damage(backup: &LinkedBackup) -> io::Result<Option<RepositoryDamage>> {
    let missing = backup.missing()?;
    let root = Path::new("");
    let (kept, found) =
        (backup.names_in(BackupSide::Backup, root)?, backup.names_in(BackupSide::Source, root)?);
    let is_kept = |name: &str| kept.iter().any(|kept| kept == name);
    // Git may remove other entries, and entries of a worktree except its `HEAD`.
    let vital = if is_kept("objects") { &["HEAD", "packed-refs", "refs", "objects"][..] } else { &["HEAD"] };
    if vital.iter().any(|name| is_kept(name) && !found.iter().any(|found| found == name)) {
        return Ok(Some(RepositoryDamage::History));
    }
    if missing.iter().any(|path| path.starts_with("refs/heads")) && !has_branch(backup, &missing)? {
        return Ok(Some(RepositoryDamage::History));
    }
    find_lost_objects(backup, &missing)
}

/// Returns whether a repository has any branch, and the one that is checked out. Git deletes no such branch.
fn has_branch(backup: &LinkedBackup, missing: &[PathBuf]) -> io::Result<bool> {
    let packed = backup.read(BackupSide::Source, Path::new("packed-refs"), MAX_PACKED_REFS)?;
    let packed = packed.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    let head = backup.read(BackupSide::Source, Path::new("HEAD"), MAX_HEAD)?.unwrap_or_default();
    let head = String::from_utf8_lossy(&head);
    if let Some(branch) = head.trim().strip_prefix("ref: ")
        && missing.iter().any(|path| path.as_os_str() == branch)
    {
        return Ok(packed.lines().any(|line| line.split_once(' ').is_some_and(|(_, name)| name == branch)));
    }
    let has_packed = packed.lines().any(|line| line.contains(" refs/heads/"));
    Ok(has_packed || !backup.names_in(BackupSide::Source, Path::new("refs/heads"))?.is_empty())
}

/// Looks for the missing objects in the packs of the repository.
fn find_lost_objects(backup: &LinkedBackup, missing: &[PathBuf]) -> io::Result<Option<RepositoryDamage>> {
    let objects: Vec<&Path> = missing.iter().filter_map(|path| path.strip_prefix("objects").ok()).collect();
    let is_pack = |path: &&Path| {
        path.starts_with("pack") && path.extension().is_some_and(|end| end == "pack" || end == "idx")
    };
    let packs: Vec<&Path> = objects.iter().copied().filter(is_pack).collect();
    let loose: Vec<Vec<u8>> = objects.iter().filter_map(|path| loose_id(path)).collect();
    let Some(length) = loose.first().map(Vec::len).or_else(|| (!packs.is_empty()).then_some(SHA1)) else {
        return Ok(None);
    };
    let known = indexes(backup, length)?;
    let is_packed = |id: &[u8]| known.iter().any(|index| index.contains(id));
    for pack in packs {
        let index = Path::new("objects").join(pack).with_extension("idx");
        let index = backup.read(BackupSide::Backup, &index, MAX_INDEX)?;
        let index = index.and_then(|content| PackIndex::parse(content, length));
        // Without its index, the objects of a pack are unknown.
        if !index.is_some_and(|index| index.ids().all(is_packed)) {
            return Ok(Some(RepositoryDamage::Packs));
        }
    }
    Ok(loose.iter().any(|id| !is_packed(id)).then_some(RepositoryDamage::Objects))
}

/// Bytes of the id of an object in most repositories.
const SHA1: usize = 20;

/// Returns the id of a loose object, by its path below the directory of objects.
fn loose_id(path: &Path) -> Option<Vec<u8>> {
    let text = path.to_str()?;
    let (directory, rest) = text.split_once('/').filter(|(directory, _)| directory.len() == 2)?;
    let digits = format!("{directory}{rest}");
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Reads the indexes of the packs of a repository. Without its pack, an index has nothing.
fn indexes(backup: &LinkedBackup, length: usize) -> io::Result<Vec<PackIndex>> {
    let directory = Path::new("objects/pack");
    let names = backup.names_in(BackupSide::Source, directory)?;
    let mut indexes = Vec::new();
    for name in &names {
        let path = directory.join(name);
        let has_pack = path.extension().is_some_and(|end| end == "idx")
            && path
                .with_extension("pack")
                .file_name()
                .is_some_and(|pack| names.iter().any(|name| name == pack));
        if !has_pack {
            continue;
        }
        let content = backup.read(BackupSide::Source, &path, MAX_INDEX)?;
        indexes.extend(content.and_then(|content| PackIndex::parse(content, length)));
    }
    Ok(indexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_loose_objects_are_their_paths() {
        for (path, expected) in [
            ("ab/cdef01", Some(&[0xab, 0xcd, 0xef, 0x01][..])),
            ("pack/pack-1.pack", None),
            ("info/packs", None),
            ("zz/00", None),
            ("ab/c", None),
            ("ab", None),
        ] {
            assert_eq!(loose_id(Path::new(path)).as_deref(), expected, "{path}");
        }
    }
}
