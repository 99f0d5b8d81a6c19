//! Requests that a provider refuses: the run continues after a repair.

use super::user::User;

/// Returns a response with status 400 and this message, as a TOML string.
fn refusal(message: &str) -> String {
    let error = serde_json::json!({"type": "invalid_request_error", "message": message});
    format!("'{}'", serde_json::json!({"type": "error", "error": error}))
}

#[test]
fn an_overflow_in_the_words_of_any_server_is_recognised() {
    for message in [
        "Your request exceeded model token limit: 262144 (requested: 300000)",
        "Prompt exceeds max length",
        "Range of input length should be [1, 129024]",
    ] {
        let turns = format!(
            "[[turn]]\n[[turn.call]]\ntool = \"Read\"\narguments = {{ file_path = \"one.txt\" }}\n\
             [[turn]]\nfailure = [{{ status = 400, body = {} }}]\ntext = \"All is read.\"\n",
            refusal(message)
        );
        let user = User::new(&turns);
        std::fs::write(user.project().join("one.txt"), "one\n").unwrap();
        let output = user.run_command("Read everything").output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("[compacting] summarizing the conversation"), "{message}: {printed}");
    }
}

/// The scripted model refuses the first request of its last turn, in each conversation. A conversation begins with its
/// first message, which a summary replaces.
#[test]
fn an_overflow_is_summarised_in_a_shorter_request_that_keeps_the_users_words() {
    let read =
        "[[turn.call]]\ntool = \"Read\"\narguments = { file_path = \"one.txt\", offset = 2, limit = 300 }\n";
    let turns = format!(
        "[[turn]]\ntext = \"It was read once.\"\n{read}[[turn]]\n{read}\
         [[turn]]\nfailure = [{{ status = 400, body = {} }}]\ntext = \"All is read.\"\n",
        refusal("prompt is too long: 300000 tokens > 200000 maximum")
    );
    let user = User::new(&turns);
    let lines: Vec<String> = (0..400).map(|line| format!("line {line} of a long file\n")).collect();
    std::fs::write(user.project().join("one.txt"), lines.concat()).unwrap();
    let printed = user.run("Read *everything*, please");
    assert!(printed.contains("All is read."), "{printed}");
    let (refused, asked, after) = (user.request(2), user.request(3), user.request(4));
    assert!(asked.len() < refused.len() / 2, "{} after {}", asked.len(), refused.len());
    assert!(asked.contains("This conversation will be shortened"), "{asked}");
    assert!(after.contains("It was read once."), "{after}");
    assert!(after.contains("<user_message>\\nRead *everything*, please\\n</user_message>"), "{after}");
}

/// The scripted model cuts off the first response of each conversation, and so each summary.
#[test]
fn a_summary_that_is_cut_off_is_requested_again_and_reported() {
    let turns = format!(
        "[[turn]]\ntext = \"It runs.\"\nfinish = \"length\"\n\
         [[turn]]\n[[turn.call]]\ntool = \"Read\"\narguments = {{ file_path = \"one.txt\" }}\n\
         [[turn]]\nfailure = [{{ status = 400, body = {} }}]\ntext = \"All is read.\"\n",
        refusal("prompt is too long: 300000 tokens > 200000 maximum")
    );
    let user = User::new(&turns);
    std::fs::write(user.project().join("one.txt"), "one\n").unwrap();
    let output = user.run_command("Read everything").output().unwrap();
    let printed = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    let (repeated, reported) = ("it is requested again, for a smaller part", "its end is missing");
    assert!(printed.contains(repeated) && printed.contains(reported), "{printed}");
}

#[test]
fn only_the_image_that_a_refusal_names_is_left_out() {
    let read = |name: &str| {
        format!("[[turn]]\n[[turn.call]]\ntool = \"Read\"\narguments = {{ file_path = \"{name}\" }}\n")
    };
    let message =
        "messages.2.content.0.tool_result.content.1.image.source.base64.data: the image is too wide";
    let seen =
        format!("[[turn]]\nfailure = [{{ status = 400, body = {} }}]\ntext = \"Seen.\"\n", refusal(message));
    let user = User::new(&[read("old.png"), read("new.png"), seen].concat());
    for name in ["old.png", "new.png"] {
        let image = [&b"\x89PNG\r\n\x1a\n"[..], name.as_bytes()].concat();
        std::fs::write(user.project().join(name), image).unwrap();
    }
    assert!(user.run("Look at both").contains("Seen."));
    assert_eq!(user.model.requests().len(), 4);
    let images = |number: usize| user.request(number).matches("\"type\":\"image\"").count();
    assert_eq!((images(2), images(3)), (2, 1));
    let requests = user.model.requests();
    let body = &requests[3].body;
    let newest = body["messages"][4].to_string();
    assert!(newest.contains("\"type\":\"image\""), "the newest image is sent: {newest}");
    assert!(body["messages"][2].to_string().contains("is left out"), "{body}");
}
