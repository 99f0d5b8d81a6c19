//! Sessions that the command keeps.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{CommandOutput, Harness, KEY, pintle, run};

/// A scripted model, and a state directory of its own.
struct Kept {
    harness: Harness,
    state: tempfile::TempDir,
}

impl Kept {
    fn new(turns: &str) -> Self {
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        Self { harness, state: tempfile::tempdir().unwrap() }
    }

    /// Returns `pintle run` in the directory of the harness, with all flags that a session remembers.
    fn first(&self, arguments: &[&str]) -> Command {
        let mut command = self.harness.command("run", arguments);
        command.env("PINTLE_STATE_DIR", self.state.path());
        command
    }

    /// Returns `pintle` in the directory of the harness, without any flag about model, tools or place.
    fn next(&self, arguments: &[&str]) -> Command {
        let mut command = pintle(arguments);
        command.env("PINTLE_STATE_DIR", self.state.path()).env("ANTHROPIC_API_KEY", KEY);
        command.current_dir(self.harness.directory.path());
        command
    }

    fn list(&self) -> Vec<Value> {
        let output = done(&mut self.next(&["sessions", "list", "--output", "json"]));
        serde_json::from_str(&output.stdout).unwrap()
    }

    fn only_id(&self) -> String {
        let list = self.list();
        assert_eq!(list.len(), 1, "{list:?}");
        list.first().and_then(|row| row.get("id")?.as_str()).unwrap().to_owned()
    }

    /// Returns the segments of the only session.
    fn segments(&self) -> Vec<PathBuf> {
        let directory = self.state.path().join("sessions/sessions").join(self.only_id());
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let mut segments: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
        segments.sort();
        segments
    }

    /// Returns the texts of the user messages in the newest request.
    fn newest_request(&self) -> String {
        self.harness.server.requests().last().unwrap().body.to_string()
    }
}

fn done(command: &mut Command) -> CommandOutput {
    let output = run(command);
    assert_eq!(output.code, Some(0), "{output:?}");
    output
}

const TWO_ANSWERS: &str = "[[turn]]\ntext = \"First answer.\"\n[[turn]]\ntext = \"Second answer.\"\n";

#[test]
fn session_goes_on_with_its_model_tools_and_conversation() {
    let kept = Kept::new(TWO_ANSWERS);
    let first = done(&mut kept.first(&["Remember the word plover."]));
    let id = kept.only_id();
    assert!(first.stdout.contains(&format!("session {id}")), "{first:?}");

    let second = done(&mut kept.next(&["run", "--continue", "Which word?"]));
    assert!(
        second.stdout.contains("Second answer.") && !second.stdout.contains("First answer."),
        "{second:?}"
    );
    let requests = kept.harness.server.requests();
    let (one, two) = (&requests[0].body, &requests[1].body);
    for name in ["model", "tools", "system"] {
        assert_eq!(one[name], two[name], "{name}");
    }
    let texts = two["messages"].to_string();
    for part in ["plover", "First answer.", "Which word?"] {
        assert!(texts.contains(part), "{part} in {texts}");
    }
    assert_eq!(kept.only_id(), id, "it is the same session");
    let files = std::fs::read_dir(kept.state.path().join("sessions/sessions").join(&id)).unwrap();
    for file in files {
        let text = std::fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&text).contains(KEY), "no key is kept");
    }
}

#[test]
fn refused_reasoning_is_dropped_and_stays_dropped_after_resume() {
    let bodies = [
        (
            Dialect::OpenAiResponses,
            r#"{"error": {"message": "The encrypted content gAAA could not be verified.", "type": "invalid_request_error", "code": "invalid_encrypted_content"}}"#,
            "\"encrypted_content\"",
        ),
        (
            Dialect::AnthropicMessages,
            r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
            "\"signature\"",
        ),
        (
            Dialect::Gemini,
            r#"{"error": {"code": 400, "message": "Corrupted thought signature.", "status": "INVALID_ARGUMENT"}}"#,
            "\"thoughtSignature\"",
        ),
        (
            Dialect::ChatCompletions,
            r#"{"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "Invalid signature in thinking block", "provider_name": "x"}}}"#,
            "\"reasoning",
        ),
    ];
    for (dialect, body, field) in bodies {
        let turns = format!(
            "[[turn]]\nreasoning = 'I think.'\ntext = 'One.'\n\
             [[turn]]\ntext = 'Two.'\n[[turn.failure]]\nstatus = 400\nbody = '{body}'\n\
             [[turn]]\ntext = 'Three.'\n"
        );
        let kept = Kept { harness: Harness::new(dialect, &turns), state: tempfile::tempdir().unwrap() };
        done(&mut kept.first(&["Go"]));
        let second = done(&mut kept.first(&["--continue", "--output", "stream-json", "Go"]));
        assert_eq!(second.stdout.matches("\"HISTORY_REPAIRED\"").count(), 1, "{dialect:?}: {second:?}");
        let third = done(&mut kept.first(&["--continue", "--output", "stream-json", "Go"]));
        assert_eq!(third.stdout.matches("\"HISTORY_REPAIRED\"").count(), 0, "{dialect:?}: {third:?}");
        let requests = kept.harness.server.requests();
        assert_eq!(requests.len(), 4, "{dialect:?}");
        // The reasoning field of a request is beside its messages.
        let sent = |index: usize| {
            let body = &requests[index].body;
            let messages = ["input", "messages", "contents"].iter().find_map(|name| body.get(*name));
            messages.unwrap().to_string()
        };
        if dialect != Dialect::ChatCompletions {
            assert!(sent(1).contains(field), "{dialect:?}: {}", sent(1));
        }
        for index in [2, 3] {
            assert!(!sent(index).contains(field), "{dialect:?}: {}", sent(index));
            assert!(sent(index).contains("One."), "{dialect:?}: {}", sent(index));
        }
    }
}

#[test]
fn list_show_export_verify_and_delete() {
    let kept = Kept::new(TWO_ANSWERS);
    done(&mut kept.first(&["Say <b>one</b>."]));
    let list = kept.list();
    let row = &list[0];
    assert_eq!((&row["state"], &row["title"]), (&"idle".into(), &"Say <b>one</b>.".into()), "{row}");
    assert_eq!(row["directory"], kept.harness.directory.path().display().to_string());
    assert_eq!((&row["provider"], &row["environment"]), (&"anthropic".into(), &"local".into()));
    assert!(row["tokens"].as_u64().unwrap() > 0 && row["cost_usd"].as_f64().unwrap() > 0.0, "{row}");
    let text = done(&mut kept.next(&["sessions", "list"])).stdout;
    assert!(text.contains("idle") && text.contains("Say <b>one</b>."), "{text}");

    let id = kept.only_id();
    let short = &id[..12];
    let shown = done(&mut kept.next(&["sessions", "show", short])).stdout;
    assert!(shown.contains("## 1. user") && shown.contains("First answer."), "{shown}");
    let object: Value =
        serde_json::from_str(&done(&mut kept.next(&["sessions", "show", short, "--output", "json"])).stdout)
            .unwrap();
    assert_eq!(
        (&object["session"]["id"], &object["history"][1]["kind"]),
        (&id.clone().into(), &"assistant".into())
    );

    let export = |format: &str| done(&mut kept.next(&["sessions", "export", &id, "--format", format])).stdout;
    let record = pintle_agent::Record::read(export("jsonl").as_bytes()).unwrap();
    assert_eq!(record.replay().unwrap().history.len(), 2);
    assert_eq!(export("markdown"), shown);
    let page = export("html");
    assert!(page.contains("Say &lt;b&gt;one&lt;/b&gt;.") && !page.contains("<script"), "{page}");

    let verified = done(&mut kept.next(&["sessions", "verify", short])).stdout;
    assert!(verified.contains("intact:"), "{verified}");
    let object: Value = serde_json::from_str(
        &done(&mut kept.next(&["sessions", "verify", short, "--output", "json"])).stdout,
    )
    .unwrap();
    assert_eq!(object["intact"], true);
    let head = object["head"].as_str().unwrap();
    done(&mut kept.next(&["sessions", "verify", &id, "--head", head]));

    done(&mut kept.next(&["sessions", "delete", short]));
    assert_eq!(kept.list(), [] as [Value; 0]);
    let gone = run(&mut kept.next(&["sessions", "show", &id]));
    assert_eq!(gone.code, Some(2));
    assert!(gone.stderr.contains(&format!("there is no session `{id}`")), "{gone:?}");
}

#[test]
fn changed_and_cut_journals_fail_verification() {
    let kept = Kept::new(TWO_ANSWERS);
    done(&mut kept.first(&["Say one."]));
    let id = kept.only_id();
    let verify = |arguments: &[&str]| {
        let mut words = vec!["sessions", "verify", id.as_str(), "--output", "json"];
        words.extend(arguments);
        let output = run(&mut kept.next(&words));
        (output.code, serde_json::from_str::<Value>(&output.stdout).unwrap_or_default())
    };
    let head = verify(&[]).1["head"].as_str().unwrap().to_owned();
    let segment = &kept.segments()[0];
    let original = std::fs::read_to_string(segment).unwrap();

    std::fs::write(segment, original.replacen("Say one.", "Say two.", 1)).unwrap();
    let (code, object) = verify(&[]);
    assert_eq!((code, &object["intact"]), (Some(1), &false.into()), "{object}");
    let refused = run(&mut kept.next(&["run", "--continue", "Go on"]));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("is damaged at line"), "{refused:?}");
    assert!(refused.stderr.contains("pintle sessions verify"), "{refused:?}");
    assert!(refused.stderr.contains("pintle sessions show"), "{refused:?}");
    let verified = run(&mut kept.next(&["sessions", "verify", &id]));
    let damage = verified.stdout.lines().next().unwrap();
    assert!(damage.starts_with("line ") && damage.matches("line").count() == 2, "{verified:?}");
    assert!(damage.ends_with(": it is not the line that was written"), "{verified:?}");

    // Nothing is before the first line.
    std::fs::write(segment, original.replacen('{', "[", 1)).unwrap();
    for arguments in [&["sessions", "show", &id][..], &["run", "--resume", &id, "Go on"]] {
        let refused = run(&mut kept.next(arguments));
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("pintle sessions verify"), "{refused:?}");
        assert!(
            !refused.stderr.contains("sessions show") && !refused.stderr.contains("--fork"),
            "{refused:?}"
        );
    }

    let lines: Vec<&str> = original.lines().collect();
    std::fs::write(segment, lines[..4].join("\n") + "\n").unwrap();
    assert_eq!(verify(&[]).0, Some(0), "without a head nobody can tell");
    assert_eq!(verify(&["--head", &head]).0, Some(1));
    let wrong = run(&mut kept.next(&["sessions", "verify", &id, "--head", "abc"]));
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

const HANGING: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo begun >> effects; sleep 600\" }\n\
                       [[turn]]\ntext = \"Checked and done.\"\n";

/// Starts a run and returns once its command runs.
fn start_hanging(kept: &Kept) -> std::process::Child {
    let mut command = kept.first(&["Work"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let effects = kept.harness.path("effects");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !std::fs::read_to_string(&effects).is_ok_and(|text| !text.is_empty()) {
        assert!(std::time::Instant::now() < deadline, "the command does not start");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child
}

#[test]
fn killed_run_is_taken_up_without_a_second_effect() {
    let kept = Kept::new(HANGING);
    let mut child = start_hanging(&kept);
    let held = run(&mut kept.next(&["run", "--continue"]));
    assert_eq!(held.code, Some(1), "{held:?}");
    assert!(held.stderr.contains(&format!("is in use by process {}", child.id())), "{held:?}");
    assert_eq!(kept.list()[0]["state"], "running");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(kept.list()[0]["state"], "unfinished");

    let output = done(&mut kept.next(&["run", "--continue"]));
    assert!(output.stdout.contains("Checked and done."), "{output:?}");
    assert_eq!(kept.harness.read("effects"), "begun\n", "it did not run again");
    assert!(kept.newest_request().contains("Nobody knows whether it had its effect"), "the model is told");
    assert_eq!(kept.list()[0]["state"], "idle");
    let nothing = run(&mut kept.next(&["run", "--continue"]));
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.stderr.contains("has no unfinished run: expected a prompt"), "{nothing:?}");
}

fn signal(name: &str, child: &std::process::Child) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Nothing is stolen from a holder that lives, even if it does not move.
#[test]
fn stopped_run_keeps_its_session_until_it_is_dead() {
    let kept = Kept::new(HANGING);
    let mut child = start_hanging(&kept);
    signal("-STOP", &child);
    for words in [
        vec!["run", "--continue"],
        vec!["run", "--continue", "Try"],
        vec!["sessions", "delete", &kept.only_id()],
    ] {
        let held = run(&mut kept.next(&words));
        assert_eq!(held.code, Some(1), "{words:?}: {held:?}");
        assert!(held.stderr.contains(&format!("is in use by process {}", child.id())), "{held:?}");
    }
    let shown = done(&mut kept.next(&["sessions", "show", &kept.only_id()])).stdout;
    assert!(shown.contains("Work"), "it can be read: {shown}");
    signal("-CONT", &child);
    signal("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130), "it goes on as if nothing had been");
    assert_eq!(kept.list()[0]["state"], "idle");

    let kept = Kept::new(HANGING);
    let mut child = start_hanging(&kept);
    signal("-STOP", &child);
    child.kill().unwrap();
    child.wait().unwrap();
    let output = done(&mut kept.next(&["run", "--continue"]));
    assert!(output.stdout.contains("Checked and done."), "{output:?}");
}

/// Makes the directory of a session again, with the same name and files and another identity.
fn replace_directory(kept: &Kept) -> PathBuf {
    let directory = kept.harness.directory.path();
    let old = directory.with_extension("old");
    std::fs::rename(directory, &old).unwrap();
    std::fs::create_dir(directory).unwrap();
    for entry in std::fs::read_dir(&old).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), directory.join(entry.file_name())).unwrap();
    }
    old
}

#[test]
fn unfinished_session_is_stranded_in_another_place() {
    let kept = Kept::new(HANGING);
    let mut child = start_hanging(&kept);
    child.kill().unwrap();
    child.wait().unwrap();
    let id = kept.only_id();
    let old = replace_directory(&kept);
    let stranded = run(&mut kept.next(&["run", "--continue"]));
    assert_eq!(stranded.code, Some(1), "{stranded:?}");
    assert!(stranded.stderr.contains(&format!("session {id} is stranded")), "{stranded:?}");
    assert!(stranded.stderr.contains(&format!("pintle run --fork {id}")), "{stranded:?}");
    assert_eq!(kept.list()[0]["state"], "unfinished", "nothing was decided");
    let shown = done(&mut kept.next(&["sessions", "show", &id])).stdout;
    assert!(shown.contains("Work"), "{shown}");
    let fork = done(&mut kept.next(&["run", "--fork", &id, "Look again"]));
    assert!(fork.stdout.contains("Checked and done."), "{fork:?}");

    // Where it was, it goes on.
    let directory = kept.harness.directory.path();
    std::fs::remove_dir_all(directory).unwrap();
    std::fs::rename(old, directory).unwrap();
    let output = done(&mut kept.next(&["run", "--resume", &id]));
    assert!(output.stdout.contains("Checked and done."), "{output:?}");
}

#[test]
fn idle_session_goes_on_in_another_place_and_says_so() {
    let kept = Kept::new(TWO_ANSWERS);
    done(&mut kept.first(&["One"]));
    let old = replace_directory(&kept);
    let output = done(&mut kept.next(&["run", "--continue", "Two"]));
    assert!(output.stdout.contains("Second answer."), "{output:?}");
    assert!(output.stderr.contains("worked in another directory or on another machine"), "{output:?}");
    std::fs::remove_dir_all(old).unwrap();
}

#[test]
fn deleted_value_is_named_and_the_rest_can_be_read() {
    let large = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"seq 20000\" }\n[[turn]]\ntext = \"Counted.\"\n[[turn]]\ntext = \"More.\"\n";
    let kept = Kept::new(large);
    std::fs::write(kept.harness.path("file"), "of the workspace\n").unwrap();
    done(&mut kept.first(&["Count."]));
    let id = kept.only_id();
    let values = kept.state.path().join("sessions/sessions").join(&id).join("blobs");
    let names: Vec<PathBuf> =
        std::fs::read_dir(&values).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!names.is_empty());
    let kept_elsewhere: Vec<Vec<u8>> = names.iter().map(|name| std::fs::read(name).unwrap()).collect();
    names.iter().for_each(|name| std::fs::remove_file(name).unwrap());
    let before: Vec<Vec<u8>> = kept.segments().iter().map(|path| std::fs::read(path).unwrap()).collect();
    let lines = String::from_utf8(before.concat()).unwrap();

    let verified = run(&mut kept.next(&["sessions", "verify", &id]));
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let hashes: Vec<&str> = names.iter().map(|name| name.file_name().unwrap().to_str().unwrap()).collect();
    let is_named =
        |text: &str| hashes.iter().any(|hash| text.contains(&format!("the value {hash} was removed")));
    assert!(is_named(&verified.stdout), "{verified:?}");
    let refused = run(&mut kept.next(&["run", "--continue", "More"]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(is_named(&refused.stderr) && refused.stderr.contains("pintle sessions verify"), "{refused:?}");
    for action in ["show", "export"] {
        let shown = run(&mut kept.next(&["sessions", action, &id]));
        assert_eq!(shown.code, Some(1), "{action}: {shown:?}");
        assert!(is_named(&shown.stderr) && shown.stdout.contains("Count."), "{action}: {shown:?}");
        assert!(!shown.stdout.contains("Counted."), "{action}: {shown:?}");
    }
    let after: Vec<Vec<u8>> = kept.segments().iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(before, after, "nothing was written");

    // Contents of checkpoints are no part of the conversation, which goes on without them.
    let in_lines: Vec<bool> = hashes.iter().map(|hash| lines.contains(hash)).collect();
    let restore = |index: usize| std::fs::write(&names[index], &kept_elsewhere[index]).unwrap();
    (0..names.len()).filter(|index| in_lines[*index]).for_each(restore);
    let verified = run(&mut kept.next(&["sessions", "verify", &id, "--output", "json"]));
    let object: Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!((verified.code, &object["problems"]), (Some(1), &serde_json::json!([])), "{object}");
    let message = object["broken_checkpoints"][0]["message"].as_str().unwrap();
    assert!(message.contains("of the checkpoint was removed"), "{message}");

    // A backup helps.
    (0..names.len()).for_each(restore);
    assert_eq!(run(&mut kept.next(&["sessions", "verify", &id])).code, Some(0));
    let output = done(&mut kept.next(&["run", "--continue", "More"]));
    assert!(output.stdout.contains("More."), "{output:?}");
}

#[test]
fn interrupted_run_keeps_its_session() {
    let kept = Kept::new(HANGING);
    let mut child = start_hanging(&kept);
    signal("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(kept.list()[0]["state"], "idle");
    let output = done(&mut kept.next(&["run", "--continue", "Try something else"]));
    assert!(output.stdout.contains("Checked and done."), "{output:?}");
    assert!(kept.newest_request().contains("Try something else"));
}

#[test]
fn fork_has_the_beginning_of_the_history_and_leaves_the_origin() {
    let kept = Kept::new(
        "[[turn]]\ntext = \"A.\"\n[[turn]]\ntext = \"B.\"\n[[turn]]\ntext = \"C.\"\n[[turn]]\ntext = \"D.\"\n",
    );
    done(&mut kept.first(&["One"]));
    let id = kept.only_id();
    done(&mut kept.next(&["run", "--resume", &id[..13], "Two"]));
    let before: Vec<Vec<u8>> = kept.segments().iter().map(|path| std::fs::read(path).unwrap()).collect();
    done(&mut kept.next(&["run", "--fork", &format!("{id}@2"), "Three"]));
    let texts = kept.newest_request();
    assert!(texts.contains("One") && texts.contains("Three") && !texts.contains("Two"), "{texts}");
    let list = kept.list();
    assert_eq!(list.len(), 2);
    let origin = kept.state.path().join("sessions/sessions").join(&id);
    for (number, bytes) in (1..).zip(before) {
        assert_eq!(std::fs::read(origin.join(format!("{number:010}.jsonl"))).unwrap(), bytes);
    }
    // It does not need its origin any more.
    done(&mut kept.next(&["sessions", "delete", &id]));
    let fork = kept.only_id();
    done(&mut kept.next(&["sessions", "verify", &fork]));
    done(&mut kept.next(&["run", "--resume", &fork, "Four"]));
    let texts = kept.newest_request();
    assert!(["One", "Three", "Four"].iter().all(|text| texts.contains(text)), "{texts}");
    for (fork, expected) in [
        (format!("{fork}@99"), "cannot be forked at 99"),
        (format!("{fork}@x"), "expected ID or ID@N"),
        ("nothing".to_owned(), "there is no session `nothing`"),
    ] {
        let output = run(&mut kept.next(&["run", "--fork", &fork, "x"]));
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(expected), "{output:?}");
    }
}

#[test]
fn lost_summary_is_rebuilt_from_the_journal() {
    let kept = Kept::new(HANGING);
    let mut child = start_hanging(&kept);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = kept.list();
    let id = kept.only_id();
    let summary = kept.state.path().join("sessions/sessions").join(&id).join("summary.json");
    for lost in [None, Some(""), Some("{\"id\":")] {
        match lost {
            None => std::fs::remove_file(&summary).unwrap(),
            Some(text) => std::fs::write(&summary, text).unwrap(),
        }
        let listed = kept.list();
        for name in ["id", "state", "title", "directory", "model"] {
            assert_eq!(listed[0][name], before[0][name], "{name}, {lost:?}");
        }
    }
    // It still knows where it was, and with which model.
    let old = replace_directory(&kept);
    let stranded = run(&mut kept.next(&["run", "--continue"]));
    assert!(stranded.stderr.contains("is stranded"), "{stranded:?}");
    let directory = kept.harness.directory.path();
    std::fs::remove_dir_all(directory).unwrap();
    std::fs::rename(old, directory).unwrap();
    let output = done(&mut kept.next(&["run", "--continue"]));
    assert!(output.stdout.contains("Checked and done."), "{output:?}");
}

#[test]
fn flags_given_anew_replace_those_of_the_session() {
    let kept = Kept::new(TWO_ANSWERS);
    done(&mut kept.first(&["--model", "claude-haiku-4-5", "--read-before-write", "One"]));
    let url = kept.harness.server.base_url(Dialect::OpenAiResponses);
    let mut command = kept.next(&["run", "--continue", "--provider", "openai", "--base-url", &url, "Two"]);
    done(command.env("OPENAI_API_KEY", KEY));
    let requests = kept.harness.server.requests();
    assert_eq!(requests[0].body["model"], "claude-haiku-4-5");
    assert_ne!(requests[1].body["model"], "claude-haiku-4-5", "another provider has another model");
    assert!(kept.newest_request().contains("One"), "the conversation is the same");
}

#[test]
fn nothing_is_kept_on_request() {
    let kept = Kept::new(TWO_ANSWERS);
    let output = done(&mut kept.first(&["--no-session", "One"]));
    assert!(!output.stdout.contains("session "), "{output:?}");
    assert_eq!(std::fs::read_dir(kept.state.path()).unwrap().count(), 0);
    let both = run(&mut kept.first(&["--no-session", "--continue", "One"]));
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn run_goes_on_without_a_state_directory_unless_it_needs_one() {
    let kept = Kept::new(TWO_ANSWERS);
    let nowhere = Path::new("/proc/nowhere");
    let output = done(kept.first(&["One"]).env("PINTLE_STATE_DIR", nowhere));
    assert!(output.stdout.contains("First answer."), "{output:?}");
    assert!(output.stderr.contains("this run is not kept: cannot create /proc/nowhere"), "{output:?}");
    let output = run(kept.next(&["run", "--continue", "Two"]).env("PINTLE_STATE_DIR", nowhere));
    assert_eq!(output.code, Some(1), "{output:?}");
    let output = run(&mut kept.next(&["run", "--continue", "Two"]));
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("there is no session of "), "{output:?}");
}

#[test]
fn arguments_that_contradict_or_select_nothing_are_refused() {
    let kept = Kept::new(TWO_ANSWERS);
    done(&mut kept.first(&["One."]));
    let point = format!("{}@1", kept.only_id());
    let both = "expected either ID@N or ID with --checkpoint, found both";
    for (arguments, problem) in [
        (&["list", "--limit", "0"][..], "'--limit <N>': 0 is not in 1.."),
        (&["rewind", &point, "--checkpoint", "c"], both),
        (&["diff", &point, "--checkpoint", "c"], both),
    ] {
        let output = run(&mut kept.next(&[&["sessions"], arguments].concat()));
        assert_eq!(output.code, Some(2), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(problem), "{arguments:?}: {output:?}");
    }
}

#[test]
fn old_sessions_are_pruned_and_unfinished_ones_stay() {
    let kept = Kept::new(TWO_ANSWERS);
    for prompt in ["One.", "Two.", "Three."] {
        done(&mut kept.first(&[prompt]));
    }
    assert_eq!(kept.list().len(), 3);
    assert_eq!(run(&mut kept.next(&["sessions", "prune"])).code, Some(2), "a condition is needed");
    assert_eq!(run(&mut kept.next(&["sessions", "prune", "--older-than", "3x"])).code, Some(2));
    let old = done(&mut kept.next(&["sessions", "prune", "--older-than", "1d"]));
    let none = old.stdout.starts_with("deleted 0 of 3 sessions of /");
    assert_eq!((none, kept.list().len()), (true, 3), "all of them are new: {old:?}");
    let dry = done(&mut kept.next(&["sessions", "prune", "--keep", "1", "--dry-run"]));
    assert_eq!((dry.stdout.matches("would delete 0").count(), kept.list().len()), (2, 3), "{dry:?}");
    let pruned = done(&mut kept.next(&["sessions", "prune", "--keep", "1", "--output", "json"]));
    let pruned: Value = serde_json::from_str(&pruned.stdout).unwrap();
    assert_eq!((pruned["deleted"].as_array().unwrap().len(), &pruned["sessions"]), (2, &Value::from(3)));
    let left = kept.list();
    assert_eq!((left.len(), &left[0]["title"]), (1, &Value::from("Three.")));
}

/// The key of the provider, which this process knows, stands in the project and comes out of a command.
#[test]
fn known_secrets_reach_no_model_and_no_record() {
    let reads = "[[turn]]\n[[turn.call]]\ntool = \"read_file\"\narguments = { file_path = \"settings\" }\n\
                 [[turn.call]]\ntool = \"shell\"\narguments = { command = \"cat settings; seq 300000; cat settings\" }\n\
                 [[turn]]\ntext = \"Read.\"\n";
    let kept = Kept::new(reads);
    let token = "ghp-0123456789abcdef";
    for name in ["settings", "AGENTS.md"] {
        std::fs::write(kept.harness.path(name), format!("key={KEY}\ntoken={token}\n")).unwrap();
    }
    // Contents of checkpoints are those of the files.
    let ignored = kept.harness.path(".gitignore");
    std::fs::write(ignored, "settings\nAGENTS.md\n").unwrap();
    let task = format!("What is {KEY}?");
    let output = done(kept.first(&[&task]).env("SOME_TOKEN", token));
    assert!(output.stdout.contains("Read."), "{output:?}");

    let sent: String =
        kept.harness.server.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(sent.contains("key=[redacted]\\ntoken=[redacted]"), "{sent}");
    let mut files = vec![kept.state.path().to_path_buf()];
    let mut stored = String::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            stored.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
        }
    }
    assert!(stored.contains("[redacted]"));
    for secret in [KEY, token] {
        assert!(!sent.contains(secret) && !stored.contains(secret), "{secret} is known elsewhere");
    }
    // The record is that of the conversation.
    done(&mut kept.next(&["sessions", "verify", &kept.only_id()]));
    let shown = done(&mut kept.next(&["sessions", "show", &kept.only_id()])).stdout;
    assert!(shown.contains("What is [redacted]?"), "{shown}");
}
