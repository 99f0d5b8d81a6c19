use pintle_env::{LocalEnvironment, MemoryEnvironment};
use tempfile::TempDir;

use super::*;
use crate::project_docs::ProjectDocs;

/// A project whose working directory is `src`.
struct Project {
    root: TempDir,
    env: LocalEnvironment,
}

impl Project {
    async fn with(files: &[(&str, &[u8])]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let env = LocalEnvironment::builder(root.path().join("src")).build().unwrap();
        let project = Self { root, env };
        for (name, bytes) in files {
            project.env.write(&project.at(name), bytes).await.unwrap();
        }
        project
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Skills and skipped files, one per line.
    async fn discover(&self, skill_dirs: &[&str]) -> (String, String) {
        let names: Vec<String> = skill_dirs.iter().map(ToString::to_string).collect();
        let docs = ProjectDocs::default().with_skills_of(&self.env, Some(self.root.path()), &names).await;
        let skills = docs.skills.iter().map(|s| format!("{} ({}) {}", s.name, s.path, s.description));
        let skipped = docs.skipped.iter().map(|file| format!("{}: {}", file.path, file.reason));
        let shown =
            |lines: Vec<String>| lines.join("\n").replace(&self.root.path().display().to_string(), "ROOT");
        (shown(skills.collect()), shown(skipped.collect()))
    }
}

fn skill(name: &str, description: &str) -> Vec<u8> {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# How\n").into_bytes()
}

#[tokio::test]
async fn the_nearest_skill_of_a_name_is_used() {
    let project = Project::with(&[
        (".agents/skills/forms/SKILL.md", &skill("forms", "from the root")),
        (".agents/skills/deploy/SKILL.md", &skill("deploy", "from the root")),
        (".agents/skills/README.md", b"not a skill"),
        (".agents/skills/empty/README.md", b"not a skill"),
        ("src/.agents/skills/forms/SKILL.md", &skill("forms", "from src")),
        ("src/.agents/skills/both/SKILL.md", &skill("both", "universal")),
        ("src/.claude/skills/both/SKILL.md", &skill("both", "from the family")),
        ("home/skills/forms/SKILL.md", &skill("forms", "from the user")),
        ("home/skills/mine/SKILL.md", &skill("mine", "from the user")),
        ("src/below/.agents/skills/below/SKILL.md", &skill("below", "not on the way")),
    ])
    .await;
    let home = project.at("home/skills").display().to_string();
    let (skills, skipped) = project.discover(&[&home, ".agents/skills", ".claude/skills"]).await;
    insta::assert_snapshot!(skills, @r"
    both (ROOT/src/.claude/skills/both/SKILL.md) from the family
    deploy (ROOT/.agents/skills/deploy/SKILL.md) from the root
    forms (ROOT/src/.agents/skills/forms/SKILL.md) from src
    mine (ROOT/home/skills/mine/SKILL.md) from the user
    ");
    assert_eq!(skipped, "");
    assert_eq!(project.discover(&[]).await, (String::new(), String::new()));
}

#[tokio::test]
async fn links_to_skills_are_followed() {
    let project = Project::with(&[
        ("shared/forms/SKILL.md", &skill("forms", "shared")),
        (".agents/skills/README.md", b"not a skill"),
        (".claude/settings.json", b"{}"),
    ])
    .await;
    std::os::unix::fs::symlink(project.at("shared/forms"), project.at(".agents/skills/forms")).unwrap();
    std::os::unix::fs::symlink("../.agents/skills", project.at(".claude/skills")).unwrap();
    let (skills, skipped) = project.discover(&[".agents/skills", ".claude/skills"]).await;
    assert_eq!(skills, "forms (ROOT/.claude/skills/forms/SKILL.md) shared");
    assert_eq!(skipped, "");
}

#[tokio::test]
async fn unusable_skills_are_listed_as_skipped() {
    let project = Project::with(&[
        (".agents/skills/bare/SKILL.md", b"# No front matter\n"),
        (".agents/skills/binary/SKILL.md", b"\0\0\0\0"),
        (".agents/skills/directory/SKILL.md/inside.txt", b"SKILL.md is a directory here"),
        (".agents/skills/latin/SKILL.md", b"---\nname: latin\ndescription: caf\xe9\n---\n"),
        (".agents/skills/nameless/SKILL.md", b"---\ndescription: d\n---\n"),
        (".agents/skills/odd/SKILL.md", &skill("odd name", "d")),
        ("src/.agents/skills", b"a file"),
    ])
    .await;
    let looped = project.at(".agents/skills/loop");
    std::os::unix::fs::symlink(&looped, &looped).unwrap();
    std::fs::create_dir(project.at(".agents/skills/turn")).unwrap();
    let looped = project.at(".agents/skills/turn/SKILL.md");
    std::os::unix::fs::symlink(&looped, &looped).unwrap();
    let (skills, skipped) = project.discover(&[".agents/skills"]).await;
    assert_eq!(skills, "latin (ROOT/.agents/skills/latin/SKILL.md) caf\u{fffd}");
    insta::assert_snapshot!(skipped, @r#"
    ROOT/src/.agents/skills: ROOT/src/.agents/skills is not a directory
    ROOT/.agents/skills/bare/SKILL.md: it does not begin with front matter: its first line is not `---`
    ROOT/.agents/skills/binary/SKILL.md: it does not begin with front matter: its first line is not `---`
    ROOT/.agents/skills/directory/SKILL.md: ROOT/.agents/skills/directory/SKILL.md is a directory, expected a file
    ROOT/.agents/skills/loop/SKILL.md: cannot read ROOT/.agents/skills/loop/SKILL.md: Too many levels of symbolic links (os error 40)
    ROOT/.agents/skills/nameless/SKILL.md: its front matter has no `name`
    ROOT/.agents/skills/odd/SKILL.md: its name "odd name" is not 1 to 64 letters, digits, `-` and `_`
    ROOT/.agents/skills/turn/SKILL.md: cannot read ROOT/.agents/skills/turn/SKILL.md: Too many levels of symbolic links (os error 40)
    "#);
}

#[tokio::test]
async fn only_the_start_of_a_huge_skill_is_read() {
    let project = Project::with(&[
        (".agents/skills/huge/SKILL.md", &skill("huge", "a gigabyte")),
        (".agents/skills/open/SKILL.md", b"---\nname: open\n"),
    ])
    .await;
    for name in ["huge", "open"] {
        let path = project.at(".agents/skills").join(name).join("SKILL.md");
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1 << 30).unwrap();
    }
    let (skills, skipped) = project.discover(&[".agents/skills"]).await;
    assert_eq!(skills, "huge (ROOT/.agents/skills/huge/SKILL.md) a gigabyte");
    assert_eq!(
        skipped,
        "ROOT/.agents/skills/open/SKILL.md: \
         its front matter has no end: no later line of the first 16 KiB is `---`"
    );
}

#[tokio::test]
async fn only_the_first_directories_are_read() {
    let env = MemoryEnvironment::new("/p");
    for n in 0..=MAX_PER_DIRECTORY {
        let path = PathBuf::from(format!("/p/.agents/skills/s{n:04}/SKILL.md"));
        env.write(&path, &skill(&format!("s{n:04}"), "d")).await.unwrap();
    }
    let docs = ProjectDocs::default().with_skills_of(&env, None, &[".agents/skills".to_owned()]).await;
    assert_eq!(docs.skills.len(), MAX_PER_DIRECTORY);
    let [skipped] = docs.skipped.as_slice() else { panic!("{:?}", docs.skipped) };
    assert_eq!(skipped.path, "/p/.agents/skills");
    assert_eq!(skipped.reason, "it holds 201 directories, of which only the first 200 are read");
}
