//! `--output-schema`: the schema that the final answer of a run must match.

use std::path::Path;

use pintle_host::answered_run::REPAIRS;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env;
use pintle_llm::AnswerSchema;

/// Reads the schema for the answers of a run.
pub(crate) fn read(path: &Path) -> Result<AnswerSchema, Failure> {
    let wrong = format!("--output-schema {}: expected a JSON Schema", path.display());
    let text = process_env::read_text("schema", path)?;
    let schema = serde_json::from_str(&text).or_usage(&wrong)?;
    AnswerSchema::new(schema, REPAIRS).or_usage(&wrong)
}
