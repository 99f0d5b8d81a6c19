//! The process matrix over ssh.

use std::sync::Arc;

use pintle_test_conditions::cases;

use super::service::{Harness, config_file, remote_directory};
use crate::{
    environment::ExecutionEnvironment,
    remote::tests::matrix::{in_own_process, matrix},
};

/// By default within a server's default limits; with `--full` also as root, and without such limits.
#[test]
fn the_process_matrix() {
    in_own_process("ssh::tests::matrix::the_process_matrix", async || {
        for host in cases(&["limits"][..], &["limits", "root", "tester"]) {
            at(host).await;
        }
    });
}

async fn at(host: &str) {
    let Some(services) = config_file() else { return };
    let (far, harness) = (remote_directory(host), Harness::new(&services, ""));
    let env = Arc::new(harness.environment(host, far.path()));
    env.initialize().await.unwrap();
    matrix(host, Arc::clone(&env) as Arc<dyn ExecutionEnvironment>, far.path()).await;
    env.cleanup().await.unwrap();
    assert_eq!(harness.sockets(), 0);
}
