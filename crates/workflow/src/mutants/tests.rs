//! Mutants of changed lines.

use super::*;

fn mutated(language: SourceLanguage, source: &str, lines: &[u64]) -> Vec<String> {
    let lines = lines.iter().copied().collect();
    let mutants = find_mutants(language, source, &lines, 9);
    mutants.iter().map(|mutant| format!("{} {} -> {}", mutant.line, mutant.from, mutant.to)).collect()
}

#[test]
fn each_line_has_its_most_noticeable_mutant() {
    for (language, source, lines, expected) in [
        (
            SourceLanguage::Python,
            "def f(a, b):\n    c = 3\n    return a + b * 2\n",
            &[2, 3][..],
            &["3 + -> -", "2 3 -> 2"][..],
        ),
        (
            SourceLanguage::Rust,
            "fn f<'a>(a: &'a [u8]) -> Vec<u8> {\n    a.len() < 3 && *a == b\"x\"\n}\n",
            &[1, 2],
            &["2 < -> >="],
        ),
        (SourceLanguage::Go, "x := -y\nok := a == nil\n", &[1, 2], &["2 == -> !="]),
        (SourceLanguage::JavaScript, "const f = (a) => a === 'x';\n", &[1], &["1 === -> !=="]),
        (SourceLanguage::Python, "def f():\n    'Text.'\n    return g()\n", &[1, 2, 3], &[]),
        (SourceLanguage::C, "return a > b;\nreturn 1;\n", &[2], &["2 1 -> 0"]),
    ] {
        assert_eq!(mutated(language, source, lines), expected, "{source}");
    }
}

#[test]
fn the_limit_keeps_the_most_noticeable_mutants() {
    let lines = BTreeSet::from([1, 2, 3]);
    let found = find_mutants(SourceLanguage::Python, "a = 3\nb = a + 1\nc = a == b\n", &lines, 2);
    assert_eq!(found.iter().map(|mutant| mutant.line).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_probe_fails_before_the_statement() {
    for (language, source, line, expected) in [
        (
            SourceLanguage::Python,
            "def f(a):\n    return a + 1\n",
            2,
            Some("def f(a):\n    raise RuntimeError\n    return a + 1\n"),
        ),
        (SourceLanguage::Python, "x = [\n  1,\n]\n", 2, None),
        (
            SourceLanguage::Rust,
            "fn f() -> u8 {\n    a + 1\n}\n",
            2,
            Some("fn f() -> u8 {\n    panic!(); a + 1\n}\n"),
        ),
        (SourceLanguage::Rust, "fn f() -> u8 {\n    a\n        + 1\n}\n", 3, None),
    ] {
        let mutants = find_mutants(language, source, &BTreeSet::from([line]), 1);
        assert_eq!(mutants[0].probe.as_deref(), expected, "{source}");
    }
}
