//! Creates an environment in a directory, and checks that a relative path is refused.

use pintle_env::{ExecutionEnvironment, LocalEnvironment};

fn main() {
    let directory = std::env::temp_dir();
    let local = LocalEnvironment::builder(&directory).build().expect("an existing directory");
    assert_eq!(local.resolve("notes/../a.txt".as_ref()), local.working_directory().join("a.txt"));
    let refused = LocalEnvironment::builder("not/absolute").build().expect_err("a relative directory");
    assert!(refused.to_string().contains("not/absolute"), "{refused}");
}
