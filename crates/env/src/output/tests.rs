#![expect(clippy::disallowed_methods, reason = "the tests look at files that the crate wrote")]

use proptest::prelude::*;

use super::*;

fn limits(inline: usize) -> OutputLimits {
    OutputLimits::default().with_inline(inline)
}

fn collect(limits: OutputLimits, pieces: &[&[u8]]) -> Output {
    let mut collector = OutputCollector::new(limits);
    for piece in pieces {
        collector.push(piece);
    }
    collector.finish()
}

#[test]
fn the_limit_decides_between_memory_and_spool() {
    assert!(!collect(limits(4), &[b"ab", b"cd"]).is_spooled());
    let spooled = collect(limits(4), &[b"ab", b"cd", b"e"]);
    assert!(spooled.is_spooled());
    assert_eq!(spooled.read_at(0, 100).unwrap(), b"abcde");
    assert_eq!(spooled.read_at(3, 100).unwrap(), b"de");
    assert_eq!(spooled.read_at(9, 100).unwrap(), b"");
}

#[test]
fn a_spool_file_has_no_name() {
    let directory = tempfile::tempdir().unwrap();
    let limits = limits(1).with_spool_dir(directory.path());
    let output = collect(limits, &[b"abc"]);
    assert!(output.is_spooled());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn bytes_beyond_the_total_are_counted() {
    let output = collect(limits(2).with_total(5), &[b"abc", b"defg", b"h"]);
    assert_eq!(output.to_text_lossy().unwrap(), "abcde");
    assert_eq!(output.dropped(), 3);
}

#[test]
fn a_failed_spool_drops_and_counts() {
    let limits = limits(2).with_spool_dir("/nonexistent/spool");
    let output = collect(limits, &[b"ab", b"cd", b"e"]);
    assert_eq!(output.to_text_lossy().unwrap(), "ab");
    assert_eq!(output.dropped(), 3);
}

#[test]
fn heads_and_tails_do_not_split_characters() {
    for inline in [1, 100] {
        let output = collect(limits(inline), &["aé€😀z".as_bytes()]);
        let heads = ["", "a", "a", "aé", "aé", "aé", "aé€", "aé€", "aé€", "aé€", "aé€😀"];
        for (bytes, expected) in heads.into_iter().enumerate() {
            assert_eq!(output.head_text_lossy(bytes).unwrap(), expected, "{bytes}");
        }
        let tails = ["", "z", "z", "z", "z", "😀z", "😀z", "😀z", "€😀z"];
        for (bytes, expected) in tails.into_iter().enumerate() {
            assert_eq!(output.tail_text_lossy(bytes).unwrap(), expected, "{bytes}");
        }
    }
}

#[test]
fn serialises_as_text_or_as_two_ends() {
    let json = |output: &Output| serde_json::to_string(output).unwrap();
    assert_eq!(json(&Output::from("a\u{e9}\n")), r#""aé\n""#);
    assert_eq!(
        json(&collect(limits(1), &[b"abc"])),
        r#"{"spooled":true,"bytes":3,"dropped":0,"head":"abc","tail":"abc"}"#
    );
}

#[test]
fn persist_copies_everything() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("kept");
    let output = collect(limits(8), &[&[7; 3 << 20]]);
    assert_eq!(output.persist(&target).unwrap(), 3 << 20);
    assert_eq!(std::fs::read(&target).unwrap(), vec![7; 3 << 20]);
}

proptest! {
    #[test]
    fn streams_are_captured_separately_and_combined(
        pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 1..9)), 0..12),
        inline in 0_usize..40,
    ) {
        let mut capture = OutputCapture::new(limits(inline));
        let (mut stdout, mut stderr, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for (is_error, bytes) in &pieces {
            let (stream, kept) = if *is_error {
                (OutputStream::Stderr, &mut stderr)
            } else {
                (OutputStream::Stdout, &mut stdout)
            };
            kept.extend_from_slice(bytes);
            both.extend_from_slice(bytes);
            capture.push(&OutputChunk::new(stream, bytes.clone()));
        }
        let captured = capture.finish();
        prop_assert_eq!(captured.stdout.read_at(0, 1000).unwrap(), stdout);
        prop_assert_eq!(captured.stderr.read_at(0, 1000).unwrap(), stderr);
        prop_assert_eq!(captured.output.read_at(0, 1000).unwrap(), both);
    }

    #[test]
    fn heads_and_tails_match_the_ends(text in ".{0,20}", bytes in 0_usize..30) {
        let output = Output::from(text.as_str());
        prop_assert!(text.starts_with(&output.head_text_lossy(bytes).unwrap()));
        prop_assert!(text.ends_with(&output.tail_text_lossy(bytes).unwrap()));
    }
}

#[test]
fn records_restore_text_or_both_ends() {
    let text = Output::from("all of it");
    let json = serde_json::to_string(&text).unwrap();
    assert_eq!(serde_json::from_str::<Output>(&json).unwrap(), text);
    let json = r#"{"spooled":true,"bytes":100,"dropped":7,"head":"begin","tail":"end"}"#;
    let spooled: Output = serde_json::from_str(json).unwrap();
    assert_eq!((spooled.len(), spooled.dropped(), spooled.is_spooled()), (100, 7, true));
    assert_eq!(spooled.read_at(1, 3).unwrap(), b"egi");
    assert_eq!(spooled.tail_text_lossy(3).unwrap(), "end");
    assert!(spooled.read_at(50, 3).is_err(), "the middle is not in the record");
    assert_eq!(serde_json::to_string(&spooled).unwrap(), json);
}
