//! Contract of files.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use super::{
    CheckResult, Subject, equals, fails, holds, is_a_directory, is_not_a_directory, is_not_found, succeeds,
    trees::trees,
};
use crate::{
    environment::{ExecutionEnvironment, ExecutionEnvironmentExt as _},
    error::EnvError,
    file::DirEntry,
};

/// Names that break careless quoting.
const HOSTILE: [&[u8]; 9] = [
    b"a b",
    b"-rf",
    b"$(touch x)",
    b"`id`",
    b"*?[a]",
    b"it's \"quoted\"",
    b"two\nlines",
    b"\\back\\slash",
    b"\xff\xfe",
];

/// Checks files: bytes, lines, names, directories, errors, and trees.
///
/// # Errors
///
/// The first violated rule.
pub async fn files(env: &dyn ExecutionEnvironment, root: &Path) -> Result<(), super::ContractViolation> {
    let subject = Subject { env, root };
    bytes(subject).await?;
    lines(subject).await?;
    names(subject).await?;
    listings(subject).await?;
    changes(subject).await?;
    errors(subject).await?;
    canonical_paths(subject).await?;
    let place = succeeds("a place has an identity", env.place().await)?;
    equals("a place has one identity", &succeeds("a place has an identity", env.place().await)?, &place)?;
    trees(subject).await
}

/// Only for environments that resolve links; others cannot be confined.
async fn canonical_paths(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    subject.write("canonical/file", "x").await?;
    let canonical = match env.canonicalize(&subject.path("canonical/file")).await {
        Err(EnvError::Unsupported { .. }) => return Ok(()),
        canonical => succeeds("a path is made canonical", canonical)?,
    };
    holds("a canonical path is absolute", canonical.is_absolute(), &canonical)?;
    let read = succeeds("a canonical path names the same file", env.read(&canonical, None).await)?;
    equals("a canonical path names the same file", read.as_slice(), b"x".as_slice())?;
    let again = succeeds("a canonical path is canonical", env.canonicalize(&canonical).await)?;
    equals("a canonical path is canonical", &again, &canonical)?;
    let missing = env.canonicalize(&subject.path("canonical/new/../newer/file")).await;
    let missing = succeeds("missing components are appended", missing)?;
    let expected = canonical.with_file_name("newer").join("file");
    equals("missing components are appended", missing, expected)?;
    let below = env.canonicalize(&subject.path("canonical/file/below")).await;
    fails("no path exists below a file", below, is_not_a_directory)?;
    let paths = ["canonical/file/below", "canonical/file", "canonical/newer/file"];
    let many = env.canonicalize_many(&paths.map(|name| subject.path(name))).await;
    let many = succeeds("several paths are made canonical", many)?;
    equals("each path has a result", many.len(), paths.len())?;
    for (name, result) in paths.iter().zip(many) {
        let single = env.canonicalize(&subject.path(name)).await;
        let (result, single) =
            (result.map_err(|error| error.to_string()), single.map_err(|error| error.to_string()));
        equals("a path is resolved alone as with others", result, single)?;
    }
    Ok(())
}

async fn bytes(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    let path = subject.path("deep/below/bytes");
    let content: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    succeeds("a write creates parents", env.write(&path, &content).await)?;
    let read = succeeds("a written file is read", env.read(&path, None).await)?;
    holds("bytes are read unchanged", read == content, read.len())?;
    let far = i64::MAX as u64;
    for (from, to, len) in [
        (0, 10, 10),
        (99_990, 100_010, 10),
        (99_990, u64::MAX, 10),
        (200_000, 200_001, 0),
        (far - 1, far + 1, 0),
        (u64::MAX - 1, u64::MAX, 0),
        (5, 5, 0),
        (6, 5, 0),
    ] {
        let part = succeeds("a range is read", env.read(&path, Some(from..to)).await)?;
        equals("a range returns the available bytes", part.len(), len)?;
        let expected = content.iter().skip(from as usize).take(len);
        holds("a range returns the right bytes", part.iter().eq(expected), from)?;
    }
    succeeds("a write replaces", env.write(&path, b"short").await)?;
    let metadata = succeeds("a file has metadata", env.metadata(&path).await)?;
    equals("a write replaces the complete content", metadata.len, 5_u64)?;
    if let Some(identity) = metadata.identity {
        let again = succeeds("a file has metadata", env.metadata(&path).await)?;
        equals("an untouched file keeps its identity", again.identity, Some(identity))?;
        succeeds("a write replaces", env.write(&path, b"short").await)?;
        let replaced = succeeds("a file has metadata", env.metadata(&path).await)?;
        holds("a replaced file has another identity", replaced.identity != Some(identity), identity)?;
    }
    holds("a file is a file", metadata.is_file(), metadata)
}

async fn lines(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    let path = subject.path("lines");
    let text = "\u{feff}one\r\ntwo\n\nfour ä";
    succeeds("text is written", env.write_file(&path, text).await)?;
    for (offset, limit, expected) in [
        (None, None, text),
        (Some(0), Some(1), "\u{feff}one\r\n"),
        (Some(2), None, "two\n\nfour ä"),
        (Some(2), Some(2), "two\n\n"),
        (Some(4), Some(9), "four ä"),
        (Some(5), None, ""),
        (None, Some(0), ""),
    ] {
        let read = succeeds("lines are read", env.read_file(&path, offset, limit).await)?;
        equals("lines are returned unchanged, from a 1-based offset", read.as_str(), expected)?;
    }
    succeeds("bytes are written", env.write(&path, b"a\xffb\n").await)?;
    let read = succeeds("text that is not UTF-8 is read", env.read_file(&path, None, None).await)?;
    equals("invalid UTF-8 is replaced", read.as_str(), "a\u{fffd}b\n")?;
    succeeds("bytes are written", env.write(&path, b"a\n\0b\n").await)?;
    let read = env.read_file(&path, None, None).await;
    fails("a binary file is not text", read, |error| matches!(error, EnvError::NotText { offset: 2, .. }))
}

async fn names(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    for name in HOSTILE {
        let path = subject.path("names").join(OsStr::from_bytes(name));
        succeeds("any name can be written", env.write(&path, name).await)?;
        let read = succeeds("any name can be read", env.read(&path, None).await)?;
        equals("names are not mixed up", read.as_slice(), name)?;
    }
    let listed = succeeds("any name can be listed", env.list(&subject.path("names")).await)?;
    let mut expected = HOSTILE.map(OsStr::from_bytes);
    expected.sort();
    let listed: Vec<_> = listed.iter().map(|entry| entry.name.as_os_str()).collect();
    equals("a listing is sorted by the bytes of the names", listed, expected.to_vec())?;
    let zero = env.read(Path::new("a\0b"), None).await;
    fails("a path with a zero byte is invalid", zero, |error| matches!(error, EnvError::InvalidPath { .. }))
}

async fn listings(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    for name in ["tree/b/c/deep", "tree/b/x", "tree/a", "tree/.hidden"] {
        subject.write(name, "1234").await?;
    }
    let shallow = [DirEntry::file(".hidden", 4), DirEntry::file("a", 4), DirEntry::directory("b")];
    let deeper = [DirEntry::directory("b/c"), DirEntry::file("b/x", 4)];
    let tree = subject.path("tree");
    for (depth, expected) in
        [(0, shallow.to_vec()), (1, shallow.to_vec()), (2, [shallow.as_slice(), deeper.as_slice()].concat())]
    {
        let listed = succeeds("a tree is listed", env.list_directory(&tree, depth).await)?;
        equals("a listing goes down to its depth, parents first", listed, expected)?;
    }
    let all = succeeds("a tree is listed", env.list_directory(&tree, 9).await)?;
    equals("a listing ends where the tree ends", all.len(), 6_usize)
}

async fn changes(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    let (from, to) = (subject.path("from"), subject.path("new/place/to"));
    subject.write("from", "content").await?;
    succeeds("a file is renamed into a new directory", env.rename(&from, &to).await)?;
    for (path, expected) in [(&from, false), (&to, true)] {
        let exists = succeeds("existence is known", env.file_exists(path).await)?;
        equals("a rename moves", exists, expected)?;
    }
    subject.write("from", "other").await?;
    succeeds("a rename replaces", env.rename(&from, &to).await)?;
    let read = succeeds("a renamed file is read", env.read(&to, None).await)?;
    equals("a rename keeps the content", read.as_slice(), b"other".as_slice())?;
    succeeds("a file is removed", env.remove(&to).await)?;
    let exists = succeeds("existence is known", env.file_exists(&to).await)?;
    equals("a removed file is gone", exists, false)?;
    removed_directories(subject).await
}

async fn removed_directories(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    subject.write("outer/inner/file", "x").await?;
    let (outer, inner, file) =
        (subject.path("outer"), subject.path("outer/inner"), subject.path("outer/inner/file"));
    for full in [&outer, &inner] {
        let removed = env.remove(full).await;
        fails("a directory that is not empty cannot be removed", removed, is_a_directory)?;
    }
    let read = succeeds("a file below it is read", env.read(&file, None).await)?;
    equals("a directory that is not removed keeps its entries", read.as_slice(), b"x".as_slice())?;
    for (gone, above) in [(&file, &inner), (&inner, &outer)] {
        succeeds("a file and an empty directory are removed", env.remove(gone).await)?;
        fails("a removed file has no metadata", env.metadata(gone).await, is_not_found)?;
        let metadata = succeeds("the parent directory has metadata", env.metadata(above).await)?;
        holds("the parent directory is kept", metadata.is_dir(), metadata)?;
    }
    Ok(())
}

async fn errors(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    subject.write("file", "x").await?;
    let (file, gone, root) = (subject.path("file"), subject.path("gone"), subject.root);
    let below = subject.path("file/below");
    fails("a missing file is not read", env.read(&gone, None).await, is_not_found)?;
    fails("a missing file has no metadata", env.metadata(&gone).await, is_not_found)?;
    fails("a missing file is not removed", env.remove(&gone).await, is_not_found)?;
    fails("a missing directory is not listed", env.list(&gone).await, is_not_found)?;
    let to = subject.path("untouched/to");
    fails("a missing file is not renamed", env.rename(&gone, &to).await, is_not_found)?;
    let exists = succeeds("existence is known", env.file_exists(&subject.path("untouched")).await)?;
    equals("a failed rename leaves nothing", exists, false)?;
    fails("a directory is not read", env.read(root, None).await, is_a_directory)?;
    fails("a directory is not written", env.write(root, b"").await, is_a_directory)?;
    fails("a directory is not replaced", env.rename(&file, root).await, is_a_directory)?;
    fails("a file is not listed", env.list(&file).await, is_not_a_directory)?;
    fails("no path can be read below a file", env.read(&below, None).await, is_not_a_directory)?;
    fails("no file can be written below a file", env.write(&below, b"").await, is_not_a_directory)?;
    let exists = succeeds("existence below a file is known", env.file_exists(&below).await)?;
    equals("nothing exists below a file", exists, false)
}
