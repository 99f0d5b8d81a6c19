//! Searches the same tree locally and through a remote environment that sees it at the same path.
#![expect(clippy::disallowed_methods, reason = "the tests prepare the remote files")]

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
};

use pintle_test_conditions::{cases, is_full};

use crate::{
    EntryKind, ExecutionEnvironment, ExecutionEnvironmentExt as _, GlobRequest, GrepMode, GrepRequest,
    LocalEnvironment, ReadLimits, SearchScope, WalkEntry, WalkOutput, WalkRequest,
};

/// Creates a tree with every case that a search handles specially.
pub(crate) fn fill(root: &Path) {
    let files: [(&[u8], &[u8]); 24] = [
        (b".git/info/exclude", b"excluded.txt\n"),
        (b".git/config", b"needle\n"),
        (b".gitignore", b"*.log\n/build/\n!keep.log\n"),
        (b".ignore", b"private/\n"),
        (b".hidden/x.txt", b"needle\n"),
        (b"a.log", b"needle\n"),
        (b"keep.log", b"needle\n"),
        (b"excluded.txt", b"needle\n"),
        (b"private/x.txt", b"needle\n"),
        (b"build/out.txt", b"needle\n"),
        (b"src/build/in.txt", b"needle\nno\nNeedle\n"),
        (b"src/.gitignore", b"local.txt\n"),
        (b"src/local.txt", b"needle\n"),
        (b"src/bin.dat", b"needle\0\n"),
        (b"src/zero.dat", b"nothing\0here\n"),
        (b"src/wide.txt", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0"),
        (b"src/nested/.git/HEAD", b"needle\n"),
        (b"src/nested/x.log", b"needle\n"),
        (b"names/two\nlines", b"needle\n"),
        (b"names/-rf", b"needle\n"),
        (b"names/it's \"$(id)\" *", b"needle\n"),
        (b"names/\xff\xfe", b"needle \xff\n"),
        (b"names/ end ", b"fn needle(x) {}\r\n"),
        (b"names/empty", b""),
    ];
    for (name, content) in files {
        let path = root.join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    symlink("keep.log", root.join("link.txt")).unwrap();
    symlink("nowhere", root.join("broken.txt")).unwrap();
    symlink("src", root.join("directory.txt")).unwrap();
    // More than a search returns by default.
    for number in 0..cases(120, 300) {
        fs::create_dir_all(root.join("many")).unwrap();
        fs::write(root.join(format!("many/{number:04}")), format!("line\nneedle {number}\n")).unwrap();
    }
}

/// Compares local and remote searches of a tree created by [`fill`]. The remote environment works
/// in `root`.
pub(crate) async fn searches_find_the_same(remote: &dyn ExecutionEnvironment, root: &Path) {
    let local = LocalEnvironment::builder(root).build().unwrap();
    for request in requests() {
        let (local_result, remote_result) =
            (local.grep(&request).await.unwrap(), remote.grep(&request).await.unwrap());
        assert_eq!(local_result, remote_result, "{request:?}");
    }
    for (pattern, path) in
        [("**", ""), ("*.txt", ""), ("**/*", "names"), ("src/*/*.txt", ""), ("**", "src/nested")]
    {
        let (mut local_result, mut remote_result) = (
            local.glob(pattern, Path::new(path)).await.unwrap(),
            remote.glob(pattern, Path::new(path)).await.unwrap(),
        );
        // busybox reports whole seconds, so files of the same second are sorted by path.
        local_result.sort();
        remote_result.sort();
        assert_eq!(local_result, remote_result, "{pattern} {path}");
    }
    for (hidden, ignored) in [(false, false), (true, true), (false, true)] {
        let scope = SearchScope::default().with_hidden(hidden).with_ignored(ignored);
        let request = GlobRequest::new("**").with_scope(scope);
        let (mut local_result, mut remote_result) =
            (local.find_files(&request).await.unwrap(), remote.find_files(&request).await.unwrap());
        local_result.sort();
        remote_result.sort();
        assert_eq!(local_result, remote_result, "{request:?}");
        let request = GrepRequest::new("needle").with_scope(scope).with_max_results(1000);
        let (local_result, remote_result) =
            (local.grep(&request).await.unwrap(), remote.grep(&request).await.unwrap());
        assert_eq!(local_result, remote_result, "{request:?}");
    }
    let (local_result, remote_result) = (
        local.list_directory(Path::new(""), 9).await.unwrap(),
        remote.list_directory(Path::new(""), 9).await.unwrap(),
    );
    assert_eq!(local_result, remote_result);
}

/// Compares local, remote and portable walks of a tree created by [`fill`]. The remote environment works in `root`.
pub(crate) async fn walks_find_the_same(remote: &dyn ExecutionEnvironment, root: &Path) {
    let local = LocalEnvironment::builder(root).build().unwrap();
    let comparable = |output: WalkOutput| {
        assert!(output.is_complete(), "{output:?}");
        let entries = output.entries.into_iter();
        let entry = |entry: WalkEntry| {
            let mode = entry.mode.filter(|_| entry.kind != EntryKind::Symlink);
            (
                entry.path,
                entry.kind,
                mode,
                entry.size,
                entry.target,
                entry.identity.map(|identity| identity.inode),
            )
        };
        entries.map(entry).collect::<Vec<_>>()
    };
    for path in ["", "src", "src/nested", "names", "directory.txt", "build"] {
        let request = WalkRequest::new(path);
        let (here, there) = (local.walk(&request).await.unwrap(), remote.walk(&request).await.unwrap());
        assert!(here.started_ns.is_some() && there.started_ns.is_some());
        assert_eq!(here.ignored, there.ignored, "{path}");
        let ignored = here.ignored.clone();
        let here = comparable(here);
        assert_eq!(here, comparable(there), "{path}");
        let files = here.iter().filter(|entry| entry.1 == EntryKind::File);
        let files: Vec<_> = files.map(|entry| root.join(path).join(&entry.0)).collect();
        for total in [1_000, 1_000_000] {
            let limits = ReadLimits::new(100, total);
            let read = local.read_many(&files, limits).await.unwrap();
            assert_eq!(read, remote.read_many(&files, limits).await.unwrap(), "{path} {total}");
            // The primitives take too long for all files, and in a container a process of the engine for each.
            if !path.is_empty() && (is_full() || total == 1_000) {
                let portable = crate::environment::walk::read_many(remote, &files, limits).await.unwrap();
                assert_eq!(read, portable, "{path} {total}");
            }
        }
        if path.is_empty() {
            continue;
        }
        let portable = crate::environment::search::walk_tree(remote, &request).await.unwrap();
        assert_eq!(ignored, portable.ignored, "{path}");
        let mut portable = comparable(portable);
        for (portable, known) in
            portable.iter_mut().zip(&here).filter(|(_, known)| known.1 == EntryKind::Symlink)
        {
            // The primitives do not look at links themselves.
            portable.2 = None;
            portable.4.clone_from(&known.4);
            portable.5 = known.5;
        }
        assert_eq!(here, portable, "{path}");
    }
}

/// Every pattern in the whole tree, and one pattern in every path: with `--full` in all modes, otherwise each in one mode.
fn requests() -> Vec<GrepRequest> {
    let patterns = ["needle", "NEEDLE", "^fn needle\\(", "need.e|nothing", "e{2}dle$", "\\bneedle \\d+"];
    let paths = ["src", "build", "src/build/in.txt", "private", "names", "directory.txt"];
    let everywhere = patterns.map(|pattern| GrepRequest::new(pattern).with_path(""));
    let needle = paths.map(|path| GrepRequest::new("needle").with_path(path));
    let ways = |request: GrepRequest| {
        [
            request.clone().with_context(1, 1),
            request.clone().with_case_insensitive(true).with_max_results(5),
            request.clone().with_output_mode(GrepMode::Count).with_max_results(1000),
            request.with_output_mode(GrepMode::FilesWithMatches).with_glob_filter("!*.txt"),
        ]
    };
    let all = everywhere.into_iter().chain(needle).enumerate();
    let chosen = |(index, request)| {
        let ways = ways(request);
        let count = ways.len();
        // A pattern in capitals is searched for in any case, and a filter for names leaves something in its path.
        let is_chosen = move |way: usize| is_full() || way == (index + index / patterns.len()) % count;
        ways.into_iter().enumerate().filter(move |(way, _)| is_chosen(*way)).map(|(_, request)| request)
    };
    all.flat_map(chosen).collect()
}
