//! Lines of the journal of a task.

use pintle_agent::{Principal, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::Contract;
use crate::task::TaskInput;

/// Version of the journal. Any other version is refused.
const VERSION: u32 = 1;

/// A line of the journal of a task.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JournalLine {
    /// The first line.
    Contract(Box<Contract>),
    /// Any other line.
    Input {
        at: Timestamp,
        /// Id under which it was posted.
        posted: Option<String>,
        by: Option<Principal>,
        input: TaskInput,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ContractLine {
    task: u32,
    contract: Value,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InputLine {
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    posted: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<Principal>,
    task_input: TaskInput,
}

impl JournalLine {
    /// Parses a line. Returns `None` for a line of the store itself.
    ///
    /// # Errors
    ///
    /// The problem, as text.
    pub(super) fn parse(object: &str) -> Result<Option<Self>, String> {
        let value: Value = serde_json::from_str(object).map_err(|error| error.to_string())?;
        if value.get("task").is_some() {
            let line: ContractLine = serde_json::from_value(value).map_err(|error| error.to_string())?;
            if line.task != VERSION {
                return Err(format!("it has version {}, and this is version {VERSION}", line.task));
            }
            let contract = serde_json::from_value(line.contract).map_err(|error| error.to_string())?;
            return Ok(Some(Self::Contract(Box::new(contract))));
        }
        if value.get("task_input").is_some() {
            let line: InputLine = serde_json::from_value(value).map_err(|error| error.to_string())?;
            let InputLine { at, posted, by, task_input: input } = line;
            return Ok(Some(Self::Input { at, posted, by, input }));
        }
        Ok(None)
    }
}

/// Encodes the first line.
pub(super) fn encode_contract(contract: &Contract) -> Result<String, serde_json::Error> {
    serde_json::to_string(&ContractLine { task: VERSION, contract: serde_json::to_value(contract)? })
}

/// Encodes the line of an input.
pub(super) fn encode_input(
    at: Timestamp,
    posted: Option<&str>,
    by: Option<Principal>,
    input: &TaskInput,
) -> Result<String, serde_json::Error> {
    let posted = posted.map(str::to_owned);
    serde_json::to_string(&InputLine { at, posted, by, task_input: input.clone() })
}
