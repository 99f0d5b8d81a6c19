//! Controls in the files of anchors.

use super::*;

/// Plans controls, and returns the source with each control's name replaced by its kind.
fn planned(language: SourceLanguage, source: &str, test: &str) -> Option<ControlPlan> {
    ControlPlan::for_tests(language, source, &BTreeSet::from([test.to_owned()]))
}

#[test]
fn a_test_is_replaced_by_two_variants() {
    for (language, source, test, name, kept) in [
        (
            SourceLanguage::Python,
            "import a\n\n\n@mark.slow\ndef test_one():\n    x = 1\n    assert a.f(x) == 2\n\n\ndef test_one_more():\n    pass\n",
            "tests/test_one.py::test_one",
            "test_one",
            "def test_one_more():\n    pass\n",
        ),
        (
            SourceLanguage::Python,
            "class Sums(TestCase):\n    def test_one(self):\n        self.assertEqual(f(), 2)\n",
            "tests.Sums.test_one",
            "test_one",
            "class Sums(TestCase):\n    def ",
        ),
        (
            SourceLanguage::Rust,
            "use a::f;\n\n#[test]\nfn one() {\n    assert_eq!(f(), 2);\n}\n\nfn help() {}\n",
            "it::one",
            "one",
            "\n\nfn help() {}\n",
        ),
        (
            SourceLanguage::Go,
            "package q\n\nfunc TestOne(t *testing.T) {\n\tif f() != 2 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n",
            "TestOne",
            "TestOne",
            "package q\n\nfunc ",
        ),
        (
            SourceLanguage::JavaScript,
            "import { f } from './f.js';\n\ntest('one', () => expect(f()).toBe(2));\n",
            "src/f.test.js > one",
            "one",
            "import { f } from './f.js';\n\ntest('",
        ),
        (
            SourceLanguage::Java,
            "class T {\n  @Test\n  void one() { assertEquals(2, f()); }\n}\n",
            "T.one",
            "one",
            "class T {\n  @Test\n  void ",
        ),
    ] {
        let plan = planned(language, source, test).unwrap_or_else(|| panic!("{source}"));
        let kinds: BTreeSet<&str> = plan.controls.iter().map(|control| control.kind.describe()).collect();
        assert_eq!(kinds, BTreeSet::from(["a changed expected value", "negated assertions"]), "{plan:?}");
        assert_eq!(plan.controls.iter().filter(|control| control.test == name).count(), 1, "{plan:?}");
        assert!(plan.source.contains(kept), "{plan:?}");
        let tokens = tokenize(language, &plan.source);
        let names: Vec<&str> = find_test_functions(language, &plan.source, &tokens)
            .into_iter()
            .map(|function| &plan.source[function.name])
            .collect();
        let lines: Vec<&str> = plan.source.lines().collect();
        for control in &plan.controls {
            assert_eq!(names.iter().filter(|name| **name == control.test).count(), 1, "{plan:?}");
            assert!(control.line as usize <= lines.len(), "{plan:?}");
        }
    }
}

#[test]
fn a_test_without_a_known_form_has_no_controls() {
    for (language, source, test) in [
        (SourceLanguage::Python, "def test_one():\n    check(1)\n", "test_one"),
        (SourceLanguage::Python, "def test_one():\n    assert f() == 1\n", "test_other"),
        (SourceLanguage::Rust, "fn one() {\n    assert_eq!(f(), 2);\n}\n", "one"),
        (SourceLanguage::C, "int main(void) { assert(f() == 1); }", "main"),
    ] {
        assert_eq!(planned(language, source, test), None, "{source}");
    }
}

#[test]
fn one_variant_keeps_the_name() {
    let plan = planned(SourceLanguage::Python, "def test_one():\n    assert f()\n", "test_one").unwrap();
    assert_eq!(plan.source, "def test_one():\n    assert not (f())\n");
    let control = PlannedControl { kind: ControlKind::Negated, test: "test_one".to_owned(), line: 1 };
    assert_eq!(plan.controls, [control]);
}

#[test]
fn a_file_has_one_control_for_each_variant() {
    let source = "int f(int);\n\nint main(void) { return f(1) == 9 ? 0 : 1; }\n";
    let plans = ControlPlan::for_file(SourceLanguage::C, "tests/f.c", source);
    let shown: Vec<_> = plans.iter().map(|plan| (plan.controls[0].kind, plan.controls[0].line)).collect();
    assert_eq!(shown, [(ControlKind::ChangedValue, 3), (ControlKind::Negated, 3)]);
    assert!(plans[0].source.contains("f(1) == 8 ?") && plans[1].source.contains("!(f(1) == 9) ?"));
}

#[test]
fn names_of_runners_are_recognised() {
    for (reported, name, expected) in [
        ("tests/test_a.py::test_a", "test_a", true),
        ("tests/test_a.py::test_a[1-2]", "test_a", true),
        ("tests/test_a.py::test_a_more", "test_a", false),
        ("tests/test_a.py::my_test_a", "test_a", false),
        ("TestOne/sub", "TestOne", true),
        ("anything", "", false),
    ] {
        assert_eq!(is_test_named(reported, name), expected, "{reported}");
    }
}
