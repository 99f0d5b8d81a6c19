//! The same tree, searched from the host and from the container.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
};

use super::image;
use crate::{DockerEnvironment, ExecutionEnvironment, GrepMode, GrepRequest, LocalEnvironment, Mount};

/// Fills a tree with everything that a search treats in its own way.
fn fill(root: &Path) {
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
    for number in 0..300 {
        fs::create_dir_all(root.join("many")).unwrap();
        fs::write(root.join(format!("many/{number:04}")), format!("line\nneedle {number}\n")).unwrap();
    }
}

#[tokio::test]
async fn a_search_finds_the_same_from_both_sides() {
    let Some(image) = image() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fill(&root);
    let local = LocalEnvironment::builder(&root).build().unwrap();
    let image = image.with_mount(Mount::new(&root, &root));
    let remote = DockerEnvironment::start(image).working_directory(&root).build().unwrap();
    remote.initialize().await.unwrap();
    for path in ["", "src", "build", "src/build/in.txt", "private", "names", "directory.txt"] {
        for pattern in ["needle", "NEEDLE", "^fn needle\\(", "need.e|nothing", "e{2}dle$", "\\bneedle \\d+"] {
            for request in [
                GrepRequest::new(pattern).with_context(1, 1),
                GrepRequest::new(pattern).with_case_insensitive(true).with_max_results(5),
                GrepRequest::new(pattern).with_output_mode(GrepMode::Count).with_max_results(1000),
                GrepRequest::new(pattern)
                    .with_output_mode(GrepMode::FilesWithMatches)
                    .with_glob_filter("!*.txt"),
            ] {
                // Each costs some calls of the engine: not every pattern in every place.
                if !path.is_empty() && pattern != "needle" {
                    continue;
                }
                let request = request.with_path(path);
                let (here, there) =
                    (local.grep(&request).await.unwrap(), remote.grep(&request).await.unwrap());
                assert_eq!(here, there, "{request:?}");
            }
        }
    }
    for (pattern, path) in
        [("**", ""), ("*.txt", ""), ("**/*", "names"), ("src/*/*.txt", ""), ("**", "src/nested")]
    {
        let (mut here, mut there) = (
            local.glob(pattern, Path::new(path)).await.unwrap(),
            remote.glob(pattern, Path::new(path)).await.unwrap(),
        );
        // The times of busybox are whole seconds, so the order within one is that of the paths.
        here.sort();
        there.sort();
        assert_eq!(here, there, "{pattern} {path}");
    }
    let (here, there) = (
        local.list_directory(Path::new(""), 9).await.unwrap(),
        remote.list_directory(Path::new(""), 9).await.unwrap(),
    );
    assert_eq!(here, there);
    remote.cleanup().await.unwrap();
}
