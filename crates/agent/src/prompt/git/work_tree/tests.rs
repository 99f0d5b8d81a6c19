use pintle_env::{ConfinedEnvironment, MemoryEnvironment};

use super::*;

fn found(root: &str, branch: Option<&str>, git_directory: &str) -> WorkTreeSearch {
    WorkTreeSearch::Found(WorkTree {
        root: root.into(),
        branch: branch.map(str::to_owned),
        git_directory: git_directory.into(),
    })
}

fn environment(files: &[(&str, &str)]) -> MemoryEnvironment {
    let start = MemoryEnvironment::new("/p/a/b");
    files.iter().fold(start, |env, (path, content)| env.with_file(path, *content))
}

#[tokio::test]
async fn the_nearest_work_tree_is_found() {
    let main = "ref: refs/heads/main\n";
    for (files, expected) in [
        (&[][..], WorkTreeSearch::Outside),
        (&[("/p/a/b/.gitignore", "x")][..], WorkTreeSearch::Outside),
        (&[("/p/a/b/.git/HEAD", main)][..], found("/p/a/b", Some("main"), "/p/a/b/.git")),
        (&[("/.git/HEAD", "0123abcdef\n")][..], found("/", Some("(detached)"), "/.git")),
        (&[("/p/.git/HEAD", main), ("/.git/HEAD", "0123\n")][..], found("/p", Some("main"), "/p/.git")),
        (&[("/p/.git/HEAD", "ref: refs/heads/a/b\u{7}\n")][..], found("/p", Some("a/b"), "/p/.git")),
        (&[("/p/.git/HEAD", "ref: refs/heads/.invalid\n")][..], found("/p", None, "/p/.git")),
        (&[("/p/.git/HEAD", "ref: refs/other/x\n")][..], found("/p", None, "/p/.git")),
        (&[("/p/.git/HEAD", "")][..], found("/p", None, "/p/.git")),
        (
            &[("/p/.git/HEAD", main), ("/p/.git/config", "[core]\n\tbare = false\n")][..],
            found("/p", Some("main"), "/p/.git"),
        ),
        (
            &[("/p/a/.git", "gitdir: ../m/w\n"), ("/p/a/../m/w/HEAD", main)][..],
            found("/p/a", Some("main"), "/p/a/../m/w"),
        ),
        (&[("/p/.git", "gitdir: /m\n")][..], found("/p", None, "/m")),
        // Only git can interpret these.
        (&[("/p/.git", "something else\n")][..], WorkTreeSearch::Unknown),
        (&[("/p/.git", "gitdir: \n")][..], WorkTreeSearch::Unknown),
        (&[("/p/.git/HEAD/x", "")][..], WorkTreeSearch::Unknown),
        (
            &[("/p/.git/HEAD", main), ("/p/.git/config", "[core]\n\tworkTree = /q\n")][..],
            WorkTreeSearch::Unknown,
        ),
        (&[("/p/a/.git/config", ""), ("/p/.git/HEAD", main)][..], WorkTreeSearch::Unknown),
    ] {
        assert_eq!(WorkTree::find(&environment(files)).await, expected, "{files:?}");
    }
}

#[tokio::test]
async fn directories_that_cannot_be_read_are_left_to_git() {
    let env = environment(&[("/p/.git/HEAD", "ref: refs/heads/main\n")]);
    for (root, expected) in [("/p", found("/p", Some("main"), "/p/.git")), ("/p/a", WorkTreeSearch::Unknown)]
    {
        let confined = ConfinedEnvironment::new(env.clone(), [root]);
        assert_eq!(WorkTree::find(&confined).await, expected, "{root}");
    }
}

#[tokio::test]
async fn the_size_of_the_index_decides_whether_a_work_tree_is_large() {
    let head = ("/p/.git/HEAD", "ref: refs/heads/main\n");
    let index = "x".repeat(usize::try_from(LARGE_INDEX).unwrap());
    for (files, is_large) in [
        (&[head][..], false),
        (&[head, ("/p/.git/index", &index[1..])][..], false),
        (&[head, ("/p/.git/index", index.as_str())][..], true),
    ] {
        let env = environment(files);
        let WorkTreeSearch::Found(work_tree) = WorkTree::find(&env).await else { panic!() };
        assert_eq!(work_tree.is_large(&env).await, is_large);
    }
}
