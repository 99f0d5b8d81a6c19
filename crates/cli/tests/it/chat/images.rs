//! Images in what the user says: by name, dropped as files, and from the clipboard.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::*;

/// First bytes of an image, which differ by the last one.
fn png(last: u8) -> Vec<u8> {
    [&b"\x89PNG\r\n\x1a\n"[..], &[0, last]].concat()
}

fn answers(count: usize) -> String {
    (1..=count).map(|number| format!("[[turn]]\ntext = \"Seen {number}.\"\n")).collect()
}

/// Returns the data of the images in the newest message of the user that the model got, and its text.
fn newest(harness: &Harness) -> (Vec<String>, String) {
    let body = harness.server.requests().pop().unwrap().body;
    let content =
        body.pointer("/messages").unwrap().as_array().unwrap().last().unwrap().get("content").unwrap();
    let Some(parts) = content.as_array() else { return (Vec::new(), content.as_str().unwrap().to_owned()) };
    let text_at = |part: &Value, pointer: &str| Some(part.pointer(pointer)?.as_str()?.to_owned());
    let images = parts.iter().filter_map(|part| text_at(part, "/source/data")).collect();
    (images, parts.iter().filter_map(|part| text_at(part, "/text")).collect())
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::prelude::BASE64_STANDARD.encode(bytes)
}

#[test]
fn named_and_dropped_images_go_with_the_message() {
    let harness = Harness::new(Dialect::AnthropicMessages, &answers(4));
    std::fs::write(harness.path("flow.png"), png(1)).unwrap();
    let dropped = harness.path("My shot.png");
    std::fs::write(&dropped, png(2)).unwrap();
    let mut terminal = begin(&harness, &["what is @flow.png?"]);
    let screen = terminal.wait_for_text("Seen 1.");
    assert!(screen.contains("› what is @flow.png?\n    [image: image/png, 10 bytes]"), "{screen}");
    assert_eq!(newest(&harness), (vec![base64(&png(1))], "what is @flow.png?".to_owned()));

    terminal.type_keys(&format!("compare\u{1b}[200~'{}'\u{1b}[201~", dropped.display()));
    terminal.wait_for_text("› compare [image My shot.png, 1 KB]");
    terminal.type_keys("with @flow.png and @no.png\r");
    let screen = terminal.wait_for_text("Seen 2.");
    assert!(screen.contains("no.png was not sent as an image: "), "{screen}");
    let (images, text) = newest(&harness);
    assert_eq!(images, [base64(&png(2)), base64(&png(1))]);
    assert_eq!(text, format!("compare @\"{}\" with @flow.png and @no.png", dropped.display()));

    // The input of before names it again, and the conversation still has it.
    std::fs::remove_file(&dropped).unwrap();
    terminal.type_keys("\u{1b}[A\r");
    terminal.wait_for_text("Seen 3.");
    assert_eq!(newest(&harness).0.len(), 2);

    // Whatever is no image is text.
    std::fs::write(harness.path("notes.png"), "no image").unwrap();
    terminal.type_keys(&format!("\u{1b}[200~{}\u{1b}[201~", harness.path("notes.png").display()));
    terminal.wait_for_text("no image was taken: it is no PNG, JPEG, GIF or WebP image");
    terminal.type_keys(" is text\r");
    terminal.wait_for_text("Seen 4.");
    let (images, text) = newest(&harness);
    assert_eq!((images.len(), text), (0, format!("{} is text", harness.path("notes.png").display())));
    leave(terminal);
}

#[test]
fn images_are_on_record_and_belong_to_a_session_that_goes_on() {
    let harness = Harness::new(Dialect::AnthropicMessages, &answers(2));
    std::fs::write(harness.path("flow.png"), png(1)).unwrap();
    let mut terminal = begin(&harness, &["look at @flow.png"]);
    terminal.wait_for_text("Seen 1.");
    leave(terminal);
    std::fs::remove_file(harness.path("flow.png")).unwrap();
    let mut terminal = begin(&harness, &["--continue", "and now?"]);
    let screen = terminal.wait_for_text("Seen 2.");
    assert!(screen.contains("    [image: image/png, 10 bytes]"), "the recap names it: {screen}");
    let first = harness.server.requests().pop().unwrap().body.pointer("/messages/0").unwrap().to_string();
    assert!(first.contains(&base64(&png(1))), "{first}");
    leave(terminal);
}

#[test]
fn the_image_on_the_clipboard_is_pasted() {
    let harness = Harness::new(Dialect::AnthropicMessages, &answers(2));
    // Programs below the workspace are not found.
    let programs = tempfile::tempdir().unwrap();
    let programs = programs.path();
    let xclip = programs.join("xclip");
    let script = format!(
        "#!/bin/sh\n[ \"$*\" = \"-selection clipboard -target image/png -out\" ] || exit 2\n\
         cat '{}' 2> /dev/null\n",
        harness.path("clipboard").display()
    );
    std::fs::write(&xclip, script).unwrap();
    std::fs::set_permissions(&xclip, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let with = |variables: &[(&str, &str)]| {
        let mut command = chat(&harness, &[]);
        command.env("PATH", &path).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        command.envs(variables.iter().copied());
        let mut terminal = Terminal::start(&command);
        terminal.wait_for_text("say what to do");
        terminal
    };

    let mut terminal = with(&[("DISPLAY", ":7")]);
    terminal.type_keys("\u{16}");
    terminal.wait_for_text("there is no image on the clipboard");
    std::fs::write(harness.path("clipboard"), "not an image").unwrap();
    terminal.type_keys("\u{16}");
    terminal.wait_for_text("not pasted: it is no PNG");
    std::fs::write(harness.path("clipboard"), png(3)).unwrap();
    terminal.type_keys("why \u{16}");
    terminal.wait_for_text("› why [image from the clipboard, 1 KB]");
    terminal.type_keys("?\r");
    terminal.wait_for_text("Seen 1.");
    assert_eq!(newest(&harness), (vec![base64(&png(3))], "why @pasted-1.png ?".to_owned()));
    leave(terminal);

    let mut terminal = with(&[]);
    terminal.type_keys("\u{16}");
    terminal.wait_for_text("no desktop to paste from");
    leave(terminal);
}

#[test]
fn images_are_named_in_a_conversation_in_lines() {
    let harness = Harness::new(Dialect::AnthropicMessages, &answers(1));
    std::fs::write(harness.path("flow.png"), png(1)).unwrap();
    let mut terminal = Terminal::start(&chat(&harness, &["--plain"]));
    terminal.wait_for_text("/help lists commands");
    terminal.type_keys("look at @flow.png\r");
    let screen = terminal.wait_for_text("Seen 1.");
    assert!(screen.contains("[image: image/png, 10 bytes]"), "{screen}");
    assert_eq!(newest(&harness).0, [base64(&png(1))]);
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.finish().0, Some(0));
}
