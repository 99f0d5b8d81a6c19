//! Scripts for the sessions of a case: one writes the anchor, each candidate makes its change, and the reviewer approves.
//!
//! The role of a session follows from the schema of its answer and from its working directory, which are in its first request.

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::read_text;
use pintle_workflow::results::ResultsFormat;
use serde::Serialize;
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

#[derive(Debug, Serialize)]
struct ScriptFile {
    name: &'static str,
    dialect: &'static str,
    turn: Vec<ScriptedTurn>,
}

#[derive(Debug, Default, Serialize)]
struct ScriptedTurn {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    when: Vec<ScriptedVariant>,
}

#[derive(Clone, Debug, Serialize)]
struct ScriptedVariant {
    request_contains: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    call: Vec<ScriptedCall>,
}

#[derive(Clone, Debug, Serialize)]
struct ScriptedCall {
    tool: &'static str,
    arguments: ShellArguments,
}

#[derive(Clone, Debug, Serialize)]
struct ShellArguments {
    command: String,
}

/// Returns the finding of a scripted reviewer whose request contains this text.
pub(crate) fn seen(text: &str) -> String {
    format!("{SEEN}`{text}`")
}

/// Returns the script of a case, as TOML.
pub(crate) async fn script_of_case(case: &CheatCase, machine: &Machine) -> Result<String, Failure> {
    let mut first = ScriptedTurn::default();
    if let Some(finds) = &case.review_finds {
        let answer = json!({"findings": [seen(finds)], "remarks": ""});
        first.when.push(ScriptedVariant::text(&[REVIEW, finds], &answer));
    }
    let approval = json!({"findings": [], "remarks": ""});
    first.when.push(ScriptedVariant::text(&[REVIEW], &approval));
    let mut answers = vec![ScriptedVariant::text(&[ANCHOR], &answer(&case.proposal))];
    if let Some((files, proposal)) = &case.second_anchor {
        let change = GoldChange { files: Some(files.clone()), ..GoldChange::default() };
        first.when.push(ScriptedVariant::call(&[ANCHOR, SECOND], call(&change, machine).await?));
        answers.insert(0, ScriptedVariant::text(&[ANCHOR, SECOND], &answer(proposal)));
    }
    let anchor = GoldChange { files: case.anchor.clone(), ..GoldChange::default() };
    first.when.push(ScriptedVariant::call(&[ANCHOR], call(&anchor, machine).await?));
    for (number, change) in case.changes().enumerate() {
        let place = format!("/candidates/{number}/");
        first.when.push(ScriptedVariant::call(&[&place], call(change, machine).await?));
    }
    first.text = Some("Done.".to_owned());
    let later = || ScriptedTurn { text: first.text.clone(), when: answers.clone() };
    let mut turn: Vec<ScriptedTurn> = (1..TURNS).map(|_| later()).collect();
    turn.insert(0, first);
    toml::to_string(&ScriptFile { name: "case", dialect: "anthropic", turn })
        .or_failed("a script cannot be written as TOML")
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

/// Returns the call that makes a change. A session has only its clone, so the call contains the files.
async fn call(change: &GoldChange, machine: &Machine) -> Result<ScriptedCall, Failure> {
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
    Ok(ScriptedCall { tool: "Bash", arguments: ShellArguments { command } })
}

impl ScriptedVariant {
    fn text(request_contains: &[&str], text: &Value) -> Self {
        let request_contains = request_contains.iter().map(|text| (*text).to_owned()).collect();
        Self { request_contains, text: Some(text.to_string()), call: Vec::new() }
    }

    fn call(request_contains: &[&str], call: ScriptedCall) -> Self {
        let request_contains = request_contains.iter().map(|text| (*text).to_owned()).collect();
        Self { request_contains, text: None, call: vec![call] }
    }
}
