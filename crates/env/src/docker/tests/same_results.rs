//! Searches the same tree locally and in a container that has nothing but busybox.
//!
//! By default, the contract of searches and the tests over ssh cover the searches.

use pintle_test_conditions::is_full;

use super::image;
use crate::{
    DockerEnvironment, ExecutionEnvironment, Mount,
    remote::tests::same_results::{fill, searches_find_the_same, walks_find_the_same},
};

#[tokio::test]
async fn local_and_container_searches_agree() {
    let Some(image) = image() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fill(&root);
    let image = image.with_mount(Mount::new(&root, &root));
    let remote = DockerEnvironment::start(image).with_working_directory(&root).build().unwrap();
    remote.initialize().await.unwrap();
    if is_full() {
        searches_find_the_same(&remote, &root).await;
    }
    walks_find_the_same(&remote, &root).await;
    remote.cleanup().await.unwrap();
}
