//! Repositories of users, snapshots of them, and changes that leave files out.

use std::sync::Arc;

use pintle_agent::{SessionId, Timestamp};
use pintle_store::{MemoryStore, SessionStore as _, Summary};

use super::clones;
use super::project::{Project, RIGHT, SessionScripts, WRONG, anchor_after};
use crate::LocalTaskHost;
use crate::contract::BaseCommit;
use crate::report::TaskReport;
use crate::repository::{UserRepository, read_blob};
use crate::task::{BlockReason, TaskOutcome};

#[tokio::test]
async fn repositories_that_are_not_simple() {
    let project = Project::empty();
    let find =
        async |project: &Project| UserRepository::find(Arc::clone(&project.machine), &project.root()).await;
    assert!(
        find(&project)
            .await
            .unwrap_err()
            .to_string()
            .contains("is not in the working tree of a git repository")
    );
    project.sh("git init -q -b main").await;
    assert!(find(&project).await.unwrap_err().to_string().contains("has no commit yet"));

    let project = Project::new().await;
    project
        .sh("git checkout -q --detach && echo '# local' >>README.md && echo 1 >new.txt && git config filter.lfs.clean 'sed s/a/b/' \
             && git -c protocol.file.allow=always submodule --quiet add ./ sub && echo '*.bin filter=lfs' >.gitattributes")
        .await;
    let before = project.sh("git status --porcelain").await;
    let found = find(&project).await.unwrap();
    assert_eq!((found.branch.clone(), found.changed), (None, 5), "{before}");
    let snapshot = found.snapshot("t").await.unwrap();
    assert_eq!(
        project.sh("git status --porcelain").await,
        before,
        "the index and the files are as they were"
    );
    assert_eq!(snapshot.left_out, [""; 0]);
    let base = BaseCommit::new(found.root.display().to_string(), snapshot.commit);
    let scripted = SessionScripts::new().with_session("0", RIGHT, None);
    let (outcome, task) =
        project.run(project.contract_without_anchor(1).await.with_base(base), scripted).await;
    let report = TaskReport::from_task(&task).to_markdown();
    let TaskOutcome::Done(done) = outcome else { panic!("{report}") };
    assert_eq!(done.proof().diff().files.len(), 1, "local changes are those of the user: {report}");
    assert!(report.contains("* submodules are empty in the clones of a task: `sub`"), "{report}");
    assert!(report.contains("* files of LFS are pointers in the clones of a task"), "{report}");
    assert_eq!(project.sh("git for-each-ref refs/pintle").await, "", "the task has ended");
}

/// Untracked repositories and changed submodules are no part of a snapshot, and are named.
#[tokio::test]
async fn repositories_inside_are_left_out_of_a_snapshot() {
    let commit = "git -c user.name=a -c user.email=b commit -q --allow-empty -m x";
    let nested = |name: &str, end: &str| format!("git init -q {name} && cd {name} && echo 1 >file && {end}");
    let with_commit = format!("git add file && {commit}");
    let submodule = format!(
        "git -c protocol.file.allow=always submodule --quiet add ./ sub && {commit} && git mv README.md moved.md"
    );
    for (prepare, expected) in [
        (nested("inside", "true"), vec!["inside/"]),
        (nested("inside", &with_commit), vec!["inside/"]),
        (nested("src/'a b'", "true"), vec!["src/a b/"]),
        (format!("({}) && {}", nested("one", "true"), nested("two", &with_commit)), vec!["one/", "two/"]),
        (format!("{submodule} && echo 2 >>sub/poetry.lock"), vec!["sub"]),
        (format!("{submodule} && echo 2 >sub/new"), vec!["sub"]),
        (format!("{submodule} && rm sub/Makefile && git init -q inside"), vec!["inside/", "sub"]),
        (submodule.clone(), vec![]),
        (
            "mkdir node_modules && git init -q node_modules/x && echo node_modules >.gitignore".to_owned(),
            vec![],
        ),
    ] {
        let project = Project::new().await;
        project.sh(&prepare).await;
        project.write("local.txt", "1\n").await;
        let files = "find . -type f -not -path '*/.git/*' | sort; git status --porcelain";
        let before = project.sh(files).await;
        let found = UserRepository::find(Arc::clone(&project.machine), &project.root()).await.unwrap();
        let snapshot = found.snapshot("t").await.unwrap();
        assert_eq!(snapshot.left_out, expected, "{prepare}");
        assert_eq!(project.sh(files).await, before, "{prepare}");
        let listing = project.sh(&format!("git ls-tree -r --name-only {}", snapshot.commit)).await;
        assert!(listing.lines().any(|line| line == "local.txt"), "{prepare}: {listing}");
        assert!(!["inside", "one", "two", "src/a b"].iter().any(|name| listing.contains(name)), "{listing}");
        assert!(project.sh("git for-each-ref refs/pintle").await.contains("refs/pintle/tasks/t"));
        for _ in 0..2 {
            UserRepository::remove_snapshot(&project.machine, &project.root(), "t").await.unwrap();
            assert_eq!(project.sh("git for-each-ref refs/pintle").await, "", "{prepare}");
        }
    }
    let project = Project::new().await;
    let gone = project.root().join("gone");
    UserRepository::remove_snapshot(&project.machine, &gone, "t").await.unwrap();
}

/// What a candidate leaves that is no part of its change is named, unless the project or a tool says that it can be built again.
#[tokio::test]
async fn files_that_a_change_leaves_out_are_named() {
    let new = "mkdir -p target/a && echo 1 >target/a/b.txt && echo 1 >target/new.txt";
    let cache = format!("{new} && touch target/CACHEDIR.TAG target/.rustc_info.json");
    let project = Project::new().await;
    let task = project.directory().join("task");
    let repository = clones::open(&project.machine, &task, &project.root()).await;
    let store = MemoryStore::new();
    let id = SessionId::generate();
    let _writer = store.create(Summary::new(id.clone(), Timestamp::from_millis(0))).await.unwrap();
    let blobs = store.blobs(&id);
    for (script, expected) in [
        ("true".to_owned(), None),
        (new.to_owned(), Some("not part of the change: `target/a/b.txt`, `target/new.txt` (")),
        ("ln -s src target".to_owned(), Some("not part of the change: `target` (")),
        (cache.clone(), Some("not part of the change: `target/new.txt` (")),
        (format!("{cache} && rm target/new.txt"), None),
        (format!("{new} && echo /target >.gitignore"), None),
        ("mkdir node_modules && echo 1 >node_modules/x".to_owned(), None),
    ] {
        let root = task.join("tree");
        repository.clone_to(&root, repository.base()).await.unwrap();
        project.sh(&format!("cd ../task/tree && {script}")).await;
        let diff = repository.diff(&root, repository.base(), blobs.as_ref()).await.unwrap();
        let described = diff.describe_dropped().unwrap_or_default();
        match expected {
            Some(expected) => assert!(described.starts_with(expected), "{script}: {described}"),
            None => assert_eq!(described, "", "{script}"),
        }
    }
    for (change, is_right) in [(RIGHT, true), (WRONG, false)] {
        let project = Project::new().await;
        let scripted = SessionScripts::default().with_session("0", &format!("{change} && {new}"), None);
        let (outcome, task) = project.run(project.contract_without_anchor(1).await, scripted).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert_eq!(matches!(outcome, TaskOutcome::Done(_)), is_right, "{report}");
        assert!(report.contains("not part of the change: `target/a/b.txt`, `target/new.txt` ("), "{report}");
    }
}

/// Links to what tools leave behind, such as the dependencies of another checkout, are no part of an anchor or a change.
#[tokio::test]
async fn links_to_dependencies_fail_no_anchor() {
    let links = ["node_modules", "src/node_modules", "target", ".pytest_cache", "tests/__pycache__"];
    let link = format!("for link in {}; do ln -sfn /usr/lib $link || exit 1; done", links.join(" "));
    let project = Project::new().await;
    let scripted = anchor_after(&link).with_session("0", &format!("{link}; {RIGHT}"), None);
    let (outcome, task) = project.run(project.contract(1).await, scripted).await;
    let report = TaskReport::from_task(&task).to_markdown();
    let TaskOutcome::Done(done) = outcome else { panic!("{report}") };
    assert_eq!(done.proof().anchor().unwrap().files(), ["tests/test_negative.py"], "{report}");
    assert_eq!(done.proof().diff().files.len(), 1, "{report}");
}

#[tokio::test]
async fn a_candidate_with_a_nested_repository_is_refused() {
    let with_commit = "git -C src/inside -c user.name=a -c user.email=b commit -q --allow-empty -m x";
    for commit in ["true", with_commit] {
        let project = Project::new().await;
        let script = format!("{RIGHT}; git init -q src/inside && echo 1 >src/inside/file && {commit}");
        let scripted = SessionScripts::default().with_session("0", &script, None);
        let (outcome, task) = project.run(project.contract_without_anchor(1).await, scripted).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert_eq!(outcome, TaskOutcome::Blocked(BlockReason::NoCandidate), "{report}");
        assert!(report.contains("`src/inside` is a separate repository"), "{commit}: {report}");
    }
}

#[tokio::test]
async fn a_result_is_applied_as_branch_worktree_or_changes() {
    let project = Project::new().await;
    let (store, id) = (MemoryStore::new(), SessionId::new("t"));
    let scripted = Arc::new(SessionScripts::new().with_session("0", RIGHT, None));
    let mut host = LocalTaskHost::create(&store, id.clone(), project.contract(1).await).await.unwrap();
    let performer = Arc::new(project.performer(&store, &scripted).await);
    let TaskOutcome::Done(done) = host.run(performer).await.unwrap() else { panic!() };
    let blobs = store.blobs(&id);
    let mut patch = read_blob(done.proof().anchor().unwrap().patch().unwrap(), blobs.as_ref()).await.unwrap();
    patch.extend(read_blob(&done.proof().diff().patch, blobs.as_ref()).await.unwrap());
    let found = UserRepository::find(Arc::clone(&project.machine), &project.root()).await.unwrap();
    // Without an address, the settings name no author.
    for (email, author) in [("", "pintle <>"), ("user@example.org", "A User <user@example.org>")] {
        project.sh(&format!("git config user.name 'A User' && git config user.email '{email}'")).await;
        found.commit_to_branch(&found.head, &patch, "of/user", "Sums").await.unwrap();
        let by =
            project.sh("git log -1 --format='%an <%ae>, %cn <%ce>' of/user && git branch -qD of/user").await;
        assert_eq!(by.trim(), format!("{author}, {author}"));
    }
    let commit =
        found.commit_to_branch(&found.head, &patch, "fix/sums", "Sums\n\nMore words.").await.unwrap();
    insta::assert_snapshot!(project.sh("git log --format=%s%n%b -1 fix/sums; git diff --stat main fix/sums; git status --porcelain").await.trim(), @"
    Sums
    More words.
     src/sums.py            | 2 +-
     tests/test_negative.py | 5 +++++
     2 files changed, 6 insertions(+), 1 deletion(-)
    ");
    assert_eq!(project.sh("git rev-parse fix/sums").await.trim(), commit);
    // The same change again, as after a failed push.
    let again = found.commit_to_branch(&found.head, &patch, "fix/sums", "other words").await.unwrap();
    assert_eq!(again, commit);
    let gone = "0123456789012345678901234567890123456789";
    for (base, branch, expected) in [
        (found.head.as_str(), "main", "the branch main exists and has another commit"),
        (found.head.as_str(), "a..b", "check-ref-format"),
        (gone, "other", "does not have 0123456789012345678901234567890123456789 any more"),
    ] {
        let error = found.commit_to_branch(base, &patch, branch, "x").await.unwrap_err();
        assert!(error.to_string().contains(expected), "{branch}: {error}");
    }
    found.add_worktree(&project.directory().join("tree"), "fix/sums").await.unwrap();
    found.apply(&patch).await.unwrap();
    assert_eq!(
        project.sh("python3 tests/run.py | tail -1; git diff --cached --stat").await,
        "ok 3 - test_sums.test_zero\n"
    );
    assert!(
        found.apply(&patch).await.unwrap_err().to_string().contains("`git apply` failed"),
        "it is there already"
    );
    let same = project.sh("diff -r -x .git -x __pycache__ . ../tree && echo same").await;
    assert_eq!(same.trim(), "same");
}
