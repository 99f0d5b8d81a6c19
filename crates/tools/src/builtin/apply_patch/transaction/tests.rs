use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use pintle_env::{Command, DirEntry, ExecutionEnvironmentExt as _, MemoryEnvironment, Metadata, Process};
use pintle_patch::{ApplyOptions, parse, plan};

use super::super::error::ApplyPlanCause;
use super::*;
use crate::tests::harness::Harness;

const EVERYTHING: &str = "\
*** Begin Patch
*** Add File: docs/a/new.md
+new
*** Add File: docs/other.md
+other
*** Update File: main.py
@@
-one
+1
+2
*** Update File: old.txt
*** Move to: kept/new.txt
@@
-old
+new
*** Update File: moved.txt
*** Move to: kept/deep/moved.txt
*** Delete File: gone.txt
*** Delete File: way
*** Add File: way/below
+below
*** Update File: keep/inner
@@
-a long line of text that becomes a short one
+short
*** End Patch
";

const BEFORE: [(&str, &str); 6] = [
    ("main.py", "one\n"),
    ("old.txt", "old\n"),
    ("moved.txt", "moved\n"),
    ("gone.txt", "gone\n"),
    ("way", "file\n"),
    ("keep/inner", "a long line of text that becomes a short one\n"),
];

const AFTER: [(&str, Option<&str>); 13] = [
    ("docs", None),
    ("docs/a", None),
    ("docs/a/new.md", Some("new\n")),
    ("docs/other.md", Some("other\n")),
    ("keep", None),
    ("keep/inner", Some("short\n")),
    ("kept", None),
    ("kept/deep", None),
    ("kept/deep/moved.txt", Some("moved\n")),
    ("kept/new.txt", Some("new\n")),
    ("main.py", Some("1\n2\n")),
    ("way", None),
    ("way/below", Some("below\n")),
];

/// A fault at the change with this number, from 0.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The change fails.
    Fails(usize),
    /// The change takes effect but is reported as failed.
    FailsAfterEffect(usize),
    /// The environment is lost from this change on.
    Lost(usize),
    /// Another program writes to `main.py` just before this change.
    ConcurrentWrite(usize),
}

/// An environment with a fault.
#[derive(Debug)]
struct Faulty {
    inner: Arc<dyn ExecutionEnvironment>,
    fault: Fault,
    changes: AtomicUsize,
}

impl Faulty {
    fn failure() -> EnvError {
        EnvError::from_io("change", Path::new("it"), std::io::Error::other("injected"))
    }

    fn check_connection(&self) -> Result<(), EnvError> {
        match self.fault {
            Fault::Lost(from) if self.changes.load(Ordering::Relaxed) > from => {
                Err(EnvError::EnvironmentLost { environment: "it".to_owned(), source: None })
            }
            Fault::Lost(_) | Fault::Fails(_) | Fault::FailsAfterEffect(_) | Fault::ConcurrentWrite(_) => {
                Ok(())
            }
        }
    }

    async fn change(
        &self,
        change: impl Future<Output = Result<(), EnvError>> + Send,
    ) -> Result<(), EnvError> {
        let number = self.changes.fetch_add(1, Ordering::Relaxed);
        self.check_connection()?;
        match self.fault {
            Fault::Fails(at) if at == number => return Err(Self::failure()),
            Fault::FailsAfterEffect(at) if at == number => return change.await.and(Err(Self::failure())),
            Fault::ConcurrentWrite(at) if at == number => {
                self.inner.write("main.py".as_ref(), b"theirs\n").await?;
            }
            Fault::Fails(_) | Fault::FailsAfterEffect(_) | Fault::Lost(_) | Fault::ConcurrentWrite(_) => {}
        }
        change.await
    }
}

#[async_trait]
impl ExecutionEnvironment for Faulty {
    fn working_directory(&self) -> &Path {
        self.inner.working_directory()
    }

    fn platform(&self) -> &str {
        self.inner.platform()
    }

    fn os_version(&self) -> &str {
        self.inner.os_version()
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.inner.spawn(command).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.check_connection()?;
        self.inner.read(path, range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.change(self.inner.write(path, bytes)).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.check_connection()?;
        self.inner.metadata(path).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.check_connection()?;
        self.inner.list(path).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.change(self.inner.remove(path)).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.change(self.inner.rename(from, to)).await
    }
}

type Tree = BTreeMap<String, Option<String>>;

/// Returns all paths in the working directory with their content; `None` for directories.
async fn tree(env: &dyn ExecutionEnvironment) -> Tree {
    let mut tree = Tree::new();
    for entry in env.list_directory(Path::new(""), 99).await.unwrap() {
        let content = match env.read(&entry.name, None).await {
            Ok(content) => Some(String::from_utf8(content).unwrap()),
            Err(EnvError::IsADirectory { .. }) => None,
            Err(error) => panic!("{error:?}"),
        };
        tree.insert(entry.name.to_str().unwrap().to_owned(), content);
    }
    tree
}

/// Creates the files of `BEFORE`, in memory or on disk. The harness must outlive the environment.
async fn before(harness: &Harness, in_memory: bool) -> Arc<dyn ExecutionEnvironment> {
    let env: Arc<dyn ExecutionEnvironment> =
        if in_memory { Arc::new(MemoryEnvironment::new("/project")) } else { Arc::clone(&harness.env) as _ };
    for (path, content) in BEFORE {
        env.write(path.as_ref(), content.as_bytes()).await.unwrap();
    }
    env
}

/// Applies the patch with a fault; returns the trees before and after, and the outcome.
async fn apply(fault: Fault, in_memory: bool) -> (Tree, Tree, Result<(), ApplyPlanError>) {
    let harness = Harness::new();
    let env = before(&harness, in_memory).await;
    let patch = parse(EVERYTHING).unwrap();
    let files = read_files(env.as_ref(), &patch).await.unwrap();
    let plan = plan(&patch, &files, &ApplyOptions::default()).unwrap();
    let before = tree(env.as_ref()).await;
    let faulty = Faulty { inner: Arc::clone(&env), fault, changes: AtomicUsize::new(0) };
    let applied = apply_plan(&faulty, &plan).await;
    (before, tree(env.as_ref()).await, applied)
}

fn is_applied(tree: &Tree) -> bool {
    tree.iter().map(|(path, content)| (path.as_str(), content.as_deref())).eq(AFTER)
}

#[tokio::test]
async fn any_failure_restores_the_tree() {
    for in_memory in [true, false] {
        for fault in [Fault::Fails, Fault::FailsAfterEffect] {
            let mut failures = 0;
            loop {
                let (before, after, applied) = apply(fault(failures), in_memory).await;
                let Err(error) = applied else {
                    assert!(is_applied(&after), "{after:?}");
                    break;
                };
                let fault = fault(failures);
                assert!(error.left_changed.is_empty(), "{fault:?}: {error:?}");
                assert!(matches!(error.cause, ApplyPlanCause::Environment(_)), "{fault:?}: {error:?}");
                assert_eq!(after, before, "{fault:?}, in memory: {in_memory}");
                failures += 1;
            }
            // Two reservations and releases, two files set aside and discarded, two renames, six writes.
            assert_eq!(failures, 2 + 2 + 2 + 2 + 6 + 2);
        }
    }
}

#[tokio::test]
async fn files_that_cannot_be_restored_are_listed() {
    let mut lost = 0;
    loop {
        let (before, after, applied) = apply(Fault::Lost(lost), true).await;
        let Err(error) = applied else { break };
        for (path, content) in &before {
            let is_named = error.left_changed.iter().any(|left| left.path == *path);
            assert!(is_named || after.get(path) == Some(content), "{path}: {error:?}\n{after:?}");
        }
        for path in after.iter().filter(|(_, content)| content.is_some()).map(|(path, _)| path) {
            let is_named = error.left_changed.iter().any(|left| {
                left.path == *path || left.kept_at.as_deref().is_some_and(|kept| kept == Path::new(path))
            });
            let is_temporary = path.contains(".pintle-") && error.left_changed.is_empty();
            assert!(is_named || is_temporary || before.contains_key(path), "{path}: {error:?}");
        }
        lost += 1;
    }
    assert_eq!(lost, 16);
}

#[tokio::test]
async fn concurrent_changes_by_others_are_kept() {
    let (mut refused, mut number) = (0, 0);
    loop {
        let (mut before, mut after, applied) = apply(Fault::ConcurrentWrite(number), true).await;
        let theirs = after.get("main.py").unwrap().as_deref() == Some("theirs\n");
        match applied {
            Err(error) => {
                assert!(matches!(error.cause, ApplyPlanCause::Changed), "{error:?}");
                assert_eq!((error.path.as_str(), theirs), ("main.py", true));
                before.remove("main.py");
                after.remove("main.py");
                assert_eq!(after, before);
                refused += 1;
            }
            Ok(()) if theirs => {
                after.insert("main.py".to_owned(), Some("1\n2\n".to_owned()));
                assert!(is_applied(&after), "{after:?}");
            }
            Ok(()) => {
                assert!(is_applied(&after), "{after:?}");
                if number >= 16 {
                    break;
                }
            }
        }
        number += 1;
    }
    assert!(refused >= 10, "{refused}");
}

#[tokio::test]
async fn many_files_are_written_concurrently() {
    let harness = Harness::new();
    let text: String = (0..500)
        .flat_map(|number| {
            ["*** Add File: new/", &format!("{}/{number}\n", number % 7), "+x\n"].map(str::to_owned)
        })
        .collect();
    let patch = parse(&format!("*** Begin Patch\n{text}*** End Patch\n")).unwrap();
    let empty = BTreeMap::new();
    let plan = plan(&patch, &empty, &ApplyOptions::default()).unwrap();
    // The last path is below a file.
    harness.write("file", "x");
    let mut too_much = plan.clone();
    let mut last = too_much.changes.last().unwrap().clone();
    last.path = "file/below".to_owned();
    too_much.changes.push(last);
    let error = apply_plan(harness.env.as_ref(), &too_much).await.unwrap_err();
    assert_eq!((error.path.as_str(), error.left_changed.len()), ("file/below", 0));
    assert_eq!(tree(harness.env.as_ref()).await.len(), 1);
    apply_plan(harness.env.as_ref(), &plan).await.unwrap();
    assert_eq!(tree(harness.env.as_ref()).await.len(), 1 + 1 + 7 + 500);
}

#[tokio::test]
async fn the_total_size_of_files_is_limited() {
    let limit = 2 << 20;
    let half = vec![b'x'; 1 << 20];
    let env = MemoryEnvironment::new("/project")
        .with_file("a", half.clone())
        .with_file("b", half)
        .with_file("c", "x")
        .with_file("empty", "");
    let read = async |names: &[&str]| {
        let text: String = names.iter().map(|name| format!("*** Delete File: {name}\n")).collect();
        let patch = parse(&format!("*** Begin Patch\n{text}*** End Patch\n")).unwrap();
        read_within(limit, &env, &patch).await.map(|files| files.len())
    };
    assert_eq!(read(&["a", "b", "empty"]).await.unwrap(), 3);
    let error = read(&["a", "b", "empty", "c"]).await.unwrap_err();
    assert_eq!(error.to_string(), "c is too large: the files of a patch may hold 2 MiB together");
}
