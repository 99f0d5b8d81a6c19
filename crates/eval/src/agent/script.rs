//! Scripts for the sessions of a case: one writes the anchor, each candidate makes its change, and the reviewer approves.
//!
//! The role of a session follows from the schema of its answer and from its working directory, which are in its first request.

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::read_text;
use pintle_workflow::results::ResultsFormat;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::suite::{CheatCase, GoldChange, ScriptedProposal};

/// Property of the answer of a reviewer.
const REVIEW: &str = "\"remarks\"";

/// Property of the answer of a session that writes an anchor.
const ANCHOR: &str = "\"regression\"";

/// Part of the working directory of the session that writes the second anchor.
const SECOND: &str = "/hidden-anchor/";

/// Number of turns. An anchor may be proposed three times, and each attempt of a candidate has a turn.
const TURNS: usize = 8;

/// Start of the finding of the reviewer.
const SEEN: &str = "the change to review contains ";

/// Returns the finding of a scripted reviewer whose request contains this text.
pub(crate) fn seen(text: &str) -> String {
    format!("{SEEN}`{text}`")
}

/// Returns the script of a case, as TOML.
pub(crate) async fn script_of_case(case: &CheatCase, machine: &Machine) -> Result<String, Failure> {
    let mut first = Vec::new();
    if let Some(finds) = &case.review_finds {
        first.push(text(&[REVIEW, finds], &json!({"findings": [seen(finds)], "remarks": ""})));
    }
    first.push(text(&[REVIEW], &json!({"findings": [], "remarks": ""})));
    let mut later = vec![text(&[ANCHOR], &answer(&case.proposal))];
    if let Some((files, proposal)) = &case.second_anchor {
        let change = GoldChange { files: Some(files.clone()), ..GoldChange::default() };
        first.push(call(&[ANCHOR, SECOND], &change, machine).await?);
        later.insert(0, text(&[ANCHOR, SECOND], &answer(proposal)));
    }
    let anchor = GoldChange { files: case.anchor.clone(), ..GoldChange::default() };
    first.push(call(&[ANCHOR], &anchor, machine).await?);
    for (number, change) in case.changes().enumerate() {
        first.push(call(&[&format!("/candidates/{number}/")], change, machine).await?);
    }
    let variants = std::iter::once(&first).chain(std::iter::repeat_n(&later, TURNS - 1));
    let turns: Vec<Value> = variants.map(|when| json!({"text": "Done.", "when": when})).collect();
    toml::to_string(&json!({"name": "case", "dialect": "anthropic", "turn": turns}))
        .or_failed("a script cannot be written as TOML")
}

/// Returns the text with which sessions answer requests that contain these texts.
fn text(request_contains: &[&str], text: &Value) -> Value {
    json!({"request_contains": request_contains, "text": text.to_string()})
}

/// Returns the answer of a session that writes an anchor. Formats that the schema does not name are recognized.
fn answer(proposal: &ScriptedProposal) -> Value {
    let ScriptedProposal { command, results, report } = proposal;
    let is_named = |format: &ResultsFormat| {
        matches!(
            format,
            ResultsFormat::Cargo | ResultsFormat::Pytest | ResultsFormat::Junit | ResultsFormat::Tap
        )
    };
    json!({"command": command, "results": results.filter(is_named), "report": report})
}

/// Returns the call of sessions whose requests contain these texts. It makes a change. A session has only its clone, so the call
/// contains the files.
async fn call(request_contains: &[&str], change: &GoldChange, machine: &Machine) -> Result<Value, Failure> {
    let mut command = String::new();
    if let Some(files) = &change.files {
        let packed = machine.git(files, "tar -cf - . | gzip -9 | base64").await?;
        // Files get the time at which the session works.
        command
            .push_str(&format!("base64 -d <<'END' | gzip -d | tar -xmf - --no-same-owner\n{packed}\nEND\n"));
    }
    if let Some(script) = &change.script {
        command.push_str(&format!("(\n{}\n)\n", read_text("script", script)?));
    }
    if command.is_empty() {
        command.push_str("true");
    }
    let call = json!({"tool": "Bash", "arguments": {"command": command}});
    Ok(json!({"request_contains": request_contains, "call": [call]}))
}
