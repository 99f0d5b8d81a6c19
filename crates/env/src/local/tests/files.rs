//! Files and search.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
    },
    path::Path,
    sync::Arc,
};

use super::{LocalEnvironment, environment};
use crate::{
    environment::{ExecutionEnvironment, ExecutionEnvironmentExt as _},
    error::EnvError,
    search::{GlobRequest, GrepMode, GrepOutput, GrepRequest},
};

#[tokio::test]
async fn writing_keeps_mode_and_follows_links() {
    let (directory, environment) = environment();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("real/below")).unwrap();
    fs::write(at("real/below/file"), "old").unwrap();
    fs::set_permissions(at("real/below/file"), fs::Permissions::from_mode(0o751)).unwrap();
    symlink("real/below", at("directory")).unwrap();
    symlink("../below/file", at("real/below/link")).unwrap();
    let before = fs::metadata(at("real/below/file")).unwrap();
    environment.write(Path::new("directory/link"), b"new").await.unwrap();
    let after = fs::metadata(at("real/below/file")).unwrap();
    assert_eq!(fs::read(at("real/below/file")).unwrap(), b"new");
    assert_eq!(after.mode(), before.mode());
    assert_ne!(after.ino(), before.ino());
    assert!(fs::symlink_metadata(at("real/below/link")).unwrap().is_symlink());
    // A dangling link creates its target.
    symlink("fresh/target", at("dangling")).unwrap();
    environment.write(Path::new("dangling"), b"made").await.unwrap();
    assert_eq!(fs::read(at("fresh/target")).unwrap(), b"made");
    // No temporary file is left.
    assert_eq!(fs::read_dir(at("real/below")).unwrap().count(), 2);
}

#[tokio::test]
async fn writing_keeps_the_owner() {
    // Only the superuser can create a file of another user.
    if !pintle_test_conditions::ROOT.is_present() {
        return;
    }
    let (directory, environment) = environment();
    let path = directory.path().join("file");
    fs::write(&path, "old").unwrap();
    std::os::unix::fs::chown(&path, Some(12345), Some(54321)).unwrap();
    environment.write(&path, b"new").await.unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.uid(), after.gid()), (12345, 54321));
}

#[tokio::test]
async fn special_files_are_refused() {
    let (directory, environment) = environment();
    let pipe = directory.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("loop", directory.path().join("loop")).unwrap();
    for path in [pipe.as_path(), Path::new("/dev/null")] {
        let error = environment.read(path, None).await.unwrap_err();
        assert!(matches!(error, EnvError::NotARegularFile { .. }), "{error:?}");
        let error = environment.write(path, b"x").await.unwrap_err();
        assert!(matches!(error, EnvError::NotARegularFile { .. }), "{error:?}");
    }
    let error = environment.read(Path::new("loop"), None).await.unwrap_err();
    assert!(matches!(error, EnvError::Io { action: "read", .. }), "{error:?}");
    let error = environment.write(Path::new("loop"), b"x").await.unwrap_err();
    assert!(matches!(error, EnvError::Io { action: "write", .. }), "{error:?}");
    let error = environment.read(Path::new("a\0b"), None).await.unwrap_err();
    assert!(matches!(error, EnvError::InvalidPath { .. }), "{error:?}");
}

#[tokio::test]
async fn a_huge_file_can_only_be_read_in_ranges() {
    let (directory, environment) = environment();
    let file = fs::File::create(directory.path().join("huge")).unwrap();
    file.set_len(crate::MAX_READ + 1).unwrap();
    let huge = Path::new("huge");
    let error = environment.read(huge, None).await.unwrap_err();
    assert!(matches!(error, EnvError::TooLarge { .. }), "{error:?}");
    let end = crate::MAX_READ - 1..u64::MAX;
    assert_eq!(environment.read(huge, Some(end)).await.unwrap(), [0, 0]);
}

#[tokio::test]
async fn names_need_not_be_utf8() {
    let (_directory, environment) = environment();
    let name = Path::new(OsStr::from_bytes(b"sub/\xff\xfe \n-'\".txt"));
    environment.write(name, b"needle\n").await.unwrap();
    assert_eq!(environment.read(name, None).await.unwrap(), b"needle\n");
    let full = environment.resolve(name);
    let listed = environment.list_directory(Path::new(""), 2).await.unwrap();
    assert_eq!(listed.last().unwrap().name, name);
    let found = environment.glob("**/*.txt", Path::new("")).await.unwrap();
    assert_eq!(found.as_slice(), std::slice::from_ref(&full));
    let request = GrepRequest::new("needle").with_output_mode(GrepMode::FilesWithMatches);
    assert_eq!(environment.grep(&request).await.unwrap().files[0].path, full);
    environment.remove(name).await.unwrap();
    assert!(!environment.file_exists(name).await.unwrap());
}

#[tokio::test]
async fn a_search_follows_only_its_root_link() {
    let (directory, environment) = environment();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/a.txt"), "needle\n").unwrap();
    symlink("real", at("link")).unwrap();
    symlink("real/a.txt", at("b.txt")).unwrap();
    symlink("nowhere", at("broken.txt")).unwrap();
    let files = |output: GrepOutput| -> Vec<_> { output.files.into_iter().map(|file| file.path).collect() };
    let all = environment.grep(&GrepRequest::new("needle")).await.unwrap();
    assert_eq!(files(all), [environment.resolve(Path::new("real/a.txt"))]);
    let linked = GrepRequest::new("needle").with_path("link");
    let linked = environment.grep(&linked).await.unwrap();
    assert_eq!(files(linked), [environment.resolve(Path::new("link/a.txt"))]);
    let found = environment.glob("*.txt", Path::new("")).await.unwrap();
    assert_eq!(found, [environment.resolve(Path::new("b.txt"))]);
    let found = environment.glob("link/*.txt", Path::new("")).await.unwrap();
    assert_eq!(found, [environment.resolve(Path::new("link/a.txt"))]);
}

#[tokio::test]
async fn local_and_portable_searches_agree() {
    let (directory, environment) = environment();
    let files = [
        (".git/info/exclude", "excluded.txt\n"),
        (".git/config", "needle\n"),
        (".gitignore", "*.log\n/build/\n!keep.log\n"),
        (".ignore", "private/\n"),
        (".hidden/x.txt", "needle\n"),
        ("a.log", "needle\n"),
        ("keep.log", "needle\n"),
        ("excluded.txt", "needle\n"),
        ("private/x.txt", "needle\n"),
        ("build/out.txt", "needle\n"),
        ("src/build/in.txt", "needle\nno\nneedle\n"),
        ("src/.gitignore", "local.txt\n"),
        ("src/local.txt", "needle\n"),
        ("src/bin.dat", "needle\0\n"),
        ("src/nested/.git/HEAD", "needle\n"),
        ("src/nested/x.log", "needle\n"),
    ];
    for (name, content) in files {
        environment.write(Path::new(name), content.as_bytes()).await.unwrap();
    }
    let request = GrepRequest::new("NEEDLE").with_case_insensitive(true).with_context(0, 1);
    for path in ["", "src", "build", "src/build/in.txt", "private"] {
        let request = request.clone().with_path(path);
        let local = environment.grep(&request).await.unwrap();
        let portable = crate::environment::search::grep(&environment, &request).await.unwrap();
        assert_eq!(local, portable, "{path:?}");
        let local = environment.glob("**", Path::new(path)).await.unwrap();
        let request = GlobRequest::new("**").with_path(path);
        let portable = crate::environment::search::find_files(&environment, &request).await.unwrap();
        assert_eq!(local, portable, "{path:?}");
    }
    let all = environment.grep(&request).await.unwrap();
    let root = environment.working_directory();
    let names: Vec<_> = all.files.iter().map(|file| file.path.strip_prefix(root).unwrap()).collect();
    let expected = [".hidden/x.txt", "keep.log", "src/build/in.txt", "src/nested/x.log"];
    assert_eq!(names, expected.map(Path::new));
    assert_eq!(all.binary_files, 1);
    assert_eq!(directory.path().read_dir().unwrap().count(), 10);
}

#[tokio::test]
async fn place_is_the_directory_and_not_its_path() {
    if !pintle_test_conditions::BIRTH_TIMES.is_present() {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    let place = async |name: &str| crate::LocalEnvironment::builder(at(name)).build().unwrap().place().await;
    fs::create_dir(at("one")).unwrap();
    symlink("one", at("link")).unwrap();
    let one = place("one").await.unwrap();
    assert!(one.is_some());
    assert_eq!(place("link").await.unwrap(), one);
    let gone = crate::LocalEnvironment::builder(at("one")).build().unwrap();
    fs::rename(at("one"), at("moved")).unwrap();
    assert_eq!(place("moved").await.unwrap(), one);
    assert!(matches!(gone.place().await, Err(EnvError::NotFound { .. })));
    fs::create_dir(at("one")).unwrap();
    assert_ne!(place("one").await.unwrap(), one);
}

/// The environments whose files are those of this machine, with the path held or resolved by name.
async fn environments(environment: &LocalEnvironment, path: &Path) -> Vec<Arc<dyn ExecutionEnvironment>> {
    let root = environment.working_directory().to_path_buf();
    let local: Arc<dyn ExecutionEnvironment> = Arc::new(environment.clone());
    let confined: Arc<dyn ExecutionEnvironment> =
        Arc::new(crate::ConfinedEnvironment::new(Arc::clone(&local), [root]));
    let mut all = vec![Arc::clone(&local), Arc::clone(&confined)];
    for environment in [local, confined] {
        all.extend(environment.hold(&[path.to_path_buf()]).await.unwrap());
    }
    all
}

#[tokio::test]
async fn hard_links_are_written_in_place() {
    let (directory, environment) = environment();
    let path = environment.resolve(Path::new("file"));
    let other = directory.path().join("other");
    fs::write(&path, "old, and longer").unwrap();
    fs::hard_link(&path, &other).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    for (number, environment) in environments(&environment, &path).await.into_iter().enumerate() {
        // The second write has the judgement of the first one.
        for content in ["a", "another content"] {
            environment.write(&path, content.as_bytes()).await.unwrap();
            assert_eq!(fs::read_to_string(&other).unwrap(), content, "{number}");
        }
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.ino(), metadata.mode() & 0o777), (inode, 0o640), "{number}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "no copy is left");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn extended_attributes_are_kept() {
    if !pintle_test_conditions::EXTENDED_ATTRIBUTES.is_present() {
        return;
    }
    let (_directory, environment) = environment();
    let path = environment.resolve(Path::new("file"));
    fs::write(&path, "old").unwrap();
    rustix::fs::setxattr(&path, "user.note", b"keep", rustix::fs::XattrFlags::empty()).unwrap();
    for number in 0..4 {
        // The file is replaced each time, and another file is not the one that was held.
        let environment = environments(&environment, &path).await.swap_remove(number);
        environment.write(&path, b"new").await.unwrap();
        let mut value = [0; 9];
        let length = rustix::fs::getxattr(&path, "user.note", value.as_mut_slice()).unwrap();
        assert_eq!(&value[..length], b"keep");
    }
}

#[tokio::test]
async fn read_only_files_are_refused() {
    let (_directory, environment) = environment();
    let path = environment.resolve(Path::new("file"));
    for mode in [0o444, 0o400, 0o555, 0o000, 0o466, 0o060] {
        fs::remove_file(&path).ok();
        fs::write(&path, "old").unwrap();
        for environment in environments(&environment, &path).await {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let metadata = crate::host_files::metadata(&path).unwrap();
            assert_eq!(metadata.read_only_mode(), Some(mode), "as a dry run finds it");
            let error = environment.write(&path, b"new").await.unwrap_err();
            assert!(
                matches!(&error, EnvError::ReadOnlyFile { path: found, mode: bits } if *found == path && *bits == mode),
                "{mode:o}: {error:?}"
            );
            assert!(error.to_string().contains("chmod u+w"), "{error}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"old");
        }
    }
}

/// A hard link to a file elsewhere takes the name of a judged file. It is not written in place.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_link_that_takes_the_name_of_a_judged_file_is_refused() {
    let (directory, environment) = environment();
    let path = environment.resolve(Path::new("inside/file"));
    let outside = directory.path().join("outside");
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, "judged").unwrap();
    fs::hard_link(&path, directory.path().join("second")).unwrap();
    fs::write(&outside, "outside").unwrap();
    let held = environment.hold(std::slice::from_ref(&path)).await.unwrap().unwrap();
    held.write(&path, b"written").await.unwrap();
    fs::remove_file(&path).unwrap();
    fs::hard_link(&outside, &path).unwrap();
    let error = held.write(&path, b"written").await.unwrap_err();
    assert!(matches!(error, EnvError::Refused { .. }), "{error:?}");
    assert_eq!(fs::read(&outside).unwrap(), b"outside");
}
