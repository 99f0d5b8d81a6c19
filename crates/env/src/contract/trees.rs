//! Contract of trees: walks, reads of many files, directories, links and modes.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{CheckResult, Subject, equals, fails, holds, is_not_a_directory, is_not_found, succeeds};
use crate::{
    error::EnvError,
    walk::{EntryKind, FileContent, ReadLimits, WalkLimit, WalkOutput, WalkRequest},
};

/// The walked tree, and the path of each file that a walk finds.
const FILES: [(&str, bool); 13] = [
    (".git/config", false),
    (".git/info/exclude", false),
    (".gitignore", true),
    (".hidden/file", true),
    (".ignore", true),
    ("build/out", false),
    ("excluded", false),
    ("keep.log", true),
    ("nested/.git/HEAD", false),
    ("nested/x.log", true),
    ("private/file", false),
    ("src/build/in", true),
    ("x.log", false),
];

/// Names that break careless quoting and parsing.
const HOSTILE: [&[u8]; 6] = [b"-rf", b" a  b ", b"two\nlines", b"end//\n", b"$(id)'\"\\", b"\xff\xfe"];

/// Checks trees.
pub(super) async fn trees(subject: Subject<'_>) -> CheckResult {
    let subject = Subject { root: &subject.path("trees"), ..subject };
    directories(subject).await?;
    walks(subject).await?;
    limits(subject).await?;
    many_files(subject).await?;
    links(subject).await?;
    modes(subject).await
}

async fn directories(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    let path = subject.path("directories/a/b");
    for _ in 0..2 {
        succeeds("a directory is created with its parents, once", env.create_directory(&path).await)?;
        let metadata = succeeds("a created directory has metadata", env.metadata(&path).await)?;
        holds("a created directory is one", metadata.is_dir(), metadata)?;
    }
    let listed = succeeds("a created directory is listed", env.list(&path).await)?;
    equals("a created directory is empty", listed.len(), 0_usize)?;
    subject.write("directories/file", "x").await?;
    for name in ["directories/file", "directories/file/below"] {
        let created = env.create_directory(&subject.path(name)).await;
        fails("no directory replaces a file", created, is_not_a_directory)?;
    }
    Ok(())
}

async fn walk(subject: Subject<'_>, request: &WalkRequest) -> CheckResult<WalkOutput> {
    succeeds("a tree is walked", subject.env.walk(request).await)
}

async fn walks(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    let root = subject.path("walked");
    for (name, _) in FILES {
        let content = match name {
            ".gitignore" => "*.log\n/build/\n!keep.log\n",
            ".ignore" => "private/\n",
            ".git/info/exclude" => "excluded\n",
            _ => "four",
        };
        subject.write(&format!("walked/{name}"), content).await?;
    }
    let output = walk(subject, &WalkRequest::new(&root)).await?;
    holds("a walk within its limits is complete", output.is_complete(), &output)?;
    let files: Vec<_> = output.entries.iter().filter(|entry| entry.kind == EntryKind::File).collect();
    let paths: Vec<_> = files.iter().map(|entry| entry.path.as_path()).collect();
    let expected: Vec<_> =
        FILES.iter().filter(|(_, found)| *found).map(|(name, _)| Path::new(name)).collect();
    equals("a walk finds what is not ignored, sorted", paths, expected)?;
    equals(
        "a walk names what is ignored, without what is below it",
        output.ignored.iter().map(PathBuf::as_path).collect::<Vec<_>>(),
        ["build", "excluded", "private", "x.log"].map(Path::new).to_vec(),
    )?;
    let directories = output.entries.iter().filter(|entry| entry.kind == EntryKind::Directory);
    let directories: Vec<_> = directories.map(|entry| entry.path.as_path()).collect();
    equals(
        "a walk finds directories that are not ignored",
        directories,
        [".hidden", "nested", "src", "src/build"].map(Path::new).to_vec(),
    )?;
    for entry in files {
        let metadata = succeeds("a file has metadata", env.metadata(&root.join(&entry.path)).await)?;
        let expected = (metadata.len, metadata.mode, metadata.identity);
        equals("a walk has metadata", (entry.size, entry.mode, entry.identity), expected)?;
    }
    for name in HOSTILE {
        let path = subject.path("names").join(OsStr::from_bytes(name));
        succeeds("any name can be written", env.write(&path, name).await)?;
    }
    let named = walk(subject, &WalkRequest::new(subject.path("names"))).await?;
    let mut expected: Vec<PathBuf> = Vec::new();
    for name in HOSTILE {
        // A name cannot contain a slash.
        expected.extend(Path::new(OsStr::from_bytes(name)).ancestors().map(Path::to_path_buf));
    }
    expected.retain(|path| !path.as_os_str().is_empty());
    expected.sort();
    let paths: Vec<_> = named.entries.into_iter().map(|entry| entry.path).collect();
    equals("a walk finds any name", paths, expected)?;
    let relative = root.strip_prefix(env.working_directory()).unwrap_or(&root);
    let again = walk(subject, &WalkRequest::new(relative)).await?;
    equals("a relative path starts at the working directory", again.entries, output.entries)?;
    fails(
        "a missing directory is not walked",
        env.walk(&WalkRequest::new(subject.path("gone"))).await,
        is_not_found,
    )?;
    let file = env.walk(&WalkRequest::new(root.join("keep.log"))).await;
    fails("a file is not walked", file, is_not_a_directory)
}

async fn limits(subject: Subject<'_>) -> CheckResult {
    let request = WalkRequest::new(subject.path("walked"));
    let few = walk(subject, &request.clone().with_max_entries(3)).await?;
    equals(
        "a walk ends at its limit of entries",
        (few.entries.len(), few.reached),
        (3, Some(WalkLimit::Entries)),
    )?;
    let all = walk(subject, &request).await?;
    let exact = walk(subject, &request.clone().with_max_entries(all.entries.len())).await?;
    equals("a walk that just fits is complete", exact.reached, None)?;
    let late = walk(subject, &request.with_time_limit(Duration::ZERO)).await?;
    // The start times are not compared: the second walk may start a second later.
    let is_said = late.reached == Some(WalkLimit::Time) || late.entries == all.entries;
    holds("a walk that ends at its limit of time says so", is_said, &late)?;
    let known = late.entries.iter().all(|entry| all.entries.iter().any(|other| other.path == entry.path));
    holds("a walk that ends early finds nothing that is ignored", known, late)
}

async fn many_files(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    for (name, content) in [("many/a", "1234"), ("many/b\nc", ""), ("many/long", "123456"), ("many/z", "z")] {
        subject.write(name, content).await?;
    }
    let bytes = |content: &str| FileContent::Bytes(content.into());
    let (missing, none) = (FileContent::Missing, FileContent::NotAFile);
    for (names, limits, expected) in [
        (vec!["a", "b\nc", "z"], (9, 99), vec![bytes("1234"), bytes(""), bytes("z")]),
        (
            vec!["z", "long", "a", "long"],
            (5, 99),
            vec![bytes("z"), FileContent::TooLarge, bytes("1234"), FileContent::TooLarge],
        ),
        (vec!["a", "gone", "gone/x", ""], (9, 99), vec![bytes("1234"), missing.clone(), missing, none]),
        (vec!["a", "long"], (9, 9), vec![bytes("1234"), FileContent::Skipped]),
        (vec!["long", "a"], (9, 1), vec![bytes("123456"), FileContent::Skipped]),
        (vec!["long", "a"], (9, 10), vec![bytes("123456"), bytes("1234")]),
        (vec![], (9, 9), vec![]),
    ] {
        let paths: Vec<_> = names.iter().map(|name| subject.path("many").join(name)).collect();
        let read = env.read_many(&paths, ReadLimits::new(limits.0, limits.1)).await;
        let read = succeeds("many files are read", read)?;
        equals(&format!("{names:?} are read within {limits:?}"), read, expected)?;
    }
    let zero = env.read_many(&[PathBuf::from("a\0b"), subject.path("many/z")], ReadLimits::new(9, 9)).await;
    let zero = succeeds("an invalid path is no error", zero)?;
    equals("an invalid path is unreadable", zero, vec![FileContent::Unreadable, bytes("z")])
}

/// Only for environments that create links.
async fn links(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    let hostile = Path::new(OsStr::from_bytes(b"-no\nwhere//\n\xff"));
    let link = subject.path("links/below/broken");
    match env.create_symlink(&link, hostile).await {
        Err(EnvError::Unsupported { .. }) => return Ok(()),
        created => succeeds("a link is created with parents", created)?,
    }
    subject.write("links/target/file", "content").await?;
    for (name, target) in [("file", "target/file"), ("directory", "target")] {
        let created = env.create_symlink(&subject.path("links").join(name), Path::new(target)).await;
        succeeds("a link is created", created)?;
    }
    let read = succeeds("a link is followed", env.read(&subject.path("links/file"), None).await)?;
    equals("a link is followed", read.as_slice(), b"content".as_slice())?;
    let again = env.create_symlink(&subject.path("links/file"), Path::new("other")).await;
    fails("a link replaces nothing", again, |error| matches!(error, EnvError::Io { .. }))?;
    let output = walk(subject, &WalkRequest::new(subject.path("links"))).await?;
    let found = output.entries.iter().filter(|entry| entry.kind == EntryKind::Symlink);
    let found: Vec<_> = found.map(|entry| (entry.path.as_path(), entry.target.as_deref())).collect();
    let expected = [
        (Path::new("below/broken"), Some(hostile)),
        (Path::new("directory"), Some(Path::new("target"))),
        (Path::new("file"), Some(Path::new("target/file"))),
    ];
    equals("a walk has links with their targets and does not follow them", found, expected.to_vec())?;
    let paths = ["links/file", "links/directory", "links/target/file"].map(|name| subject.path(name));
    let read = succeeds("many files are read", env.read_many(&paths, ReadLimits::new(99, 99)).await)?;
    let expected = [FileContent::NotAFile, FileContent::NotAFile, FileContent::Bytes(b"content".to_vec())];
    equals("no link is followed among many files", read, expected.to_vec())?;
    let linked = walk(subject, &WalkRequest::new(subject.path("links/directory"))).await?;
    equals("a root that is a link is followed", linked.entries.len(), 1_usize)
}

/// Only for environments with permission bits that can be set.
async fn modes(subject: Subject<'_>) -> CheckResult {
    let env = subject.env;
    let file = subject.path("modes/file");
    subject.write("modes/file", "x").await?;
    for mode in [0o755, 0o600, 0o444] {
        match env.set_mode(&file, mode).await {
            Err(EnvError::Unsupported { .. }) => return Ok(()),
            set => succeeds("the mode of a file is set", set)?,
        }
        let metadata = succeeds("a file has metadata", env.metadata(&file).await)?;
        equals("a file has the mode that was set", metadata.mode, Some(mode))?;
    }
    let written = env.write(&file, b"y").await;
    let is_read_only = |error: &EnvError| matches!(error, EnvError::ReadOnlyFile { mode: 0o444, .. });
    fails("a read-only file is not written", written, is_read_only)?;
    let read = succeeds("a file is read", env.read(&file, None).await)?;
    equals("a mode does not change the content", read.as_slice(), b"x".as_slice())?;
    for mode in [0o1777, 0o700] {
        succeeds("the mode of a directory is set", env.set_mode(&subject.path("modes"), mode).await)?;
        let metadata = succeeds("a directory has metadata", env.metadata(&subject.path("modes")).await)?;
        equals("a directory has the mode that was set", metadata.mode, Some(mode))?;
    }
    fails("a missing file has no mode", env.set_mode(&subject.path("gone"), 0o600).await, is_not_found)
}
