//! Edits of assertions in each language.

use super::*;

fn edited(language: SourceLanguage, source: &str) -> [String; 2] {
    let edits = edits_of_file(language, source);
    [apply_edits(source, &edits.changed), apply_edits(source, &edits.negated)]
}

#[test]
fn known_assertions_are_changed_and_negated() {
    for (language, source, changed, negated) in [
        (
            SourceLanguage::Python,
            "assert add(3, -1) == 2\n",
            "assert add(3, -1) == 1\n",
            "assert not (add(3, -1) == 2)\n",
        ),
        (
            SourceLanguage::Python,
            "assert f(1) == [\n  'a',\n], 'no'\nx = 1",
            "assert f(1) == [\n  'ax',\n], 'no'\nx = 1",
            "assert not (f(1) == [\n  'a',\n]), 'no'\nx = 1",
        ),
        (
            SourceLanguage::Python,
            "self.assertEqual(f(), -4)",
            "self.assertEqual(f(), -3)",
            "self.assertNotEqual(f(), -4)",
        ),
        (
            SourceLanguage::Python,
            "assert 'b' in tags('a')",
            "assert 'bx' in tags('a')",
            "assert not ('b' in tags('a'))",
        ),
        (
            SourceLanguage::Python,
            "self.assertIn('b', tags('a'))",
            "self.assertIn('bx', tags('a'))",
            "self.assertNotIn('b', tags('a'))",
        ),
        (
            SourceLanguage::Rust,
            "assert_eq!(add(3, -1), 2u8);",
            "assert_eq!(add(3, -1), 1u8);",
            "assert_ne!(add(3, -1), 2u8);",
        ),
        (
            SourceLanguage::Rust,
            "assert!(f() == \"a\", \"{x}\");",
            "assert!(f() == \"ax\", \"{x}\");",
            "assert!(!(f() == \"a\"), \"{x}\");",
        ),
        (
            SourceLanguage::JavaScript,
            "expect(slug('A b')).toBe('a-b');",
            "expect(slug('A b')).toBe('a-bx');",
            "expect(slug('A b')).not.toBe('a-b');",
        ),
        (
            SourceLanguage::JavaScript,
            "assert.strictEqual(add(3, -1), 2)",
            "assert.strictEqual(add(3, -1), 1)",
            "assert.notStrictEqual(add(3, -1), 2)",
        ),
        (
            SourceLanguage::Go,
            "if Add(3, -1) != 2 {\n\tt.Fatal(\"no\")\n}",
            "if Add(3, -1) != 1 {\n\tt.Fatal(\"no\")\n}",
            "if !(Add(3, -1) != 2) {\n\tt.Fatal(\"no\")\n}",
        ),
        (
            SourceLanguage::Go,
            "assert.Equal(t, 2, f())",
            "assert.Equal(t, 1, f())",
            "assert.NotEqual(t, 2, f())",
        ),
        (SourceLanguage::Java, "assertEquals(2, f());", "assertEquals(1, f());", "assertNotEquals(2, f());"),
        (SourceLanguage::C, "assert(f(1) == 2);", "assert(f(1) == 1);", "assert(!(f(1) == 2));"),
        (
            SourceLanguage::C,
            "return f(12, 0, 9) == 9 ? 0 : 1;",
            "return f(12, 0, 9) == 8 ? 0 : 1;",
            "return !(f(12, 0, 9) == 9) ? 0 : 1;",
        ),
    ] {
        assert_eq!(edited(language, source), [changed, negated], "{source}");
    }
}

#[test]
fn a_literal_that_may_not_matter_stays() {
    for (language, source) in [
        (SourceLanguage::Python, "assert f() in (3, 4)"),
        (SourceLanguage::Python, "assert 'b' not in f()"),
        (SourceLanguage::Python, "assert 'b' in f() or g()"),
        (SourceLanguage::Python, "assert f() == 1 or g() == 2"),
        (SourceLanguage::Python, "assert f() == g(2)"),
        (SourceLanguage::Go, "if f() != 1 && g() {\n\tt.Error()\n}"),
        (SourceLanguage::JavaScript, "expect(f()).toBeGreaterThan(3)"),
    ] {
        let edits = edits_of_file(language, source);
        assert!(edits.changed.is_empty() && !edits.negated.is_empty(), "{source}: {edits:?}");
    }
}

#[test]
fn code_without_an_assertion_has_no_edits() {
    for (language, source) in [
        (SourceLanguage::Go, "if n != 2 {\n\treturn 3\n}"),
        (SourceLanguage::C, "while (i != 10) i++; return i == 3;"),
        (SourceLanguage::JavaScript, "if (result.ok) equal(1, 2); expect"),
        (SourceLanguage::Rust, "fn assert_eq(a: u8, b: u8) {}"),
        (SourceLanguage::Python, "assert"),
    ] {
        assert_eq!(edits_of_file(language, source), AssertionEdits::default(), "{source}");
    }
}
