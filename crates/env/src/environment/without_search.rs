//! Searches without the feature `search`: the crates of ripgrep are not compiled, so only environments that implement a search
//! can search.

use std::path::PathBuf;

use super::ExecutionEnvironment;
use crate::{
    error::EnvError,
    search::{GlobRequest, GrepOutput, GrepRequest},
    walk::{WalkOutput, WalkRequest},
};

pub(super) async fn find_files<E: ExecutionEnvironment + ?Sized>(
    _env: &E,
    _request: &GlobRequest,
) -> Result<Vec<PathBuf>, EnvError> {
    Err(without_feature("finding files"))
}

pub(super) async fn grep<E: ExecutionEnvironment + ?Sized>(
    _env: &E,
    _request: &GrepRequest,
) -> Result<GrepOutput, EnvError> {
    Err(without_feature("searching files"))
}

pub(super) async fn walk_tree<E: ExecutionEnvironment + ?Sized>(
    _env: &E,
    _request: &WalkRequest,
) -> Result<WalkOutput, EnvError> {
    Err(without_feature("walking a tree"))
}

fn without_feature(operation: &str) -> EnvError {
    EnvError::Unsupported {
        operation: operation.to_owned(),
        environment: "pintle-env without its feature `search`".to_owned(),
    }
}
