//! Makes an environment in a folder, and sees a relative one refused.

use pintle_env::{ExecutionEnvironment, LocalEnvironment};

fn main() {
    let folder = std::env::temp_dir();
    let local = LocalEnvironment::builder(&folder).build().expect("a folder that is there");
    assert_eq!(local.resolve("notes/../a.txt".as_ref()), local.working_directory().join("a.txt"));
    let refused = LocalEnvironment::builder("not/absolute").build().expect_err("a relative folder");
    assert!(refused.to_string().contains("not/absolute"), "{refused}");
}
