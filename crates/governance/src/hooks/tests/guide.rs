//! The example of the guide, as it is written there.

use super::*;

/// Returns the blocks of code of the guide, with the names in their first lines.
fn blocks() -> Vec<(String, String)> {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/hooks.md"));
    let guide = guide.unwrap();
    let mut blocks = Vec::new();
    for block in guide.split("```").skip(1).step_by(2) {
        let (_, block) = block.split_once("\n# ").unwrap();
        let (name, text) = block.split_once('\n').unwrap();
        blocks.push((name.to_owned(), text.to_owned()));
    }
    blocks
}

#[tokio::test]
async fn the_example_of_the_guide_works() {
    let fixture = Fixture::new();
    for directory in ["hooks", "src"] {
        std::fs::create_dir_all(fixture.path(directory)).unwrap();
    }
    let blocks = blocks();
    for (name, text) in &blocks {
        fixture.write(name, text);
    }
    let names: Vec<&str> = blocks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["hooks.toml", "hooks/freeze.sh", "hooks/no-todo.sh"]);
    let commands = HookCommands::parse("hooks.toml", &fixture.read("hooks.toml")).unwrap();
    assert_eq!(commands.warnings(), [""; 0]);
    let programs: Vec<PathBuf> = commands.programs(Path::new("")).into_iter().collect();
    assert_eq!(programs, names[1..].iter().map(PathBuf::from).collect::<Vec<_>>());
    let hooks = fixture.hooks_of(commands);
    let session = fixture.session();

    let call = fixture.shell().await;
    let read = fixture.call("read_file", json!({"file_path": "a"})).await;
    let reason = async |call| hooks.before_call(&session, call, &Judgement::new()).await.reason;
    assert_eq!(reason(&call).await, None);
    fixture.write("FREEZE", "release on Monday\n");
    assert_eq!(reason(&call).await.as_deref(), Some("nothing may be changed now: release on Monday"));
    assert_eq!(reason(&read).await, None);

    assert_eq!(hooks.before_end(&session, "done", 0).await, EndAnswer::default());
    fixture.write("src/a.rs", "// TODO\n");
    let EndAnswer { send_on, .. } = hooks.before_end(&session, "done", 0).await;
    assert_eq!(send_on.as_deref(), Some("There is a TODO in src. Do it, or say why not."));
    assert_eq!(hooks.before_end(&session, "done", 1).await, EndAnswer::default());
    assert!(fixture.runs().iter().all(|run| run.failure.is_none()));
}
