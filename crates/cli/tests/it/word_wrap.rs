//! What a model writes, on a terminal and in a pipe.

use pintle_testkit::Dialect;

use crate::lab::{Model, say};
use crate::terminal::Terminal;

const TEXT: &str = "The quick brown fox jumps over the lazy dog and runs away from it.\\n\\n- an item of a list that is longer than a row\\n\\n```\\nlet code = \\\"is never wrapped at words, however long\\\";\\n```\\n";

fn answering(text: &str) -> Model {
    Model::new(Dialect::AnthropicMessages, &format!("[[turn]]\ntext = \"{text}\"\n"))
}

#[test]
fn a_terminal_breaks_lines_between_words() {
    let commands: [(&str, &[&str]); 3] = [("run", &["Go"]), ("run", &["--quiet", "Go"]), ("ask", &["Go"])];
    for (subcommand, arguments) in commands {
        let model = answering(TEXT);
        let terminal = Terminal::run(&model.command(subcommand, arguments), 40, 24, |_| {});
        let (code, screen, _) = terminal.ends();
        assert_eq!(code, Some(0), "{screen}");
        let expected = "The quick brown fox jumps over the lazy\ndog and runs away from it.\n\n\
                        - an item of a list that is longer than\n  a row\n\n```\n\
                        let code = \"is never wrapped at words, however long\";\n```\n";
        // The terminal breaks the line of code by itself, which counts as one line here.
        assert!(format!("{screen}\n").starts_with(expected), "{subcommand} {arguments:?}:\n{screen}");
    }
}

#[test]
fn a_pipe_gets_the_lines_as_they_are() {
    for (subcommand, arguments) in [("run", &["--quiet", "Go"][..]), ("ask", &["Go"])] {
        let model = answering(TEXT);
        let said = say(&mut model.command(subcommand, arguments));
        assert_eq!(said.out, TEXT.replace("\\n", "\n").replace("\\\"", "\""), "{said:?}");
    }
    let said = say(&mut answering(TEXT).command("run", &["Go"]));
    assert!(said.out.contains("jumps over the lazy dog and runs away from it.\n\n- an item"), "{said:?}");
}

/// Hidden characters do not pass into a transcript, wherever they come from; what emoji and scripts need does.
#[test]
fn characters_that_are_not_seen_are_left_out() {
    let turns = r#"
        [[turn]]
        text = "pass\u200Bword\uFEFF \u2066x\u2069 \U000E0041\U000E007F 👩\u200D👧 ❤\uFE0F می\u200Cخواهم"
        [[turn.call]]
        tool = "shell"
        arguments = { command = "printf 'a\\342\\200\\213b\\n'; : x\u200By" }
        [[turn.call]]
        tool = "write_file"
        arguments = { file_path = "a.txt", content = "one\u200Btwo\rthree\n" }
        [[turn]]
        text = "Done."
        "#;
    let run = |arguments: &[&str]| {
        let model = Model::new(Dialect::AnthropicMessages, turns);
        let arguments = [arguments, &["Go"]].concat();
        let (code, _, bytes) = Terminal::run(&model.command("run", &arguments), 100, 40, |_| {}).ends();
        assert_eq!(code, Some(0), "{bytes}");
        (
            bytes.replace("\r\n", "\n"),
            say(&mut Model::new(Dialect::AnthropicMessages, turns).command("run", &arguments)).out,
        )
    };
    let (shown, piped) = run(&[]);
    for output in [shown, piped] {
        for hidden in ['\u{200b}', '\u{feff}', '\u{2066}', '\u{2069}', '\u{e0041}', '\u{e007f}'] {
            assert!(!output.contains(hidden), "{hidden:?} in {output:?}");
        }
        for kept in ["password x", "👩\u{200d}👧 ❤\u{fe0f} می\u{200c}خواهم", "ab", "+one\\u{200b}two\\rthree"]
        {
            assert!(output.contains(kept), "{kept:?} in {output:?}");
        }
    }
}
