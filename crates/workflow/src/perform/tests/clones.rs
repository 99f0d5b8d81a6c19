//! Clones of a task, which read the objects of the user's repository in place.
#![expect(clippy::disallowed_methods, reason = "a test replaces a program of the machine")]

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_env::{ExecRequest, ExecutionEnvironment, LocalEnvironment};
use pintle_test_conditions::{BUBBLEWRAP, LANDLOCK, cases};

use super::project::{Project, RIGHT, SessionScripts};
use crate::report::TaskReport;
use crate::repository::{TaskRepository, UserRepository};
use crate::task::TaskOutcome;

/// Change that the repository of a task commits.
const PATCH: &str =
    "diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+1\n";

/// A `cp` that copies where the file system cannot share blocks.
const CP: &str = "#!/bin/sh\nfor word; do\n  shift\n  case $word in --reflink=*) ;; *) set -- \"$@\" \"$word\" ;; esac\n\
                  done\nPATH=/usr/bin:/bin\nexec cp \"$@\"\n";

/// Repositories from which a task starts: the commands that make one, and its path below the directory of the project.
const REPOSITORIES: [(&str, &str); 11] = [
    ("true", "project"),
    ("git gc -q", "project"),
    ("git worktree add -q ../linked HEAD", "linked"),
    (
        "git -c user.name=a -c user.email=b commit -q --allow-empty -m more && \
         git clone -q --depth 1 \"file://$PWD\" ../shallow",
        "shallow",
    ),
    ("git clone -q --shared . ../borrowed && git clone -q --shared ../borrowed ../twice", "twice"),
    ("git clone -q . ../'a b\"c'", "a b\"c"),
    ("git clone -q . \"$(printf '../a\\nb')\"", "a\nb"),
    ("git sparse-checkout set src", "project"),
    ("git -c protocol.file.allow=always submodule --quiet add ./ sub", "project/sub"),
    (
        "git -c protocol.file.allow=always submodule --quiet add ./ sub && echo 'version 1' >x.bin && \
         echo '*.bin filter=lfs -text' >.gitattributes && git add -A && git -c user.name=a -c user.email=b commit -qm more",
        "project",
    ),
    (
        "git init -q --object-format=sha256 ../long && cd ../long && cp ../project/README.md . && git add -A && \
         git -c user.name=a -c user.email=b commit -qm first",
        "long",
    ),
];

async fn sh(machine: &dyn ExecutionEnvironment, directory: &Path, line: &str) -> String {
    let done = machine.exec_command(ExecRequest::new(line).with_working_dir(directory)).await.unwrap();
    assert!(done.success(), "{line}: {}", done.output.to_text_lossy().unwrap());
    done.stdout.to_text_lossy().unwrap().trim().to_owned()
}

/// Returns an environment of this machine in which `cp` accepts to share blocks.
fn machine_with_shared_blocks(directory: &Path) -> Arc<dyn ExecutionEnvironment> {
    let programs = directory.join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(programs.join("cp"), CP).unwrap();
    std::fs::set_permissions(programs.join("cp"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = programs.into_os_string();
    path.push(":/usr/bin:/bin");
    let variables = std::env::vars_os().filter(|(name, _)| name != "PATH");
    let variables = variables.chain([(OsString::from("PATH"), path)]);
    Arc::new(LocalEnvironment::with_host_env(directory, variables).unwrap())
}

/// Opens the repository of a task for the commit that is checked out.
pub(super) async fn open(
    machine: &Arc<dyn ExecutionEnvironment>,
    task: &Path,
    source: &Path,
) -> TaskRepository {
    let base = sh(machine.as_ref(), source, "git rev-parse HEAD").await;
    let source = source.display().to_string();
    TaskRepository::open(Arc::clone(machine), task, &source, &base, Some("t")).await.unwrap()
}

#[tokio::test]
async fn clones_of_all_repositories_copy_no_objects() {
    // By default, a plain one, a shallow one, one whose path has a line feed, and one with a submodule and LFS.
    for (prepare, path) in REPOSITORIES.into_iter().step_by(cases(3, 1)) {
        for shares_blocks in cases(&[true][..], &[false, true]).iter().copied() {
            let project = Project::new().await;
            project.sh(prepare).await;
            let directory = project.directory();
            let machine = match shares_blocks {
                true => machine_with_shared_blocks(directory),
                false => Arc::clone(&project.machine),
            };
            let (source, task) = (directory.join(path), directory.join("task"));
            let case = format!("{prepare}, with shared blocks: {shares_blocks}");
            let count = "find \"$(git rev-parse --git-path objects)\" -type f | wc -l";
            let before = sh(machine.as_ref(), &source, count).await;
            let repository = open(&machine, &task, &source).await;
            let changed = repository.commit_patch(repository.base(), PATCH.as_bytes()).await.unwrap();
            for (number, commit) in [repository.base(), &changed].into_iter().enumerate() {
                let root = task.join(format!("{number}/tree"));
                repository.clone_to(&root, commit).await.unwrap();
                let run = async |line: &str| sh(machine.as_ref(), &root, line).await;
                assert_eq!(run("git status --porcelain --ignored").await, "", "{case}");
                let commits = sh(machine.as_ref(), &source, "git rev-list --count HEAD").await;
                let commits: usize = commits.parse().unwrap();
                assert_eq!(run("git rev-list --count HEAD").await, (commits + number).to_string(), "{case}");
                // The commit, its tree and the new file.
                let counted = run("git count-objects -v").await;
                let packed = format!("in-pack: {}\n", 3 * number);
                assert!(counted.contains("count: 0\n") && counted.contains(&packed), "{case}: {counted}");
                assert_eq!(run("find . -type f -links +1").await, "", "{case}");
                assert_eq!(root.join("new.txt").exists(), number == 1, "{case}");
                run("git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git fsck --no-dangling")
                    .await;
            }
            assert_eq!(sh(machine.as_ref(), &source, count).await, before, "{case}");
            if shares_blocks {
                assert!(task.join("template").exists(), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn garbage_collection_breaks_no_clone_before_the_task_ends() {
    let project = Project::new().await;
    let (machine, task) = (Arc::clone(&project.machine), project.directory().join("task"));
    let repository = open(&machine, &task, &project.root()).await;
    let base = project.sh("git rev-parse HEAD").await;
    let clone = async |name: &str| -> PathBuf {
        let root = task.join(name).join("tree");
        repository.clone_to(&root, repository.base()).await.unwrap();
        root
    };
    let before = clone("before").await;
    let collect = "git reflog expire --expire=now --all && git gc -q --prune=now";
    project
        .sh(&format!(
            "git checkout -q --orphan other && git rm -rfq . && \
             git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git branch -qD main && {collect}"
        ))
        .await;
    for root in [before, clone("after").await] {
        sh(machine.as_ref(), &root, "git fsck --no-dangling && git cat-file -e HEAD:src/sums.py").await;
    }
    UserRepository::remove_snapshot(&machine, &project.root(), "t").await.unwrap();
    let is_gone = format!("{collect} && ! git cat-file -e {} 2>/dev/null", base.trim());
    project.sh(&is_gone).await;
}

/// The objects are readable in the sandbox, although other files below `/tmp` are not visible, and cannot be changed.
#[tokio::test]
async fn sandboxed_commands_read_the_objects_of_the_user_and_cannot_change_them() {
    if !BUBBLEWRAP.is_present() && !LANDLOCK.is_present() {
        return;
    }
    let project = Project::new().await;
    let objects = project.root().join(".git/objects");
    let script = format!(
        "git log -1 --format=%H && git show HEAD:README.md && echo 1 >README.md && git -c user.name=a -c user.email=b stash -q && \
         ! touch {0}/x && ! rm -rf {0}/* && {RIGHT}",
        objects.display()
    );
    let scripted = SessionScripts::new().with_session("0", &script, None);
    let (outcome, task) = project.run(project.contract_without_anchor(1).await, scripted).await;
    let report = TaskReport::from_task(&task).to_markdown();
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{report}");
    project.sh("git fsck --no-dangling && git for-each-ref refs/pintle | wc -l | grep -qx ' *0'").await;
}

#[tokio::test]
async fn a_candidate_costs_little_more_than_its_working_tree() {
    let project = Project::new().await;
    // Contents that cannot be compressed: the objects are as large as the files.
    project
        .sh("python3 -c 'import os\nfor number in range(8000):\n    os.makedirs(f\"d{number // 100}\", exist_ok=True)\n    \
             open(f\"d{number // 100}/{number}\", \"wb\").write(os.urandom(4096))' && git add -A && \
             git -c user.name=a -c user.email=b commit -qm many")
        .await;
    let (machine, task) = (Arc::clone(&project.machine), project.directory().join("task"));
    let started = std::time::Instant::now();
    let repository = open(&machine, &task, &project.root()).await;
    for name in ["0", "1"] {
        repository.clone_to(&task.join(name).join("tree"), repository.base()).await.unwrap();
    }
    let seconds = started.elapsed().as_secs_f64() / 2.0;
    let size = async |path: &Path, flags: &str| -> f64 {
        let line = format!("du -sk {flags} . | cut -f 1");
        sh(machine.as_ref(), path, &line).await.parse().unwrap()
    };
    let (tree, total) = (size(&project.root(), "--exclude=.git").await, size(&task, "").await);
    println!(
        "a candidate has {:.2} times its working tree of {tree} KiB, made in {seconds:.1} s",
        total / 2.0 / tree
    );
    assert!(total / 2.0 <= 1.3 * tree, "{total} KiB for two candidates with {tree} KiB each");
}
