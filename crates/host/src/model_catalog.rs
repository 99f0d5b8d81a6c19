//! The models that can be named: the built-in catalog and the catalog of the user.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use pintle_llm::Catalog;

use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// Environment variable with the path of a catalog file, overridden by `--catalog`.
const VARIABLE: &str = "PINTLE_CATALOG";

/// Returns the built-in catalog, overridden by the file named by flag or variable.
pub fn load(flag: Option<&Path>, process_env: &ProcessEnv) -> Result<Cow<'static, Catalog>, Failure> {
    let variable = process_env.variable(VARIABLE).map(PathBuf::from);
    // The settings of a session contain the value of the variable.
    let is_variable = flag.is_none() || flag == variable.as_deref();
    let source = if is_variable { VARIABLE } else { "--catalog" };
    let Some(file) = flag.map(Path::to_path_buf).or(variable) else {
        return Ok(Cow::Borrowed(Catalog::built_in()));
    };
    Catalog::from_file(&file)
        .map(Cow::Owned)
        .map_err(|error| Failure::usage(format!("{source}: cannot use {}", file.display())).caused_by(&error))
}
