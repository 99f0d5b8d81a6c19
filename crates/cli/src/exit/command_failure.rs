//! How the command reports a failure: its exit status, and its object in JSON output.

use pintle_host::FieldRow;
use pintle_host::failure::Failure;
use serde_json::{Map, Value, json};

use crate::exit::Exit;

/// Failure that ends the command.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    failure: Failure,
    is_in_output: bool,
}

impl CommandFailure {
    /// Creates a failure that standard output already reports.
    pub(crate) fn already_in_output(failure: Failure) -> Self {
        Self { failure, is_in_output: true }
    }

    /// Returns the failure.
    pub(crate) fn failure(&self) -> &Failure {
        &self.failure
    }

    /// Returns the exit status.
    pub(crate) fn exit(&self) -> Exit {
        self.failure.kind().into()
    }

    /// Returns whether standard output already reports the failure.
    pub(crate) fn is_in_output(&self) -> bool {
        self.is_in_output
    }

    /// Replaces the failure.
    pub(crate) fn map(self, replace: impl FnOnce(Failure) -> Failure) -> Self {
        Self { failure: replace(self.failure), ..self }
    }
}

impl From<Failure> for CommandFailure {
    /// Adds the flag of the setting that the failure names as a hint.
    fn from(failure: Failure) -> Self {
        let row = failure.setting().and_then(FieldRow::find);
        let failure = match row.and_then(|row| row.flags.first()) {
            Some(flag) => failure.with_hint(&format!("`--{flag}` sets it")),
            None => failure,
        };
        Self { failure, is_in_output: false }
    }
}

/// Returns a failure as JSON: `kind`, `message`, `exit_code`, `hint` and `details` if present, and the fields of a failed
/// model call.
pub(crate) fn error_object(failure: &Failure) -> Value {
    let exit = Exit::from(failure.kind());
    let info = failure.info().and_then(|info| serde_json::to_value(info).ok());
    let mut object = match info {
        Some(Value::Object(fields)) => fields,
        Some(_) | None => {
            let message = failure.message_without_hint();
            let message = if message.is_empty() { exit.name() } else { message };
            let mut object = Map::new();
            object.insert("kind".to_owned(), json!(exit.name()));
            object.insert("message".to_owned(), json!(message));
            object
        }
    };
    if let Some(hint) = failure.hint() {
        object.insert("hint".to_owned(), json!(hint));
    }
    let details = failure.details_without_hints().trim_end();
    if !details.is_empty() {
        object.insert("details".to_owned(), json!(details));
    }
    object.insert("exit_code".to_owned(), json!(exit.code()));
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use pintle_host::failure::FailureKind;
    use pintle_llm::{Error, ErrorKind};

    use super::*;

    #[test]
    fn the_flag_of_an_invalid_setting_is_a_hint() {
        for (setting, hint) in [
            ("environment.dir", Some("`--dir` sets it")),
            ("environment.roots", Some("`--root` sets it")),
            ("environment.sandbox", Some("`--sandbox` sets it")),
            ("environment.network", Some("`--network` sets it")),
            ("persistence.worktree", Some("`--worktree` sets it")),
            ("tools.only", None),
        ] {
            let failure = CommandFailure::from(Failure::usage("x").with_setting(setting));
            assert_eq!(failure.failure().hint(), hint, "{setting}");
        }
    }

    #[test]
    fn output_is_marked_also_after_a_replacement() {
        let marked = CommandFailure::already_in_output(Failure::failed("x"));
        let marked = marked.map(|_| Failure::silent(FailureKind::Interrupted));
        assert_eq!((marked.is_in_output(), marked.exit()), (true, Exit::Interrupted));
        let unmarked = CommandFailure::from(Failure::usage("x"));
        assert_eq!((unmarked.is_in_output(), unmarked.exit()), (false, Exit::Usage));
    }

    #[test]
    fn failures_convert_to_json() {
        let error = Error::new(ErrorKind::NotFound, "no such model").with_status(404);
        let of_model = Failure::failed("not found: no such model").with_info(error.info());
        let cases = [
            (
                Failure::usage("--dir x: is not a directory").with_hint("do this").with_hint("or that"),
                json!({"kind": "usage", "message": "--dir x: is not a directory", "hint": "do this; or that",
                    "exit_code": 2}),
            ),
            (
                Failure::multi_line(FailureKind::Other, "it does not apply\nline 1\nline 2"),
                json!({"kind": "failed", "message": "it does not apply", "details": "line 1\nline 2",
                    "exit_code": 1}),
            ),
            (
                of_model.with_hint("check the model"),
                json!({"kind": "not_found", "message": "no such model", "retry": "never", "status": 404,
                    "hint": "check the model", "exit_code": 1}),
            ),
            (
                Failure::failed("no key").with_hints_below(&["set one", "or do without"]),
                json!({"kind": "failed", "message": "no key", "hint": "set one; or do without", "exit_code": 1}),
            ),
            (
                Failure::silent(FailureKind::Interrupted),
                json!({"kind": "interrupted", "message": "interrupted", "exit_code": 130}),
            ),
        ];
        for (failure, expected) in cases {
            assert_eq!(error_object(&failure), expected);
        }
    }
}
