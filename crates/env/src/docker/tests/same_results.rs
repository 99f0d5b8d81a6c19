//! Searches the same tree locally and in a container that has nothing but busybox.
//!
//! By default, the tests over ssh and in a local shell cover this.

use pintle_test_conditions::is_full;

use super::image;
use crate::{
    DockerEnvironment, ExecutionEnvironment, Mount,
    remote::tests::same_results::{fill, searches_find_the_same, walks_find_the_same},
};

#[tokio::test]
async fn local_and_container_searches_agree() {
    let Some(image) = image().filter(|_| is_full()) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fill(&root);
    let image = image.with_mount(Mount::new(&root, &root));
    let remote = DockerEnvironment::start(image).with_working_directory(&root).build().unwrap();
    remote.initialize().await.unwrap();
    searches_find_the_same(&remote, &root).await;
    walks_find_the_same(&remote, &root).await;
    remote.cleanup().await.unwrap();
}
