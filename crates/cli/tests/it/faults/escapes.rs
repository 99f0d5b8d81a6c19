//! Text from outside that would control the terminal, from wherever it comes.

use std::fs;

use super::*;

/// What must not reach the terminal: titles, the clipboard, links, moves, erasures, replies, C1 controls, and directions.
const ATTACKS: [&str; 13] = [
    "\u{1b}]0;owned\u{7}",
    "\u{1b}]2;owned\u{1b}\\",
    "\u{1b}]52;c;b3duZWQ=\u{7}",
    "\u{1b}]8;;file:///etc/passwd\u{1b}\\here\u{1b}]8;;\u{1b}\\",
    "\u{1b}[2J",
    "\u{1b}[9;9H",
    "\u{1b}[6n",
    "\u{1b}[?1049h",
    "\u{1b}P$qm\u{1b}\\",
    "\u{1b}c",
    "\u{9b}2J\u{9d}0;owned\u{9c}\u{85}",
    "\u{202e}\u{2066}\u{2067}\u{200f}\u{200b}\u{8}\u{8}\u{b}",
    "[link](javascript:alert(1)) [file](file:///etc/passwd)",
];

/// Returns a text with all attacks, which begins and ends with marks that say where it came from.
fn attack(source: &str) -> String {
    format!("{source}.{}.", ATTACKS.concat())
}

/// Returns a string of TOML and JSON.
fn quoted(text: &str) -> String {
    let escape = |character: char| match character {
        '"' | '\\' => format!("\\{character}"),
        ' '..='~' => character.to_string(),
        _ => format!("\\u{:04x}", u32::from(character)),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

/// Checks that the source was shown, and that all of its text was harmless.
fn check(output: &str, sources: &[&str], is_plain: bool) {
    for source in sources {
        assert!(output.contains(&format!("{source}.")), "{source} was not shown: {output:?}");
    }
    let is_bad = |character: char| matches!(character, '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{200f}' | '\u{8}' | '\u{b}');
    assert!(!output.contains(is_bad), "{output:?}");
    let mut rest = output;
    while let Some((_, after)) = rest.split_once('\u{1b}') {
        assert!(!is_plain, "{after:?}");
        // The title, the question for the background, its end, and what the painter writes.
        let of_product =
            after.starts_with("]2;.tmp") || after.starts_with("]11;?\u{1b}\\") || after.starts_with('\\');
        let parameters = after.strip_prefix('[').map(|after| {
            let end = after.find(|character: char| character.is_ascii_alphabetic()).unwrap();
            after.split_at(end)
        });
        let is_painted = parameters.is_some_and(|(parameters, last)| match last.chars().next().unwrap() {
            'm' | 'A' | 'C' | 'L' | 'K' | 'u' | 't' => true,
            'J' => parameters.is_empty(),
            'H' => parameters.is_empty(),
            'h' | 'l' => ["?2004", "?2026", "?25", "?1049"].contains(&parameters),
            _ => false,
        });
        assert!(of_product || is_painted, "{:?}", after.chars().take(60).collect::<String>());
        rest = after;
    }
    let other_screens = output.matches("\u{1b}[?1049h").count();
    assert!(other_screens <= 1, "only the pager: {output:?}");
}

/// Writes text as a command does that a shell is asked to run.
fn printf(text: &str) -> String {
    let octal: String = text.bytes().map(|byte| format!("\\{byte:03o}")).collect();
    format!("printf '{octal}\\n'")
}

fn turns() -> String {
    let text = |source| quoted(&attack(source));
    let command = |source: &str, rest: &str| quoted(&format!(": '{}'; {rest}", attack(source)));
    [
        format!("[[turn]]\nreasoning = {}\ntext = {}\n", text("REASON"), text("SAID")),
        format!(
            "[[turn.call]]\ntool = \"shell\"\narguments = {{ command = {} }}\n",
            command("COMMAND", &printf(&attack("OUTPUT")))
        ),
        format!("[[turn]]\n[[turn.call]]\ntool = {}\narguments = {{ {} = {} }}\n", text("TOOL"), text("KEY"), text("VALUE")),
        format!(
            "[[turn]]\n[[turn.call]]\ntool = \"read_file\"\narguments = {{ file_path = {} }}\n",
            text("MISSING")
        ),
        format!(
            "[[turn]]\n[[turn.call]]\ntool = \"update_plan\"\narguments = {{ plan = [{{ step = {}, status = \"in_progress\" }}] }}\n",
            text("STEP")
        ),
        format!(
            "[[turn]]\n[[turn.call]]\ntool = \"write_file\"\narguments = {{ file_path = {}, content = {} }}\n",
            quoted(&attack("WRITTEN").replace('/', "")),
            text("DIFF")
        ),
        "[[turn]]\ntext = \"All shown.\"\n".to_owned(),
        format!("[[turn]]\nfailure = [{{ status = 400, body = {} }}]\ntext = \"Never.\"\n", text("ERROR")),
    ]
    .concat()
}

#[test]
fn nothing_from_a_model_or_its_tools_controls_the_terminal() {
    for is_plain in [false, true] {
        let harness = Harness::new(Dialect::AnthropicMessages, &turns());
        let mut command = chat(&harness, if is_plain { &["--plain"] } else { &[] });
        let mut terminal = Terminal::run(command.env("XTERM_VERSION", "XTerm(390)"), 160, 50, |_| {});
        terminal.wait_for_text(if is_plain { "— ready" } else { "say what to do" });
        terminal.type_keys("hello\r");
        terminal.wait_for_text("All shown.");
        terminal.wait_for("the end of the turn", |screen| !screen.contains("Esc interrupts"));
        terminal.type_keys("fail\r");
        terminal.wait_for_text("ERROR.");
        terminal.wait_for("the end of the turn", |screen| !screen.contains("Esc interrupts"));
        if !is_plain {
            terminal.type_keys("\u{14}");
            terminal.wait_for_text("q closes");
            terminal.type_keys("g");
            terminal.wait_for_text("› hello");
            terminal.type_keys("q");
        }
        terminal.type_keys("/diff\r");
        terminal.type_keys("/quit\r");
        let (code, screen, output) = terminal.finish();
        assert_eq!(code, Some(0), "{screen}");
        check(
            &output,
            &["SAID", "COMMAND", "OUTPUT", "TOOL", "MISSING", "STEP", "WRITTEN", "DIFF", "ERROR"],
            is_plain,
        );
    }
}

#[test]
fn nothing_in_a_question_controls_the_terminal() {
    for is_plain in [false, true] {
        let text = |source| quoted(&attack(source));
        let turns = format!(
            "[[turn]]\n[[turn.call]]\ntool = \"write_file\"\narguments = {{ file_path = {}, content = {} }}\n\
             [[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = {} }}\n\
             [[turn]]\n[[turn.call]]\ntool = \"ask_user\"\narguments = {{ question = {}, options = [{}] }}\n",
            quoted(&attack("FILE").replace('/', "")),
            text("DIFF"),
            text("COMMAND"),
            text("QUESTION"),
            text("OPTION"),
        );
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let mut command = chat(&harness, if is_plain { &["--plain"] } else { &[] });
        command.args(["--mode", "ask"]);
        let mut terminal = Terminal::run(&command, 160, 50, |_| {});
        terminal.wait_for_text(if is_plain { "— ready" } else { "say what to do" });
        terminal.type_keys("hello\r");
        for source in ["DIFF.", "COMMAND."] {
            terminal.wait_for("a question", |screen| {
                screen.contains(source) && screen.contains(if is_plain { "answer yes" } else { "y once" })
            });
            terminal.type_keys(if is_plain { "no\r" } else { "n" });
        }
        terminal.wait_for("the question", |screen| screen.contains("1. OPTION."));
        terminal.type_keys("/quit\r");
        let (code, screen, output) = terminal.finish();
        assert_eq!(code, Some(0), "{screen}");
        check(&output, &["FILE", "DIFF", "COMMAND", "QUESTION", "OPTION"], is_plain);
    }
}

#[test]
fn nothing_in_a_directory_controls_the_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Answer.\"\n");
    let name = |source: &str| attack(source).replace('/', "").chars().take(100).collect::<String>();
    fs::write(harness.path(&name("NAMED")), "").unwrap();
    fs::create_dir_all(harness.path(".pintle/commands")).unwrap();
    let content = format!("---\ndescription: {}\n---\nSay this.\n", attack("MEANING"));
    // A name with such characters is none.
    for name in ["called".to_owned(), name("CALLED")] {
        fs::write(harness.path(".pintle/commands").join(format!("{name}.md")), &content).unwrap();
    }
    let mut terminal = Terminal::run(&chat(&harness, &[]), 160, 50, |_| {});
    terminal.wait_for_text("say what to do");
    terminal.type_keys("@NAMED");
    terminal.wait_for("the menu", |screen| count(screen, "NAMED") == 2);
    terminal.type_keys("\t");
    terminal.wait_for_text("› @NAMED.");
    terminal.type_keys("\u{15}/call");
    terminal.wait_for("the menu", |screen| screen.contains("/called") && screen.contains("MEANING."));
    terminal.type_keys("\u{15}");
    // As a text that was copied from somewhere.
    terminal.type_keys(&format!("\u{1b}[200~{}\u{1b}[201~", attack("PASTED")));
    terminal.wait_for_text("› PASTED.");
    terminal.type_keys("\r");
    terminal.wait_for_text("Answer.");
    terminal.type_keys(&format!("!{}\r", printf(&attack("MINE"))));
    terminal.wait_for_text("MINE.");
    terminal.type_keys("/sessions\r");
    terminal.wait_for_text("/resume ID resumes one");
    terminal.type_keys("/quit\r");
    let (code, screen, output) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(
        screen.lines().filter(|line| line.contains("idle") && line.contains("PASTED.")).count(),
        1,
        "{screen}"
    );
    assert!(!output.contains("CALLED"), "{output:?}");
    check(&output, &["NAMED", "MEANING", "PASTED", "MINE"], false);
}

/// The subagent plays the same script: it says what its task is, too.
#[test]
fn nothing_from_a_subagent_controls_the_terminal() {
    for is_plain in [false, true] {
        let turns = format!(
            "[[turn]]\n[[turn.call]]\ntool = \"spawn_agent\"\narguments = {{ task = {} }}\n\
             [[turn]]\ntext = {}\n[[turn.call]]\ntool = \"wait\"\narguments = {{ agent_id = \"agent_1\" }}\n\
             [[turn]]\ntext = \"All done.\"\n",
            quoted(&attack("TASK")),
            quoted(&attack("WORDS")),
        );
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let command = chat(&harness, if is_plain { &["--plain"] } else { &[] });
        let mut terminal = Terminal::run(&command, 160, 50, |_| {});
        terminal.wait_for_text(if is_plain { "— ready" } else { "say what to do" });
        terminal.type_keys("hello\r");
        terminal.wait_for_text("All done.");
        terminal.wait_for("the end of the turn", |screen| !screen.contains("Esc interrupts"));
        terminal.type_keys("/agents\r/quit\r");
        let (code, screen, output) = terminal.finish();
        assert_eq!(code, Some(0), "{screen}");
        check(&output, &["TASK", "WORDS"], is_plain);
    }
}
