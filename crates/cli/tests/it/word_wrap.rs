//! Text of the model on a terminal and in a pipe.

use pintle_testkit::Dialect;

use crate::harness::{Harness, run, without_level_notice};
use crate::terminal::Terminal;

const TEXT: &str = "The quick brown fox jumps over the lazy dog and runs away from it.\\n\\n- an item of a list that is longer than a row\\n\\n```\\nlet code = \\\"is never wrapped at words, however long\\\";\\n```\\n";

fn responding(text: &str) -> Harness {
    Harness::new(Dialect::AnthropicMessages, &format!("[[turn]]\ntext = \"{text}\"\n"))
}

#[test]
fn terminal_text_wraps_at_words() {
    let commands: [(&str, &[&str]); 3] = [("run", &["Go"]), ("run", &["--quiet", "Go"]), ("ask", &["Go"])];
    for (subcommand, arguments) in commands {
        let harness = responding(TEXT);
        let terminal = Terminal::run(&harness.command(subcommand, arguments), 40, 24, |_| {});
        let (code, screen, _) = terminal.finish();
        let screen = without_level_notice(&screen);
        assert_eq!(code, Some(0), "{screen}");
        let expected = "The quick brown fox jumps over the lazy\ndog and runs away from it.\n\n\
                        - an item of a list that is longer than\n  a row\n\n```\n\
                        let code = \"is never wrapped at words, however long\";\n```\n";
        // The terminal itself wraps the line of code, which counts as one line here.
        assert!(format!("{screen}\n").starts_with(expected), "{subcommand} {arguments:?}:\n{screen}");
    }
}

#[test]
fn piped_text_is_not_wrapped() {
    for (subcommand, arguments) in [("run", &["--quiet", "Go"][..]), ("ask", &["Go"])] {
        let harness = responding(TEXT);
        let output = run(&mut harness.command(subcommand, arguments));
        assert_eq!(output.stdout, TEXT.replace("\\n", "\n").replace("\\\"", "\""), "{output:?}");
    }
    let output = run(&mut responding(TEXT).command("run", &["Go"]));
    assert!(
        output.stdout.contains("jumps over the lazy dog and runs away from it.\n\n- an item"),
        "{output:?}"
    );
}

/// Invisible characters from any source are removed, except those that emoji and scripts need.
#[test]
fn invisible_characters_are_removed() {
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
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        let arguments = [arguments, &["Go"]].concat();
        let (code, _, bytes) = Terminal::run(&harness.command("run", &arguments), 100, 40, |_| {}).finish();
        assert_eq!(code, Some(0), "{bytes}");
        (
            bytes.replace("\r\n", "\n"),
            run(&mut Harness::new(Dialect::AnthropicMessages, turns).command("run", &arguments)).stdout,
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
