//! The process matrix over ssh.

use std::sync::Arc;

use super::service::{Setup, config_file, far_directory};
use crate::{
    environment::ExecutionEnvironment,
    remote::tests::matrix::{alone, matrix},
};

#[test]
fn the_process_matrix_as_root() {
    alone("ssh::tests::matrix::the_process_matrix_as_root", || at("root"));
}

#[test]
fn the_process_matrix_as_another_user() {
    alone("ssh::tests::matrix::the_process_matrix_as_another_user", || at("tester"));
}

#[test]
fn the_process_matrix_within_default_limits() {
    alone("ssh::tests::matrix::the_process_matrix_within_default_limits", || at("limits"));
}

async fn at(host: &str) {
    let Some(services) = config_file() else { return };
    let (far, setup) = (far_directory(host), Setup::new(&services, ""));
    let env = Arc::new(setup.environment(host, far.path()));
    env.initialize().await.unwrap();
    matrix(host, Arc::clone(&env) as Arc<dyn ExecutionEnvironment>, far.path()).await;
    env.cleanup().await.unwrap();
    assert_eq!(setup.sockets(), 0);
}
