use super::*;
use crate::text::Text;
use proptest::prelude::*;

fn naive(numbers: &[usize], run: &[usize], from: usize) -> Vec<usize> {
    let windows = numbers.windows(run.len()).enumerate().skip(from);
    windows.filter(|(_, window)| *window == run).map(|(at, _)| at).collect()
}

/// Two kinds of lines in a pseudo-random order, so that no line of a hunk is rare.
fn noise(length: usize) -> Vec<usize> {
    let next = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    let states = std::iter::successors(Some(1_u64), next);
    states.take(length).map(|state| usize::from(state >> 63 == 1)).collect()
}

#[test]
fn search_work_is_counted_and_limited() {
    let numbers = noise(10_000);
    let text: String = numbers.iter().map(|number| format!("{number}\n")).collect();
    let text = Text::new(text.as_bytes(), false);
    let run: Vec<&[u8]> = text.lines[5_000..5_040].iter().map(|line| line.text()).collect();
    let searcher =
        LineSearcher::new(&text.lines, run.clone(), LineComparison { utf8: true, canonical: true });
    assert_eq!(searcher.find(MatchLevel::Exact, &run, 0, 3), [5_000]);
    let cost = searcher.steps.get();
    assert!((5_000..40_000).contains(&cost), "{cost}");
    assert!(!searcher.is_exhausted());
    searcher.steps.set(MAX_STEPS);
    assert!(!searcher.is_exhausted());
    searcher.find(MatchLevel::Exact, &run, 0, 3);
    assert!(searcher.is_exhausted());
    assert_eq!(searcher.find(MatchLevel::Exact, &run, 0, 3), [0; 0]);
}

/// Returns the first `limit` positions of `run` in `lines`, and the number of steps to find them.
fn search(lines: &[String], run: &[String], limit: usize) -> (Vec<usize>, usize) {
    let text = lines.join("\n");
    let text = Text::new(text.as_bytes(), false);
    let run: Vec<&[u8]> = run.iter().map(String::as_bytes).collect();
    let searcher =
        LineSearcher::new(&text.lines, run.clone(), LineComparison { utf8: true, canonical: true });
    (searcher.find(MatchLevel::Exact, &run, 0, limit), searcher.steps.get())
}

#[test]
fn a_run_with_a_rare_line_costs_its_own_length() {
    let lines: Vec<String> = (0..10_000).map(|line| format!("{}", line % 9_000)).collect();
    assert_eq!(search(&lines, &lines[8_998..9_001], 9), (vec![8_998], 4));
    assert_eq!(search(&lines, &lines[5..8], 9), (vec![5, 9_005], 8));
}

#[test]
fn a_run_of_frequent_lines_costs_the_length_of_the_file() {
    // At each of 2,500 positions 2,500 lines match before one does not.
    let half = |line: &str| vec![line.to_owned(); 5_000];
    let lines = [half("a"), half("b")].concat();
    let (found, cost) = search(&lines, &lines[2_500..7_500], 9);
    assert_eq!(found, [2_500]);
    assert!((20_000..30_000).contains(&cost), "{cost}");
    // The limit covers all positions, including those found before the switch to the linear search.
    let lines = vec!["a".to_owned(); 100];
    assert_eq!(search(&lines, &lines[..60], 5).0, [0, 1, 2, 3, 4]);
}

/// Lines that are equal at some level or at none.
fn line() -> impl Strategy<Value = &'static str> {
    let lines = ["a", "a ", " a", "\ta", "b", "", " ", "\"", "\u{201D}", " \u{201D} ", "\u{E9}", "e\u{301} "];
    prop::sample::select(lines.to_vec())
}

proptest! {
    #[test]
    fn every_search_agrees_with_a_naive_one(
        numbers in prop::collection::vec(0..3usize, 0..60),
        run in prop::collection::vec(0..3usize, 1..6),
        from in 0..60usize,
        limit in 1..4usize,
    ) {
        let mut expected = naive(&numbers, &run, from);
        expected.truncate(limit);
        prop_assert_eq!(&find_linear(&numbers, &run, from, limit), &expected);

        let text: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        let text = Text::new(text.as_bytes(), false);
        let run: Vec<String> = run.iter().map(usize::to_string).collect();
        let run: Vec<&[u8]> = run.iter().map(String::as_bytes).collect();
        let searcher = LineSearcher::new(&text.lines, run.clone(), LineComparison { utf8: true, canonical: true });
        prop_assert_eq!(searcher.find(MatchLevel::Exact, &run, from, limit), expected);
    }

    #[test]
    fn each_level_finds_the_lines_equal_there(
        lines in prop::collection::vec(line(), 0..16),
        run in prop::collection::vec(line(), 1..3),
        from in 0..4usize,
    ) {
        let text = lines.join("\n");
        let text = Text::new(text.as_bytes(), false);
        let form = LineComparison { utf8: true, canonical: true };
        let run: Vec<&[u8]> = run.iter().map(|line| line.as_bytes()).collect();
        let searcher = LineSearcher::new(&text.lines, run.clone(), form);
        for level in MatchLevel::ALL {
            let equal = |window: &[TextLine<'_>]| {
                window.iter().zip(&run).all(|(line, wanted)| form.equal(level, line.text(), wanted))
            };
            let windows = text.lines.windows(run.len()).enumerate().skip(from);
            let expected: Vec<usize> =
                windows.filter(|(_, window)| equal(window)).map(|(at, _)| at).collect();
            prop_assert_eq!(searcher.find(level, &run, from, usize::MAX), expected, "{:?}", level);
        }
    }

    #[test]
    fn rare_prefixes_are_found_and_frequent_ones_ignored(
        lines in prop::collection::vec("[ab ]{0,4}", 0..200),
        hints in prop::collection::vec("[ab]{1,4}", 1..4),
    ) {
        let text = lines.join("\n");
        let text = Text::new(text.as_bytes(), false);
        let hints: Vec<&[u8]> = hints.iter().map(String::as_bytes).collect();
        let form = LineComparison { utf8: true, canonical: true };
        let searcher = LineSearcher::new(&text.lines, Vec::new(), form).with_hints(hints.clone());
        for hint in hints {
            let starts = |line: &TextLine<'_>| line.text().trim_ascii_start().starts_with(hint);
            let all: Vec<usize> =
                (0..).zip(&text.lines).filter(|(_, line)| starts(line)).map(|(at, _)| at).collect();
            let expected = if all.len() > MAX_PREFIX_MATCHES { &[][..] } else { &all };
            prop_assert_eq!(searcher.starting_with(hint, 0, usize::MAX), expected);
        }
    }
}
