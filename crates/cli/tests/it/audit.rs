//! `pintle audit`: reports on sessions of a scripted model, verified first.

use std::path::{Path, PathBuf};
use std::process::Command;

use pintle_agent::Record;
use pintle_governance::audit::{Audit, AuditReport, CallHistory, CallOutcome};
use serde_json::Value;

use crate::harness::{CommandOutput, KEY, pintle, run};

/// A session of a scripted model in a directory of its own.
struct Audited {
    directory: tempfile::TempDir,
    state: tempfile::TempDir,
    id: String,
}

impl Audited {
    /// Runs a script with this task.
    fn new(turns: &str, task: &str, arguments: &[&str]) -> Self {
        let (directory, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let script = state.path().join("script.toml");
        std::fs::write(&script, format!("name = \"audit\"\n{turns}")).unwrap();
        let mut command = pintle(&["run", "--provider", "scripted", "--dialect", "anthropic"]);
        command.args(["--model", "claude-opus-4-6", "--toolset", "spec", "--no-sandbox"]);
        command.arg("--script").arg(&script).arg("--dir").arg(directory.path());
        command.args(arguments).arg(task).env("PINTLE_STATE_DIR", state.path());
        let output = run(&mut command);
        assert!(matches!(output.code, Some(0 | 5)), "{output:?}");
        let mut audited = Self { directory, state, id: String::new() };
        let list = run(&mut audited.command(&["sessions", "list", "--all", "--output", "json"]));
        let list: Value = serde_json::from_str(&list.stdout).unwrap();
        let id = list.pointer("/0/id").and_then(Value::as_str).unwrap();
        id.clone_into(&mut audited.id);
        audited
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = pintle(arguments);
        command.env("PINTLE_STATE_DIR", self.state.path());
        command
    }

    fn audit(&self, arguments: &[&str]) -> CommandOutput {
        run(&mut self.command(&[&["audit", self.id.as_str()], arguments].concat()))
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.audit(arguments);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
        output.stdout
    }

    fn report(&self, arguments: &[&str]) -> (Option<i32>, AuditReport) {
        let output = self.audit(&[arguments, &["--output", "json"]].concat());
        (
            output.code,
            serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}")),
        )
    }

    /// Returns the only segment of the session's journal.
    fn segment(&self) -> PathBuf {
        let directory = self.state.path().join("sessions/sessions").join(&self.id);
        let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
        let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        files.filter(is_segment).max().unwrap()
    }

    /// Replaces what differs from run to run.
    fn redacted(&self, text: &str) -> String {
        let directory = self.directory.path().canonicalize().unwrap();
        let text = text.replace(&self.id, "[id]").replace(directory.to_str().unwrap(), "[directory]");
        // Who runs the tests, and where, is the name of who submits.
        let (_, report) = self.report(&[]);
        let people =
            report.audit.iter().flat_map(|audit| &audit.inputs).filter_map(|input| input.by.as_ref());
        let text = people.fold(text, |text, by| text.replace(by.as_str(), "[person]"));
        let text = text.replace(concat!("version ", env!("CARGO_PKG_VERSION")), "version [version]");
        let line = |line: &str| {
            // The prompt names the directory and the day, so its size varies, and with it the cost.
            let varies = line.contains(" input and ") || line.contains(" ms, ");
            let is_count = |word: &str| varies && word.starts_with(|c: char| c.is_ascii_digit() || c == '$');
            let word = |word: &str| match stable(word) {
                same if same == word && is_count(word) => "[n]".to_owned(),
                other => other,
            };
            line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n"
        };
        text.lines().map(line).collect()
    }
}

/// Returns a word, or its kind if it differs from run to run.
fn stable(word: &str) -> String {
    let end = word.trim_end_matches([',', ';']);
    let rest = &word[end.len()..];
    let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_time = end.len() == 24 && end.ends_with('Z') && end.contains('T');
    let is_ticket = end.len() == 32 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    let kind = if is_time {
        "[time]"
    } else if end.rsplit(':').next().is_some_and(is_hash) {
        "[hash]"
    } else if end.starts_with("toolu_") || end.starts_with("msg_") || is_ticket {
        "[id]"
    } else {
        return word.to_owned();
    };
    format!("{kind}{rest}")
}

const TURNS: &str = r#"
[[turn]]
text = "I write <script>alert(1)</script>."
[[turn.call]]
tool = "write_file"
arguments = { file_path = "a<script>.txt", content = "<script>alert(1)</script>\n" }
[[turn]]
[[turn.call]]
tool = "shell"
arguments = { command = "touch b" }
[[turn]]
text = "Done."
"#;

fn written_and_denied() -> Audited {
    Audited::new(TURNS, "Write a <script>.", &["--mode", "edit", "--deny", "shell(rm *)"])
}

fn only<'a>(report: &'a AuditReport, tool: &str) -> &'a CallHistory {
    let mut found = report.calls().filter(|call| call.proposal.tool == tool);
    let call = found.next().unwrap();
    assert!(found.next().is_none(), "{report:?}");
    call
}

#[test]
fn text_shows_inputs_decisions_effects_and_cost() {
    let audited = written_and_denied();
    insta::assert_snapshot!(audited.redacted(&audited.text(&[])), @r#"
    Audit of session [id]
    chain       verified to line 28, head [hash]; 0 large values, 2 checkpoints
    note        damage to the newest barrier, and lines cut off at the end, show only against a head kept elsewhere (--head)
    directory   [directory]
    model       anthropic claude-opus-4-6, from [time]
    created     [time] by version [version], record format 6
    state       idle, last event #27 [time]

    Summary
      calls       1 shell rejected
      calls       1 write_file succeeded
      refused     [id] shell: rejected, rules: mode edit
      file        a<script>.txt, +1 -0 lines in 1 call

    Spending
      model       anthropic claude-opus-4-6: [n] responses, [n] input and [n] output tokens, cost unknown
      in total    [n] input and [n] output tokens, [n] started call, cost unknown, with subagents

    Inputs
      #2 [time] submitted by [person], run 0
        text
          | Write a <script>.
        run ended   completed

    Policy
      #1 [time]
        mode        edit
        rule        deny shell(rm *) (--deny)
        sandbox     off
        by          [person]

    Calls
      [id] write_file: succeeded
        arguments   {"content":"<script>alert(1)</script>\n","file_path":"a<script>.txt"}
        judged      #9 [time] allow by rules: mode edit
        ran         [time], [n] ms, [n] bytes of output
        changed     a<script>.txt added, +1 -0 lines
      [id] shell: rejected
        arguments   {"command":"touch b"}
        judged      #18 [time] ask by rules: mode edit
        approval    #19 [time] requested: it runs a command, and mode edit asks about that
        decision    #20 [time] denied: it needs approval, but no terminal is available
        ran         no
        failed      denied
        result
          | The call of shell was denied: it needs approval, but no terminal is available

    Checkpoints
      taken       #11 [time] before call, [hash], entries: 0
      taken       #12 [time] after call, [hash], entries: 1
    "#);
}

#[test]
fn json_is_the_typed_report() {
    let audited = written_and_denied();
    let (code, report) = audited.report(&[]);
    assert_eq!(code, Some(0));
    let chain = report.chain.as_ref().unwrap();
    assert!(chain.is_intact() && chain.lines > 10 && chain.checkpoints == 2, "{chain:?}");
    assert_eq!(chain.matches_head, None);
    let head = chain.head.clone();
    let audit = report.audit.as_ref().unwrap();
    assert_eq!(audit.inputs[0].text, "Write a <script>.");
    assert_eq!(audit.spending.models[0].cost, None, "a script has no price");

    let written = only(&report, "write_file");
    assert_eq!(written.outcome, CallOutcome::Succeeded);
    let edit = &written.execution.as_ref().unwrap().changes[0];
    assert_eq!((edit.path.as_str(), edit.added, edit.diff.as_str()), ("a<script>.txt", 1, ""));
    let denied = only(&report, "shell");
    assert_eq!((denied.outcome, denied.execution.as_ref()), (CallOutcome::Rejected, None));
    let step = denied.decisive_step().unwrap();
    assert_eq!((step.gate.as_str(), step.rule.as_deref()), ("rules", Some("mode edit")));
    let decision = denied.approvals[0].decision.as_ref().unwrap();
    assert_eq!(decision.reason.as_deref(), Some("it needs approval, but no terminal is available"));

    let (code, report) = audited.report(&["--full", "--head", &head]);
    assert_eq!((code, report.chain.as_ref().unwrap().matches_head), (Some(0), Some(true)));
    let edit = &only(&report, "write_file").execution.as_ref().unwrap().changes[0];
    assert!(edit.diff.contains("+<script>"), "{edit:?}");
    let other = head.replace(&head[head.len() - 4..], "0000");
    let (code, report) = audited.report(&["--head", &other]);
    assert_eq!((code, report.chain.unwrap().matches_head), (Some(1), Some(false)));
    assert_eq!(audited.audit(&["--head", "abc"]).code, Some(2));
}

#[test]
fn page_is_well_formed_without_foreign_markup() {
    let audited = written_and_denied();
    let page = audited.text(&["--output", "html"]);
    let full = audited.text(&["--output", "html", "--full"]);
    for page in [&page, &full] {
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(1)"), "{page}");
    }
    assert!(full.contains("+&lt;script&gt;alert(1)") && !page.contains("+&lt;script"), "the diff");
    for text in ["a&lt;script&gt;.txt", "Write a &lt;script&gt;.", "default-src 'none'"] {
        assert!(page.contains(text), "{text} in {page}");
    }
    // Every element but these two is closed, in order.
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
        let name = tag.split_whitespace().next().unwrap();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{page}");
        } else if !matches!(name, "!doctype" | "meta") {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(page.matches("<dl>").count() > 3 && page.ends_with("</html>\n"));
}

#[test]
fn call_reads_back_by_a_prefix() {
    let audited = written_and_denied();
    let (_, report) = audited.report(&[]);
    let call = only(&report, "shell");
    let (id, other) = (call.call_id.as_str(), only(&report, "write_file").call_id.as_str());
    let shared = id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let unique = &id[..=shared];
    let object: Value = serde_json::from_str(&audited.text(&[unique, "--output", "json"])).unwrap();
    let found: CallHistory = serde_json::from_value(object["call"].clone()).unwrap();
    assert_eq!((&found, object["session_id"].as_str()), (call, Some(audited.id.as_str())));
    assert!(object["chain"]["lines"].as_u64().unwrap() > 10, "{object}");
    insta::assert_snapshot!(audited.redacted(&audited.text(&[unique])), @r#"
    Audit of call [id] shell: rejected
    chain       verified to line 28, head [hash]; 0 large values, 2 checkpoints
    note        damage to the newest barrier, and lines cut off at the end, show only against a head kept elsewhere (--head)
    session     [id]
    asked       #2 [time] submitted by [person], run 0
    input
      | Write a <script>.
    proposed    #17 [time] by claude-opus-4-6, response [id], effect execute
    arguments   {"command":"touch b"}
    judged      #18 [time] ask by rules: mode edit
      gate      hidden_paths allow
      gate      protected_paths allow
      gate      rules ask, mode edit, by default: it runs a command, and mode edit asks about that
      gate      protected_path_watch allow
    approval    #19 [time] requested: it runs a command, and mode edit asks about that
      ticket    [id]
      for       {"command":"touch b"}
    decision    #20 [time] denied: it needs approval, but no terminal is available
    ran         no
    failed      denied
    result
      | The call of shell was denied: it needs approval, but no terminal is available
    events      #17 MODEL_RESPONSE, #18 CALL_JUDGED, #19 APPROVAL_REQUESTED, #20 APPROVAL_DECIDED, #21 TOOL_CALL_START, #22 TOOL_CALL_END
    "#);
    let page = audited.text(&[unique, "--output", "html"]);
    assert!(
        page.contains("<h1>Audit of call") && page.contains("touch b") && !page.contains("alert"),
        "{page}"
    );

    let several = audited.audit(&[&id[..shared]]);
    assert_eq!(several.code, Some(2));
    assert!(several.stderr.contains("is a prefix of several calls"), "{several:?}");
    let unknown = audited.audit(&[&format!("{id}x")]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains(&format!("the nearest is `{id}`")), "{unknown:?}");
    let session = run(&mut audited.command(&["audit", "nothing"]));
    assert_eq!(session.code, Some(2));
    assert!(session.stderr.contains("there is no session `nothing`"), "{session:?}");
}

fn flip(path: &Path, text: &str, other: &str) {
    let original = std::fs::read_to_string(path).unwrap();
    assert!(original.contains(text), "{original}");
    std::fs::write(path, original.replacen(text, other, 1)).unwrap();
}

#[test]
fn changed_journal_is_read_up_to_the_damage() {
    let audited = written_and_denied();
    let (_, whole) = audited.report(&[]);
    // In the model's last response: the calls before are on record as they were.
    flip(&audited.segment(), "Done.", "Gone.");
    let (code, report) = audited.report(&[]);
    assert_eq!(code, Some(1));
    let chain = report.chain.as_ref().unwrap();
    let damaged = chain.first_damaged_line().unwrap();
    assert!(chain.lines < damaged && damaged < whole.chain.unwrap().lines, "{chain:?}");
    assert_eq!(only(&report, "write_file").outcome, CallOutcome::Succeeded);
    assert!(!serde_json::to_string(&report).unwrap().contains("Gone."));
    let output = audited.audit(&[]);
    assert_eq!(output.code, Some(1));
    let second = output.stdout.lines().nth(1).unwrap();
    assert!(second.starts_with(&format!("DAMAGED: line {damaged}: ")), "{output:?}");
    assert!(output.stdout.contains(&format!("nothing from line {damaged} on is part of this report")));
    let page = audited.audit(&["--output", "html"]);
    assert_eq!(page.code, Some(1));
    assert!(page.stdout.contains("<p class=\"alarm\">DAMAGED: line"), "{page:?}");
}

#[test]
fn changed_byte_of_any_line_is_reported() {
    let audited = written_and_denied();
    let head = audited.report(&[]).1.chain.unwrap().head;
    let segment = audited.segment();
    let original = std::fs::read(&segment).unwrap();
    let ends: Vec<usize> = (0..original.len()).filter(|at| original[*at] == b'\n').collect();
    let starts = [0].into_iter().chain(ends.iter().map(|end| end + 1));
    let lines: Vec<(usize, usize)> = starts.zip(&ends).map(|(start, end)| (start, *end)).collect();
    assert!(lines.len() > 20);
    let (last, before) = lines.split_last().unwrap();
    let changed = |(start, end): &(usize, usize), arguments: &[&str]| {
        let mut bytes = original.clone();
        bytes[(start + end) / 2] ^= 1;
        std::fs::write(&segment, bytes).unwrap();
        audited.audit(arguments)
    };
    for line in before {
        let output = changed(line, &[]);
        assert_eq!(output.code, Some(1), "{line:?}: {output:?}");
        assert!(output.stdout.contains("DAMAGED: line "), "{line:?}: {output:?}");
    }
    // A change of the last line shows only against a head that was kept elsewhere.
    assert_eq!(changed(last, &[]).code, Some(0));
    assert_eq!(changed(last, &["--head", &head]).code, Some(1));
}

#[test]
fn journal_without_a_readable_line_still_has_a_report() {
    let audited = written_and_denied();
    flip(&audited.segment(), "\"session_id\"", "\"session_ib\"");
    let (code, report) = audited.report(&[]);
    assert_eq!((code, report.audit.as_ref()), (Some(1), None));
    assert!(!report.chain.as_ref().unwrap().problems.is_empty(), "{report:?}");
    let output = audited.audit(&[]);
    assert!(output.stdout.contains("nothing of its record can be read"), "{output:?}");
    let call = audited.audit(&["toolu"]);
    assert_eq!(call.code, Some(2), "{call:?}");
}

#[test]
fn cut_tail_shows_only_against_a_head_kept_elsewhere() {
    let audited = written_and_denied();
    let head = audited.report(&[]).1.chain.unwrap().head;
    let segment = audited.segment();
    let original = std::fs::read_to_string(&segment).unwrap();
    let lines: Vec<&str> = original.lines().collect();
    std::fs::write(&segment, lines[..lines.len() - 3].join("\n") + "\n").unwrap();
    let text = audited.text(&[]);
    assert!(text.contains("lines cut off at the end, show only against a head kept elsewhere"), "{text}");
    let output = audited.audit(&["--head", &head]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("the given head is NOT one of the lines"), "{output:?}");
}

#[test]
fn subagents_are_part_of_the_report() {
    let turns = crate::subagents::BOTH_WRITE.replace(", working_dir = \"sub\"", "");
    let audited = Audited::new(&turns, "Go", &[]);
    let (code, report) = audited.report(&[]);
    assert_eq!(code, Some(0), "{report:?}");
    let tree = report.tree();
    assert_eq!(tree.len(), 2, "{report:?}");
    let subagent = &report.audit.as_ref().unwrap().subagents[0];
    assert_eq!((subagent.agent_id.as_str(), &subagent.session_id), ("agent_1", &tree[1].session_id));
    assert!(tree[1].chain.as_ref().unwrap().is_intact());
    let of_child: Vec<_> = report.calls().filter(|call| call.agent.as_deref() == Some("agent_1")).collect();
    assert!(of_child.iter().any(|call| call.proposal.tool == "write_file"), "{of_child:?}");

    // On its own as well, with its checkpoints, whose contents are those of the session above it.
    let alone = run(&mut audited.command(&["audit", tree[1].session_id.as_str()]));
    assert_eq!(alone.code, Some(0), "{alone:?}");
    assert!(alone.stdout.contains(&format!("agent_1, of session {}", audited.id)), "{alone:?}");
    let verified = run(&mut audited.command(&["sessions", "verify", tree[1].session_id.as_str()]));
    assert_eq!(verified.code, Some(0), "{verified:?}");

    // Damage to the record of a subagent is damage.
    let child = audited.state.path().join("sessions/sessions").join(tree[1].session_id.as_str());
    flip(&child.join("0000000001.jsonl"), "Write a.txt.", "Write b.txt.");
    let (code, report) = audited.report(&[]);
    assert_eq!(code, Some(1));
    assert!(
        report.chain.as_ref().unwrap().is_intact() && !report.tree()[1].chain.as_ref().unwrap().is_intact()
    );
    // Without it, the report says so.
    std::fs::remove_dir_all(child).unwrap();
    let text = audited.text(&[]);
    assert!(text.contains("the store has no record of it"), "{text}");
}

#[test]
fn known_secrets_are_replaced_without_full() {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "seq 100; echo sk-very-secret" }
        [[turn]]
        text = "Done."
        "#;
    let audited = Audited::new(turns, "Say it.", &[]);
    let with_key = |arguments: &[&str]| {
        let mut command = audited.command(&[&["audit", audited.id.as_str()], arguments].concat());
        run(command.env("ANTHROPIC_API_KEY", KEY)).stdout
    };
    for format in ["text", "json", "html"] {
        let short = with_key(&["--output", format]);
        assert!(!short.contains(KEY) && short.contains("[redacted]"), "{short}");
        let full = with_key(&["--output", format, "--full"]);
        assert!(full.contains(KEY) && full.len() > short.len(), "{full}");
    }
    let call = with_key(&["--output", "json"]);
    let report: AuditReport = serde_json::from_str(&call).unwrap();
    let output = only(&report, "shell").execution.as_ref().unwrap().output.as_ref().unwrap();
    assert!(output.is_shortened && output.text.ends_with("more lines]"), "{output:?}");
}

#[test]
fn records_of_older_versions_have_an_audit() {
    let records = [
        include_str!("../../../agent/src/record/golden/v1.jsonl"),
        include_str!("../../../agent/src/record/golden/v2.jsonl"),
        include_str!("../../../agent/src/record/golden/v3.jsonl"),
        include_str!("../../../agent/src/record/golden/v4.jsonl"),
    ];
    let audits = records.map(|text| Audit::of_record(&Record::read(text.as_bytes()).unwrap()).unwrap());
    for audit in &audits {
        assert_eq!((audit.calls.len(), audit.unread.as_ref()), (11, None), "{audit:?}");
        assert_eq!(audit.call("t2c0_fail").unwrap().outcome, CallOutcome::Failed);
        assert_eq!(audit.call("t5c1_hang").unwrap().outcome, CallOutcome::Running);
        assert_eq!(audit.spending.models[0].responses, 6);
        assert!(audit.calls.iter().filter(|call| call.execution.is_some()).count() == 10, "{audit:?}");
    }
}
