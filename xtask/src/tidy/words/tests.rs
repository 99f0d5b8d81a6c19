use super::{IDIOMS, PATH, Table, Use, check, crates, find_idiom};
use crate::tidy::tree::Tree;

const SOURCE: &str = r###"//! Nobody reads this. "quoted"
/* A block /* whoever nests it */ said
 * more, and
 */
fn f<'a>(text: &'a str) -> char {
    let url = "http://goes on"; // by itself
    let raw = r#"it was "told" // so"#;
    let name = "anew"; let split = "it goes \
        on"; let lines = "here\nbegan what";
    let quote = '"'; let slash = '/'; let other = "not \" a // stand";
    whoever.at_a_time(stands, 'x')
}
/// Plain line.
///
/// by itselfish, of their owner, what's, it goes  on, whoever_else, goes on-line
#[cfg(test)]
mod tests {
    // Somebody said so anew.
    const TEXT: &str = "in words";
}
"###;

fn tree(table: &str, sources: &[(&str, &str)]) -> Tree {
    let files: Vec<(&str, &str)> = [(PATH, table)].into_iter().chain(sources.iter().copied()).collect();
    Tree::of(&files).with_library("a", "crates/a").with_library("b", "crates/b")
}

fn shown(tree: &Tree) -> Vec<String> {
    check(tree).into_iter().map(|violation| violation.to_string()).collect()
}

/// Returns `count` comment lines, the first `uses` of them with an idiom.
fn lines(uses: usize, count: usize) -> String {
    (0..count).map(|line| if line < uses { "// said\n" } else { "// plain\n" }).collect()
}

#[test]
fn idioms_are_found_in_comments_and_strings_only() {
    let tree = tree("limit = 2.0\n", &[("crates/a/src/lib.rs", SOURCE)]);
    let table = Table::load(&tree).unwrap();
    let density = table.measure(&tree, crates(&tree).next().unwrap());
    let found: Vec<(usize, &str)> =
        density.uses.iter().map(|Use { line, idiom, .. }| (*line, idiom.as_str())).collect();
    let expected = [
        (1, "Nobody"),
        (2, "whoever"),
        (6, "goes on"),
        (6, "by itself"),
        (7, "told"),
        (8, "goes on"),
        (9, "began"),
        (10, "stand"),
        (15, "goes on"),
    ];
    assert_eq!(found, expected);
    // Without an idiom: line 3 of the block, and the first line of the documentation.
    assert_eq!(density.passages, expected.len() + 2);
}

#[test]
fn each_idiom_is_found_in_every_form() {
    let mut count = 0;
    for idiom in IDIOMS {
        let mut forms = vec![String::new()];
        for alternatives in idiom.split(' ') {
            forms = forms
                .iter()
                .flat_map(|form| alternatives.split('|').map(move |word| format!("{form} {word}")))
                .collect();
        }
        for form in forms {
            let phrase = form.trim();
            assert_eq!(find_idiom(&format!("x {phrase}, x")), Some(phrase));
            assert_eq!(find_idiom(&format!("x_{phrase}_x")), None, "{phrase}");
            count += 1;
        }
    }
    assert_eq!(count, 55);
}

#[test]
fn a_crate_stays_below_its_ceiling_and_others_below_the_limit() {
    let sources = [("crates/a/src/lib.rs", lines(5, 100)), ("crates/b/src/lib.rs", lines(3, 100))];
    let sources: Vec<(&str, &str)> = sources.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let exceeded = |name: &str, measured: &str, ceiling: &str| {
        format!(
            "{name}: {measured} % of the comment lines and strings contain idioms, at most {ceiling} % may: \
             `cargo xtask lines --idioms {name}` lists them"
        )
    };
    let limit_only = tree("limit = 2.0\n", &sources);
    assert_eq!(shown(&limit_only), [exceeded("a", "5.00", "2.0"), exceeded("b", "3.00", "2.0")]);
    let ceilings = tree("limit = 2.0\n[ceilings]\na = 4.9\nb = 3.0\n", &sources);
    assert_eq!(shown(&ceilings), [exceeded("a", "5.00", "4.9")]);
}

#[test]
fn a_ceiling_far_above_the_density_is_stale() {
    let sources = [("crates/a/src/lib.rs", lines(5, 100)), ("crates/b/src/lib.rs", lines(1, 100))];
    let sources: Vec<(&str, &str)> = sources.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let near = tree("limit = 2.0\n[ceilings]\na = 6.0\nb = 2.0\n", &sources);
    assert_eq!(shown(&near), [""; 0]);
    let far = tree("limit = 2.0\n[ceilings]\na = 6.1\nb = 2.1\nc = 3.0\n", &sources);
    assert_eq!(
        shown(&far),
        [
            format!("{PATH}: the ceiling 6.1 of `a` is stale, the density is 5.00 %: lower it to 5.3"),
            format!("{PATH}: the ceiling 2.1 of `b` is stale, the density is 1.00 %: remove it"),
            format!("{PATH}: has a ceiling for `c`, which is no crate"),
        ]
    );
}

#[test]
fn a_deliberate_use_is_allowed_in_its_file_only() {
    let text = "// as he said to us\n";
    let allow = |file: &str, phrase: &str, reason: &str| {
        format!("limit = 2.0\n[[allow]]\nfile = \"{file}\"\nphrase = \"{phrase}\"\nreason = \"{reason}\"\n")
    };
    let path = "crates/a/src/lib.rs";
    let sources = [(path, text)];
    assert_eq!(shown(&tree(&allow(path, "he said to", "a quotation"), &sources)), [""; 0]);
    let refused = [
        (allow("crates/a/src/b.rs", "he said to", "a quotation"), "is not in the file"),
        (allow(path, "she said to", "a quotation"), "is not in the file"),
        (allow(path, "as he", "a quotation"), "contains no idiom"),
        (allow(path, "he said to", " "), "has no reason"),
    ];
    for (table, message) in refused {
        let found = shown(&tree(&table, &sources));
        assert!(found.iter().any(|violation| violation.ends_with(message)), "{message}: {found:?}");
    }
    let twice = tree(&allow(path, "he said to", "a quotation"), &[(path, "// he said to us, they said\n")]);
    assert_eq!(shown(&twice).len(), 1, "another idiom of the line counts");
}

#[test]
fn a_table_is_required_and_has_no_unknown_keys() {
    assert_eq!(shown(&Tree::of(&[])), [format!("{PATH}: is missing")]);
    assert_eq!(shown(&tree("limit = 2.0\nceiling = 3.0\n", &[])).len(), 1);
}
