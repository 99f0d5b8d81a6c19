use pintle_env::{OutputCollector, OutputLimits};
use proptest::prelude::*;

use super::*;

fn cut_to(text: &str, tool: &str, limits: &TruncationLimits) -> String {
    truncate(&Output::from(text), tool, tool, limits)
}

fn spooled(bytes: &[u8]) -> Output {
    let mut collector = OutputCollector::new(OutputLimits::default().with_inline(0));
    collector.push(bytes);
    collector.finish()
}

/// Returns the lines `1`, `2`, …
fn numbered(lines: usize) -> String {
    (1..=lines).map(|number| number.to_string()).collect::<Vec<_>>().join("\n")
}

#[test]
fn text_within_the_limits_is_unchanged() {
    for text in ["", "a", "a\n", "é\u{1F600}\n\n", &"x".repeat(30_000)] {
        assert_eq!(cut_to(text, "shell", &TruncationLimits::new()), text);
    }
}

#[test]
fn the_middle_is_removed_and_counted() {
    let limits = TruncationLimits::new().with_chars("shell", 10);
    insta::assert_snapshot!(cut_to("0123456789abcdefghij!", "shell", &limits), @r"
    01234

    [WARNING: Tool output was truncated. 11 characters were removed from the middle. The full output is available in the event stream. If you need to see specific parts, re-run the tool with more targeted parameters.]

    ghij!
    ");
}

#[test]
fn tail_mode_removes_the_beginning() {
    let limits = TruncationLimits::new().with_chars("grep", 10);
    insta::assert_snapshot!(cut_to("0123456789abcdefghij!", "grep", &limits), @r"
    [WARNING: Tool output was truncated. First 11 characters were removed. The full output is available in the event stream.]

    bcdefghij!
    ");
}

#[test]
fn lines_are_removed_from_the_middle_in_both_modes() {
    let limits = TruncationLimits::new().with_lines("shell", 5).with_lines("grep", 5);
    for tool in ["shell", "grep"] {
        assert_eq!(cut_to(&numbered(9), tool, &limits), "1\n2\n[... 4 lines omitted ...]\n7\n8\n9", "{tool}");
        assert_eq!(cut_to(&numbered(5), tool, &limits), numbered(5), "{tool}");
    }
}

#[test]
fn the_line_limit_keeps_the_character_marker() {
    let limits = TruncationLimits::new().with_chars("shell", 20).with_lines("shell", 4);
    insta::assert_snapshot!(cut_to(&numbered(99), "shell", &limits), @r"
    1
    2

    [WARNING: Tool output was truncated. 267 characters were removed from the middle. The full output is available in the event stream. If you need to see specific parts, re-run the tool with more targeted parameters.]

    [... 95 lines omitted ...]
    98
    99
    ");
    let limits = TruncationLimits::new().with_chars("grep", 20).with_lines("grep", 4);
    insta::assert_snapshot!(cut_to(&numbered(99), "grep", &limits), @r"
    [WARNING: Tool output was truncated. First 267 characters were removed. The full output is available in the event stream.]

    [... 95 lines omitted ...]
    96
    97
    98
    99
    ");
}

#[test]
fn two_enormous_lines_are_cut_by_characters() {
    let text = format!("{}\n{}", "a".repeat(10_000_000), "b".repeat(10_000_000));
    let shown = cut_to(&text, "shell", &TruncationLimits::new());
    assert!(shown.starts_with('a') && shown.ends_with('b'));
    assert!(shown.contains("19970001 characters were removed"), "{}", &shown[15_000..15_300]);
    assert!(!shown.contains("lines omitted"));
}

#[test]
fn a_partial_line_does_not_count_as_omitted() {
    let limits = TruncationLimits::new().with_chars("shell", 6).with_lines("shell", 2);
    let shown = cut_to("aaaaaaaa\nbb", "shell", &limits);
    assert!(shown.starts_with("aaa\n\n[WARNING") && shown.ends_with("]\n\n\nbb"), "{shown}");
}

#[test]
fn limits_of_zero_leave_only_the_markers() {
    let limits = TruncationLimits::new().with_chars("shell", 0).with_lines("grep", 0);
    assert!(cut_to("abc", "shell", &limits).contains(" 3 characters were removed"));
    assert_eq!(cut_to("abc", "grep", &limits), "\n[... 1 lines omitted ...]\n");
}

#[test]
fn characters_are_not_split_at_block_boundaries() {
    // Three bytes each, so that block boundaries fall inside characters.
    let text = "€".repeat(100_000);
    let limits = TruncationLimits::new().with_chars("shell", 50_001);
    for output in [Output::from(text.as_str()), spooled(text.as_bytes())] {
        let shown = truncate(&output, "shell", "shell", &limits);
        assert_eq!(shown.matches('€').count(), 50_001);
        assert!(shown.contains(" 49999 characters were removed") && !shown.contains('\u{FFFD}'));
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[a-z]{0,6}".prop_map(String::into_bytes),
        3 => Just(b"\n".to_vec()),
        2 => any::<char>().prop_map(|character| character.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn rule() -> impl Strategy<Value = TruncationRule> {
    let mode = prop_oneof![
        Just(TruncationMode::HeadTail),
        Just(TruncationMode::LongTail),
        Just(TruncationMode::Tail),
    ];
    (0_usize..80, prop::option::of(0_usize..30), mode)
        .prop_map(|(chars, lines, mode)| TruncationRule::new(chars, mode).with_lines(lines))
}

/// The text around the gap, and the counts in the markers.
struct Shown<'a> {
    head: &'a str,
    tail: &'a str,
    chars: Option<u64>,
    lines: Option<u64>,
}

fn number(text: &str) -> u64 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Splits a truncated text at its markers. The generated text does not contain them.
fn split_at_markers(shown: &str) -> Shown<'_> {
    let (mut head, mut tail, mut chars, mut lines) = (shown, "", None, None);
    if let Some((before, after)) = shown.split_once("[WARNING: Tool output was truncated. ") {
        let (marker, after) = after.split_once("]\n\n").unwrap();
        chars = Some(number(marker));
        head = if marker.starts_with("First") { before } else { before.strip_suffix("\n\n").unwrap() };
        tail = after;
        if let Some((marker, after)) = after.split_once(" lines omitted ...]\n") {
            lines = Some(number(marker));
            tail = after;
        }
    } else if let Some((before, after)) = shown.split_once("\n[... ") {
        let (marker, after) = after.split_once(" lines omitted ...]\n").unwrap();
        (head, tail, lines) = (before, after, Some(number(marker)));
    }
    Shown { head, tail, chars, lines }
}

proptest! {
    #[test]
    fn limits_hold_and_counts_add_up(bytes in bytes(), rule in rule()) {
        let original = String::from_utf8_lossy(&bytes).into_owned();
        let all_chars = original.chars().count() as u64;
        let all_lines = original.matches('\n').count() as u64 + 1;
        let result = cut(&Output::from(bytes), rule).unwrap();
        let shown = split_at_markers(&result);

        prop_assert!(original.starts_with(shown.head) && original.ends_with(shown.tail));
        let kept = (shown.head.chars().count() + shown.tail.chars().count()) as u64;
        match shown.chars {
            Some(removed) => {
                prop_assert_eq!(removed + rule.chars as u64, all_chars);
                if shown.lines.is_none() {
                    prop_assert_eq!(kept + removed, all_chars);
                }
            }
            None => prop_assert!(all_chars <= rule.chars as u64),
        }
        if let Some(omitted) = shown.lines {
            let limit = rule.lines.unwrap() as u64;
            prop_assert!(omitted > 0);
            prop_assert_eq!(omitted + limit, all_lines);
        } else if shown.chars.is_none() {
            prop_assert_eq!(&result, &original);
        }
    }

    #[test]
    fn a_spooled_output_is_cut_like_one_in_memory(bytes in bytes(), rule in rule()) {
        let inline = cut(&Output::from(bytes.clone()), rule).unwrap();
        prop_assert_eq!(cut(&spooled(&bytes), rule).unwrap(), inline);
    }
}

#[test]
fn markers_match_those_of_their_agents() {
    let rule = |mode, marker| TruncationRule::new(10, mode).with_marker(marker);
    let text = Output::from("0123456789\nabcdefghij!\n");
    let cases = [
        (TruncationMode::HeadTail, TruncationMarker::Tokens),
        (TruncationMode::LongTail, TruncationMarker::Characters),
    ];
    let shown: Vec<String> =
        cases.iter().map(|(mode, marker)| truncate_to(&text, rule(*mode, *marker))).collect();
    insta::assert_snapshot!(shown.join("\n=====\n"), @r"
    Total output lines: 2

    01234…4 tokens truncated…hij!

    =====
    01

    ... [13 characters omitted] ...

    efghij!

    [The full output is available in the event stream.]
    ");
}

#[test]
fn configured_limits_override_a_tools_own_rule() {
    let own = TruncationRule::new(40_000, TruncationMode::LongTail).with_marker(TruncationMarker::Characters);
    let limits = TruncationLimits::new().with_chars("shell", 5).with_lines("run_shell_command", 2);
    let rule = limits.rule("run_shell_command", "shell", own);
    assert_eq!((rule.chars, rule.lines, rule.mode), (5, Some(2), TruncationMode::LongTail));
    assert_eq!(limits.rule("other", "other", own), own);
}

/// Anything but a linear pass would take minutes.
#[test]
fn megabytes_are_cut_in_linear_time() {
    let part = pintle_test_conditions::cases(2_500_000, 25_000_000);
    let mut bytes = b"a line of some length, and nothing else in it\n".repeat(part / 46);
    bytes.extend(vec![b'x'; part]);
    bytes.extend(vec![0x80; part]);
    bytes.extend(vec![b'\n'; part]);
    for (output, kind) in [(spooled(&bytes), "shell"), (Output::from(bytes), "grep")] {
        let start = std::time::Instant::now();
        let shown = truncate(&output, kind, kind, &TruncationLimits::new());
        assert!(shown.chars().count() < 31_000, "{kind}");
        assert!(shown.contains(" lines omitted"), "{kind}");
        assert!(start.elapsed().as_secs() < 60, "{kind}: {:?}", start.elapsed());
    }
}

proptest! {
    #[test]
    fn every_marker_keeps_the_same_characters(bytes in bytes(), rule in rule()) {
        let original = String::from_utf8_lossy(&bytes).into_owned();
        let output = Output::from(bytes);
        let removed = (original.chars().count() as u64).saturating_sub(rule.chars as u64);
        let rule = rule.with_lines(None);
        let warned = cut(&output, rule).unwrap();
        let in_tokens = cut(&output, rule.with_marker(TruncationMarker::Tokens)).unwrap();
        let in_chars = cut(&output, rule.with_marker(TruncationMarker::Characters)).unwrap();
        if removed == 0 {
            prop_assert_eq!([&warned, &in_tokens, &in_chars], [&original; 3]);
            return Ok(());
        }
        let kept = split_at_markers(&warned);
        let (head, tail) = in_tokens.split_once(" tokens truncated…").unwrap();
        let (head, _) = head.rsplit_once('…').unwrap();
        let (_, head) = head.split_once("\n\n").unwrap();
        prop_assert_eq!((head, tail), (kept.head, kept.tail));
        let (head, tail) = in_chars.split_once(&format!("\n\n... [{removed} characters omitted] ...\n\n")).unwrap();
        let tail = tail.strip_suffix("\n[The full output is available in the event stream.]").unwrap();
        prop_assert_eq!((head, tail), (kept.head, kept.tail));
    }
}
