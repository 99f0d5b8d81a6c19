//! Custom execution environments (section 4.3): every tool of every profile works through the trait.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_env::{
    Command, CommandScript, DirEntry, EnvError, ExecutionEnvironment, MemoryEnvironment, Metadata, Process,
    contract,
};
use pintle_testkit::Dialect;
use pintle_tests::own_environment::LaunchingEnvironment;

use crate::harness::{Harness, in_each_dialect, profile};

in_each_dialect![a_launcher_serves_every_tool, an_environment_of_primitives_serves_every_tool];

/// An environment with only the required methods. Its files are in memory, so a tool that bypassed it would find none.
#[derive(Debug)]
struct Primitives(MemoryEnvironment);

#[async_trait::async_trait]
impl ExecutionEnvironment for Primitives {
    fn working_directory(&self) -> &Path {
        self.0.working_directory()
    }

    fn platform(&self) -> &str {
        "primitives"
    }

    fn os_version(&self) -> &str {
        "1"
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.0.spawn(command).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.0.read(path, range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.0.write(path, bytes).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.0.metadata(path).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.0.list(path).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.0.remove(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.0.rename(from, to).await
    }
}

/// A call of each tool, in the order in which they are made: the arguments, and text of the result.
const CALLS: [(&str, &str, &str); 9] = [
    ("read_file", "file_path = 'src/a.txt'", "1 | one"),
    ("read_many_files", "paths = ['src/*.txt']", "1 | one"),
    ("list_dir", "path = 'src'", "a.txt"),
    ("grep", "pattern = 'o.e'", "src/a.txt:1:one"),
    ("glob", "pattern = '**/*.txt'", "src/a.txt"),
    ("shell", "command = 'echo \"this is the $SHIP\"'", "this is the Beagle\n"),
    ("write_file", "file_path = 'b.txt', content = 'b'", "b.txt"),
    ("edit_file", "file_path = 'src/a.txt', old_string = 'one', new_string = 'two'", "src/a.txt"),
    (
        "apply_patch",
        "patch = \"*** Begin Patch\\n*** Update File: src/a.txt\\n@@\\n-one\\n+two\\n*** End Patch\\n\"",
        "src/a.txt",
    ),
];

async fn serves_every_tool(dialect: Dialect, make_env: impl FnOnce(&Path) -> Arc<dyn ExecutionEnvironment>) {
    let tools: Vec<String> = profile(dialect).tools().iter().map(|tool| tool.name.clone()).collect();
    let calls: Vec<_> = CALLS.iter().filter(|(tool, ..)| tools.iter().any(|name| name == tool)).collect();
    assert_eq!(calls.len(), tools.len(), "a call for each of {tools:?}");
    let (mut turns, mut expected) = (String::new(), String::new());
    for (tool, arguments, result) in calls {
        turns +=
            &format!("[[turn]]\n{expected}[[turn.call]]\ntool = \"{tool}\"\narguments = {{ {arguments} }}\n");
        expected = format!("[[turn.expect]]\ncall = 0\nis_error = false\ncontains = '''{result}'''\n");
    }
    turns += &format!("[[turn]]\ntext = \"Done.\"\n{expected}");
    let mut made = None;
    let harness = Harness::in_env(dialect, &turns, |directory| {
        let env = make_env(directory);
        made = Some(Arc::clone(&env));
        env
    })
    .await;
    let env = made.expect("the session has an environment");
    env.write(Path::new("src/a.txt"), b"one\n").await.unwrap();
    assert_eq!(harness.run("Use all tools").await.1.text, "Done.");
    assert!(
        harness.session.history().iter().flat_map(|turn| turn.item.results()).all(|result| !result.is_error)
    );
    assert_eq!(env.read(Path::new("src/a.txt"), None).await.unwrap(), b"two\n");
    assert_eq!(env.read(Path::new("b.txt"), None).await.unwrap(), b"b");
    harness.finish().await;
}

async fn a_launcher_serves_every_tool(dialect: Dialect) {
    serves_every_tool(dialect, |directory| {
        let directory = directory.canonicalize().unwrap();
        Arc::new(LaunchingEnvironment::new(["env", "SHIP=Beagle"], &directory, std::env::vars_os()).unwrap())
    })
    .await;
}

async fn an_environment_of_primitives_serves_every_tool(dialect: Dialect) {
    let memory = MemoryEnvironment::new("/nowhere/project")
        .with_commands(|_| CommandScript::exit(0).stdout("this is the Beagle\n"));
    serves_every_tool(dialect, |_| Arc::new(Primitives(memory))).await;
}

#[tokio::test]
async fn the_environment_of_primitives_keeps_the_contract() {
    let env = Primitives(MemoryEnvironment::new("/nowhere/project"));
    contract::files(&env, &PathBuf::from("/nowhere/project/files")).await.unwrap();
    contract::search(&env, &PathBuf::from("/nowhere/project/search")).await.unwrap();
}
