//! Which files of projects are read, and how often.
#![expect(clippy::disallowed_methods, reason = "the files of a test are local")]

use std::ops::Range;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pintle_env::{LocalEnvironment, Metadata};

use super::*;
use crate::failure::FailureKind;
use crate::policy::{ProjectFiles, TrustedProjects, check_project};
use crate::process_env::ProcessEnv;

/// Counts the operations that look at files, and records the paths that they read.
#[derive(Debug)]
struct CountingEnvironment {
    inner: LocalEnvironment,
    calls: AtomicUsize,
    read: Mutex<Vec<PathBuf>>,
}

impl CountingEnvironment {
    fn new(directory: &Path) -> Self {
        let inner = LocalEnvironment::with_host_env(directory, []).unwrap();
        Self { inner, calls: AtomicUsize::new(0), read: Mutex::default() }
    }

    fn count(&self, read: &[PathBuf]) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.read.lock().unwrap().extend_from_slice(read);
    }

    fn reads_of(&self, name: &str) -> usize {
        self.read.lock().unwrap().iter().filter(|path| path.ends_with(name)).count()
    }
}

#[async_trait]
impl ExecutionEnvironment for CountingEnvironment {
    pintle_env::forward! {
        inner: working_directory, platform, os_version, initialize, cleanup, spawn, write, list, remove, rename, resolve,
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.count(&[path.to_path_buf()]);
        self.inner.read(path, range).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.count(&[]);
        self.inner.metadata(path).await
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.count(&[]);
        self.inner.canonicalize(path).await
    }

    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        self.count(paths);
        self.inner.read_many(paths, limits).await
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn files_of_projects_are_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join(".git")).unwrap();
    for (file, text) in [
        (".pintle/config.toml", "mode = \"plan\"\n"),
        (".pintle/rules.toml", "deny = [\"shell\"]\n"),
        (".mcp.json", "{}"),
        ("below/.pintle/rules.toml", "deny = [\"@write(x)\"]\n"),
    ] {
        write(&root.join(file), text);
    }
    let environment = Arc::new(CountingEnvironment::new(&root.join("below")));
    let files = ProjectFiles::new(Arc::clone(&environment) as _);
    assert_eq!(environment.calls.load(Ordering::Relaxed), 0, "nothing is read yet");
    for _ in 0..3 {
        let [below, above] = files.projects().await.unwrap() else { panic!("{files:?}") };
        assert_eq!((&below.root, &above.root), (&root.join("below"), &root));
        assert_eq!(above.configuration(), Some("mode = \"plan\"\n"));
        assert!(above.rules().is_some() && above.server_file().is_some() && below.configuration().is_none());
        assert_eq!(above.rules().unwrap().0, "../.pintle/rules.toml");
    }
    for name in [".pintle/config.toml", ".pintle/rules.toml", ".mcp.json"] {
        // One of each level.
        assert_eq!(environment.reads_of(name), 2, "{name}: {environment:?}");
    }
}

/// Most directories have no files of a project.
#[tokio::test]
async fn a_directory_without_a_project_takes_four_calls() {
    let directory = tempfile::tempdir().unwrap();
    let environment = CountingEnvironment::new(directory.path());
    assert!(Project::read_all(&environment).await.unwrap().is_empty());
    assert_eq!(environment.calls.load(Ordering::Relaxed), 4, "{environment:?}");
}

#[tokio::test]
async fn links_of_a_project_are_followed_or_refused() {
    for (link, target, content, expected) in [
        (".pintle", "settings", Some("settings/rules.toml"), Ok(RULES)),
        (".pintle/rules.toml", "../rules", Some("rules"), Ok(RULES)),
        (".mcp.json", "servers", Some("servers"), Ok(SERVERS)),
        (".pintle", "missing", None, Err(".pintle/rules.toml, a link")),
        (".pintle/hooks.toml", "missing", None, Err(".pintle/hooks.toml, a link")),
        (".mcp.json", "missing", None, Err(".mcp.json, a link")),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        if let Some(content) = content {
            write(&root.join(content), "");
        }
        std::fs::create_dir_all(root.join(link).parent().unwrap()).unwrap();
        symlink(target, root.join(link)).unwrap();
        let environment = LocalEnvironment::with_host_env(&root, []).unwrap();
        match (Project::read_all(&environment).await, expected) {
            (Ok(projects), Ok(name)) => {
                let files = projects.iter().flat_map(|project| project.files.iter().map(|(name, _)| *name));
                assert_eq!(files.collect::<Vec<_>>(), [name], "{link}");
            }
            (Err(failure), Err(message)) => {
                assert!(failure.message().contains(message), "{link}: {}", failure.message());
            }
            (read, expected) => panic!("{link}: {read:?}, expected {expected:?}"),
        }
    }
}

#[tokio::test]
async fn a_file_that_leads_to_a_repository_ends_the_levels_too() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    write(&root.join("a/.git"), "gitdir: /elsewhere\n");
    for file in ["a/.pintle/rules.toml", ".pintle/rules.toml", "a/b/.pintle/rules.toml"] {
        write(&root.join(file), "");
    }
    symlink("missing", root.join("a/b/.git")).unwrap();
    let environment = LocalEnvironment::with_host_env(root.join("a/b"), []).unwrap();
    let projects = Project::read_all(&environment).await.unwrap();
    let roots: Vec<&Path> = projects.iter().map(|project| project.root.as_path()).collect();
    assert_eq!(roots, [root.join("a/b"), root.join("a")]);
}

#[tokio::test]
async fn missing_programs_are_files_that_commands_seem_to_run() {
    for (command, missing) in [
        ("sh check.sh", vec!["check.sh"]),
        ("sh there.sh", vec![]),
        ("./check", vec!["check"]),
        ("\"$PINTLE_PROJECT_DIR\"/check --strict", vec!["check"]),
        ("cargo test --package sub", vec![]),
        ("MODE=a.b ./there.sh", vec!["a.b"]),
        ("rg '*.rs' && npx tool@1.2", vec![]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        write(&root.join("there.sh"), "exit 0\n");
        write(
            &root.join(".pintle/hooks.toml"),
            &format!("[[Stop]]\ncommand = '{}'\n", command.replace('\'', "")),
        );
        let projects = Project::read_all(&CountingEnvironment::new(&root)).await.unwrap();
        let expected: Vec<PathBuf> = missing.iter().map(|name| root.join(name)).collect();
        assert_eq!(projects[0].missing_programs(), expected, "{command}");
    }
}

#[tokio::test]
async fn a_project_with_a_mistake_is_named_before_it_is_trusted() {
    for (file, text, expected) in [
        ("rules.toml", "allow = [\"read_fil\"]", Some("did you mean read_file")),
        (
            "hooks.toml",
            "[[PreToolUse]]\nmatcher = \"shel\"\ncommand = \"true\"",
            Some("the unknown tool `shel`"),
        ),
        ("config.toml", "mode = \"aut\"", Some(".pintle/config.toml: line 1, column 8: `mode`")),
        ("config.toml", "mode = \"auto\"", None),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        write(&root.join(".pintle").join(file), text);
        let projects = Project::read_all(&CountingEnvironment::new(&root)).await.unwrap();
        let message = check_project(&projects[0]).err().map(|failure| failure.message());
        match (&message, expected) {
            (Some(message), Some(expected)) => assert!(message.contains(expected), "{message}"),
            (message, expected) => assert_eq!(message.as_deref(), expected, "{file}"),
        }
    }
}

/// The path of a program contains the path of its project.
#[tokio::test]
async fn a_project_with_a_program_that_no_rule_protects_is_not_trusted() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    for (name, hooks, is_trusted) in
        [(&b"project"[..], true, true), (b"project\xff", true, false), (b"project\xff", false, true)]
    {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap().join(OsStr::from_bytes(name));
        std::fs::create_dir_all(root.join(".git")).unwrap();
        write(&root.join(".pintle/rules.toml"), "allow = [\"shell(ls)\"]\n");
        write(&root.join("check.sh"), "true\n");
        if hooks {
            write(&root.join(".pintle/hooks.toml"), "[[PreToolUse]]\ncommand = \"sh check.sh\"\n");
        }
        let environment = LocalEnvironment::with_host_env(&root, []).unwrap();
        let projects = Project::read_all(&environment).await.unwrap();
        let [project] = projects.as_slice() else { panic!("{projects:?}") };
        assert_eq!(project.programs().iter().count(), usize::from(hooks));
        let process_env = ProcessEnv::from_variables([("HOME", home.path().as_os_str())]);
        // Another version has trusted the project.
        let state = process_env.state_directory().unwrap();
        let key = format!("local {}", root.display());
        let text =
            serde_json::json!({"version": 1, "projects": {key: project.hash().to_string()}}).to_string();
        write(&state.join("trust.json"), &text);
        let mut trusted = TrustedProjects::open(&process_env).unwrap();
        assert_eq!(trusted.contains("local", project), is_trusted, "{name:?} {hooks}");
        match trusted.add("local", project, &process_env) {
            Ok(_) => assert!(is_trusted, "{name:?}"),
            Err(failure) => {
                assert!(!is_trusted && failure.kind() == FailureKind::Usage, "{failure:?}");
                assert!(failure.message().contains("expected a path in UTF-8"), "{failure:?}");
            }
        }
    }
}

#[tokio::test]
async fn tools_of_a_project_are_part_of_its_hash() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let manifest = "name = 't'\ndescription = 'd'\nprogram = './t.sh'\nparameters = { type = 'object' }\n";
    write(&root.join(".pintle/config.toml"), "tool_dirs = [\"tools\", \"../..\", \"..\"]\n");
    write(&root.join(".pintle/tools/t.toml"), manifest);
    write(&root.join(".pintle/tools/t.sh"), "#!/bin/sh\n");
    let environment = LocalEnvironment::with_host_env(&root, []).unwrap();
    let changed = manifest.replace("'d'", "'e'");
    let mut hashes = Vec::new();
    for (file, text) in [
        (".pintle/tools/t.sh", "#!/bin/sh\n"),
        (".pintle/tools/t.sh", "#!/bin/sh\nexit 1\n"),
        (".pintle/tools/t.toml", changed.as_str()),
        (".pintle/tools/u.toml", "name = 7\n"),
    ] {
        write(&root.join(file), text);
        let projects = Project::read_all(&environment).await.unwrap();
        let [tools, outside, root_itself] = projects[0].tools() else { panic!("{projects:?}") };
        assert_eq!(tools.tools.len(), 1, "{tools:?}");
        for refused in [outside, root_itself] {
            assert!(refused.tools.is_empty(), "{refused:?}");
            assert!(refused.problems[0].message.contains("expected a directory below"), "{refused:?}");
        }
        hashes.push(projects[0].hash());
    }
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 4, "each change ends the trust");
}
