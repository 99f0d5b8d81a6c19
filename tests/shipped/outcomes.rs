//! Ends of runs, and what they report.

use serde_json::Value;

use super::user::User;

/// Returns the exit code and the outcome of `--output json`.
fn outcome(user: &User, more: &[&str]) -> (Option<i32>, Value) {
    let output = user.run_command("Name the causes").args(["--output", "json"]).args(more).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let last = printed.lines().last().unwrap_or_else(|| panic!("nothing was printed"));
    (output.status.code(), serde_json::from_str(last).unwrap())
}

#[test]
fn a_response_that_is_cut_off_is_continued_or_reported() {
    let cut = |text: &str| format!("[[turn]]\ntext = '{text}'\nfinish = 'length'\n");
    let whole = |text: &str| format!("[[turn]]\ntext = '{text}'\n");
    for (turns, code, status, text) in [
        ([cut("One, "), whole("two.")].concat(), 0, "completed", "One, two."),
        ([cut("One, "), cut("two, "), cut("three")].concat(), 3, "output_limit", "One, two, three"),
    ] {
        let user = User::new(&turns);
        let (found, outcome) = outcome(&user, &[]);
        assert_eq!((found, &outcome["status"], &outcome["text"]), (Some(code), &status.into(), &text.into()));
    }
    let user = User::new(&cut("One, ").repeat(3));
    let output = user.run_command("Name the causes").output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(printed.contains("cut off by the output limit"), "{printed}");
}

#[test]
fn an_empty_response_is_no_silent_success() {
    let empty = "[[turn]]\ntext = ' '\n";
    let user = User::new(&empty.repeat(2));
    let (code, result) = outcome(&user, &[]);
    assert_eq!((code, &result["status"]), (Some(1), &"failed".into()), "{result}");
    let call = "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = 'true' }\n";
    let user = User::new(&[call, empty, empty].concat());
    let (code, result) = outcome(&user, &[]);
    assert_eq!((code, &result["status"]), (Some(0), &"completed".into()), "{result}");
    assert_eq!(result["warning"], "the final response is empty");
}

/// Neither the model nor a compaction can make a single message shorter.
#[test]
fn an_overflow_without_a_remedy_is_a_full_context() {
    let body = r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 300000 tokens > 200000 maximum"}}"#;
    let user =
        User::new(&format!("[[turn]]\nfailure = [{{ status = 400, body = '{body}' }}]\ntext = 'one'\n"));
    let (code, result) = outcome(&user, &[]);
    assert_eq!((code, &result["status"]), (Some(3), &"context_full".into()), "{result}");
    assert!(result["error"].to_string().contains("prompt is too long"), "{result}");
}

#[test]
fn cut_off_reasoning_is_repeated_with_less_effort_by_default() {
    let user = User::new("[[turn]]\nreasoning = 'Let me think about all of it.'\nfinish = 'length'\n");
    let output = user.run_command("Think").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert!(printed.contains("the request is repeated with the effort low"), "{printed}");
    assert_eq!(user.model.requests().len(), 2);
}

#[test]
fn a_continued_run_prints_its_own_turn() {
    let turns: String =
        ["one", "two", "three", "four"].map(|text| format!("[[turn]]\ntext = '{text}'\n")).concat();
    let user = User::new(&turns);
    let run = |more: &[&str]| {
        let output = user.run_command("Go").args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&[]);
    run(&["--continue"]);
    let third = run(&["--continue"]);
    assert!(third.contains("three") && !third.contains("two"), "{third}");
    let fourth = run(&["--continue", "--output", "stream-json"]);
    assert_eq!(fourth.matches("\"USER_INPUT\"").count(), 1, "{fourth}");
    let last: Value = serde_json::from_str(fourth.lines().last().unwrap()).unwrap();
    assert_eq!((&last["text"], &last["model_calls"]), (&"four".into(), &1.into()), "{last}");
}

#[test]
fn a_session_recovers_when_its_reasoning_is_refused() {
    let refusal = r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}"#;
    let user = User::new(&format!(
        "[[turn]]\nreasoning = 'I think.'\ntext = 'one'\n\
         [[turn]]\ntext = 'two'\n[[turn.failure]]\nstatus = 400\nbody = '{refusal}'\n\
         [[turn]]\ntext = 'three'\n"
    ));
    let run = |more: &[&str]| {
        let output = user.run_command("Go").args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&[]);
    assert!(run(&["--continue"]).contains("two"));
    assert!(run(&["--continue"]).contains("three"));
    let has_reasoning = |number| user.request(number).contains("\"signature\"");
    assert_eq!([0, 1, 2, 3].map(has_reasoning), [false, true, false, false]);
}
