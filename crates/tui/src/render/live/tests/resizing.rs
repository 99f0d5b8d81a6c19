//! Window sizes and resizing.

use super::*;

#[test]
fn live_region_fits_forty_columns() {
    let mut harness = Harness::new(40, 10, PLAIN);
    harness.event(started(
        "1",
        "shell",
        &json!({"command": "cargo test --workspace --all-targets --all-features"}),
    ));
    harness.event(started(
        "2",
        "grep",
        &json!({"pattern": "全角文字の検索パターンはとても長いです", "path": "src"}),
    ));
    harness.event(started("3", "grep", &json!({"pattern": "e\u{301}e\u{301}\tx\u{1b}[2Jy\u{7}z"})));
    harness.wait(Duration::from_secs(75));
    insta::assert_snapshot!(harness.screen(), @r"
    ⠋ shell cargo test --worksp… 1 min 15 s
    ⠋ grep 全角文字の検索パター… 1 min 15 s
    ⠋ grep éé x [2Jy z 1 min 15 s
    ");
}

#[test]
fn narrow_window_keeps_the_start_of_a_line() {
    let cases = [
        (1, ""),
        (2, "…"),
        (3, "⠼…"),
        (4, "⠼ …"),
        (9, "⠼ shell…"),
        (10, "⠼ shell …"),
        (12, "⠼ shell 日…"),
        (13, "⠼ shell… 4 s"),
        (16, "⠼ shell 日… 4 s"),
    ];
    for (columns, expected) in cases {
        let mut harness = Harness::new(columns, 5, PLAIN);
        harness.event(started("1", "shell", &json!({"command": "日本"})));
        harness.wait(Duration::from_millis(4_400));
        let first = harness.terminal.screen().rows(0, columns.try_into().unwrap()).next().unwrap();
        assert_eq!(first, expected, "{columns} columns");
    }
}

#[test]
fn live_region_is_never_taller_than_the_screen() {
    for rows in 1..8 {
        let mut harness = Harness::new(40, rows, PLAIN);
        harness.stream_text("Five at once.");
        for call in ["1", "2", "3", "4", "5"] {
            harness.event(started(call, "read_file", &json!({"file_path": call})));
        }
        harness.wait(Duration::from_secs(2));
        let lines =
            harness.screen().lines().filter(|line| line.starts_with('⠋') || line.starts_with('…')).count();
        assert_eq!(lines, (rows - 1).min(5), "{}", harness.screen());
        for call in ["1", "2", "3", "4", "5"] {
            harness.event(ended(call, "read_file", ""));
        }
        harness.resize(40, 20);
        let shown = harness.screen();
        let lines: Vec<&str> = shown.lines().collect();
        let done = |call| format!("✓ read_file {call} 1.2 s");
        let expected: Vec<String> =
            ["Five at once.".to_owned(), String::new()].into_iter().chain((1..6).map(done)).collect();
        assert_eq!(lines, expected, "{rows}");
    }
}

#[test]
fn resize_leaves_no_garbage() {
    let long = json!({"command": "cargo test --workspace --all-targets --all-features --no-fail-fast -- --nocapture"});
    for (columns, rows) in [(40, 24), (120, 24), (79, 24), (80, 4), (20, 3), (80, 50)] {
        let mut harness = Harness::new(80, 24, PLAIN);
        harness.event(started("1", "shell", &long));
        harness.event(started("2", "grep", &json!({"pattern": "x"})));
        harness.wait(TICK);
        harness.resize(columns, rows);
        harness.wait(TICK);
        let shown = harness.screen();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 2, "{columns} {rows}: {shown}");
        assert!(lines[0].starts_with("⠹ shell cargo") && lines[1] == "⠹ grep x", "{columns} {rows}: {shown}");
        harness.events([ended("1", "shell", ""), ended("2", "grep", "")]);
        harness.resize(200, 50);
        let shown = harness.screen();
        let lines: Vec<&str> =
            shown.lines().filter(|line| line.contains("⠹") || line.contains("✓")).collect();
        assert!(
            lines.len() == 2 && lines.iter().all(|line| line.starts_with('✓')),
            "{columns} {rows}: {shown}"
        );
    }
}

/// Resizes like a terminal that rewraps lines: the cursor stays on its character.
fn reflow(harness: &mut Harness, columns: usize) {
    let shown = harness.screen();
    let above = usize::from(harness.terminal.screen().cursor_position().0);
    harness.size.columns = columns;
    harness.terminal = terminal(harness.size);
    let lines: Vec<&str> = shown.lines().collect();
    let (before, live) = lines.split_at(above);
    for line in before {
        harness.terminal.process(format!("{line}\r\n").as_bytes());
    }
    let (row, _) = harness.terminal.screen().cursor_position();
    harness.terminal.process(live.join("\r\n").as_bytes());
    harness.terminal.process(format!("\x1b[{};1H", row + 1).as_bytes());
}

#[test]
fn rewrapped_lines_are_erased() {
    let command = "cargo test --workspace --all-targets --all-features --no-fail-fast -- --nocapture";
    for columns in [13, 40, 60] {
        let mut harness = Harness::new(100, 30, PLAIN);
        harness.stream_text("I run the tests.");
        harness.event(started("1", "shell", &json!({"command": command})));
        harness.event(started("2", "shell", &json!({"command": command})));
        harness.wait(TICK);
        let rows = |harness: &Harness| -> Vec<String> {
            let width = u16::try_from(columns).unwrap();
            harness.terminal.screen().rows(0, width).filter(|row| !row.is_empty()).collect()
        };
        reflow(&mut harness, columns);
        assert!(rows(&harness).len() > 4, "the lines are wrapped: {:?}", rows(&harness));
        harness.wait(TICK);
        let shown = rows(&harness);
        let spinning: Vec<&String> = shown.iter().skip_while(|row| !row.starts_with('⠹')).collect();
        assert!(spinning.len() == 2 && spinning.iter().all(|row| row.starts_with("⠹ shell")), "{shown:?}");
        assert!(!shown.iter().any(|row| row.contains('⠙')), "{shown:?}");
    }
}
