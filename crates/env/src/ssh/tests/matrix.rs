//! The process matrix over ssh.

use std::sync::Arc;

use super::service::{Harness, config_file, remote_directory};
use crate::{
    environment::ExecutionEnvironment,
    remote::tests::matrix::{in_own_process, matrix},
};

#[test]
fn the_process_matrix_as_root() {
    in_own_process("ssh::tests::matrix::the_process_matrix_as_root", || at("root"));
}

#[test]
fn the_process_matrix_as_another_user() {
    in_own_process("ssh::tests::matrix::the_process_matrix_as_another_user", || at("tester"));
}

#[test]
fn the_process_matrix_within_default_limits() {
    in_own_process("ssh::tests::matrix::the_process_matrix_within_default_limits", || at("limits"));
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
