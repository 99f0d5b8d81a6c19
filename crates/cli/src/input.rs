//! Inputs of commands besides their arguments: the prompt, and the schema of the final response.

pub(crate) mod output_schema;
mod piped;
pub(crate) mod prompt_source;
