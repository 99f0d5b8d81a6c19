//! The stored format of a result. It contains only once an output that ends the result's text.

use std::time::Duration;

use pintle_env::Output;
use pintle_llm::ToolResult;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Execution;
use crate::error::ToolErrorKind;
use crate::tool::FileChange;

#[derive(Serialize)]
struct SerializedExecution<'e> {
    result: &'e ToolResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'e Output>,
    /// Number of bytes at the end of the result's text that are the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ToolErrorKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_out: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "<[FileChange]>::is_empty")]
    changes: &'e [FileChange],
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'e str>,
}

#[derive(Deserialize)]
struct DeserializedExecution {
    result: ToolResult,
    output: Option<Output>,
    output_bytes: Option<usize>,
    error: Option<ToolErrorKind>,
    timed_out: Option<Duration>,
    exit_code: Option<i32>,
    #[serde(default)]
    changes: Vec<FileChange>,
    question: Option<String>,
    stop: Option<String>,
}

impl Serialize for Execution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let output_bytes = shared_bytes(&self.result, &self.output);
        let stored = SerializedExecution {
            result: &self.result,
            output: output_bytes.is_none().then_some(&self.output),
            output_bytes,
            error: self.error,
            timed_out: self.timed_out,
            exit_code: self.exit_code,
            changes: &self.changes,
            question: self.question.as_deref(),
            stop: self.stop.as_deref(),
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Execution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = DeserializedExecution::deserialize(deserializer)?;
        let output = match (read.output, read.output_bytes) {
            (Some(output), _) => output,
            (None, Some(bytes)) => {
                let text = read.result.content.as_str().unwrap_or_default();
                let start = text.len().checked_sub(bytes);
                let tail = start.and_then(|start| text.get(start..));
                Output::from(tail.ok_or_else(|| D::Error::custom("the result has no such output"))?)
            }
            (None, None) => return Err(D::Error::missing_field("output")),
        };
        Ok(Self {
            result: read.result,
            output,
            error: read.error,
            timed_out: read.timed_out,
            exit_code: read.exit_code,
            changes: read.changes,
            question: read.question,
            stop: read.stop,
        })
    }
}

/// Returns the size of an output that is in memory and ends the result's text.
fn shared_bytes(result: &ToolResult, output: &Output) -> Option<usize> {
    let Value::String(text) = &result.content else { return None };
    let bytes = usize::try_from(output.len()).ok().filter(|bytes| *bytes <= text.len())?;
    if output.is_spooled() || output.dropped() > 0 {
        return None;
    }
    let held = output.read_at(0, bytes).ok()?;
    text.as_bytes().ends_with(&held).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(content: &str, output: &str) -> (Value, Execution) {
        let result = ToolResult::new("a", content, false);
        let execution = Execution::new(result, Output::from(output));
        let json = serde_json::to_value(&execution).unwrap();
        let read: Execution = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(read, execution, "{json}");
        (json, read)
    }

    #[test]
    fn an_output_that_ends_the_text_is_stored_once() {
        for (content, output, bytes) in
            [("exit code: 1\nwörds\n", "wörds\n", Some(7)), ("same", "same", Some(4)), ("x", "", Some(0))]
        {
            let (json, _) = stored(content, output);
            assert_eq!((json.get("output"), json["output_bytes"].as_u64()), (None, bytes), "{json}");
        }
        let (json, _) = stored("[... 10 lines]\nend", "much more\nend");
        assert_eq!((json["output"].as_str(), json.get("output_bytes")), (Some("much more\nend"), None));
    }

    #[test]
    fn a_size_that_does_not_fit_is_refused() {
        let (json, _) = stored("exit code: 1\nwörds\n", "wörds\n");
        for bytes in [100, 5] {
            let mut wrong = json.clone();
            wrong["output_bytes"] = bytes.into();
            assert!(serde_json::from_value::<Execution>(wrong).is_err(), "{bytes}");
        }
        let mut wrong = json;
        wrong.as_object_mut().unwrap().remove("output_bytes");
        assert!(serde_json::from_value::<Execution>(wrong).is_err());
    }
}
