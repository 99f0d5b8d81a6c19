//! Inline tests of Rust: items that only test builds have, and doctests.

use super::rust_tokens::{Token, tokenize_rust};
use super::{InlineTest, InlineTests};

/// Macros that a test relies on.
const ASSERTIONS: [&str; 10] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "assert_matches",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "matches",
    "panic",
    "unreachable",
];

/// Crates whose assertions have the same meaning.
const ASSERTION_CRATES: [&str; 4] = ["std", "core", "pretty_assertions", "similar_asserts"];

/// Keywords of items that end with a semicolon, also after braces.
const STATEMENTS: [&str; 5] = ["use", "const", "static", "type", "extern"];

/// Number of tokens in the name of an item that is no test.
const NAMED_TOKENS: usize = 6;

/// Maximum number of tokens of an import that are searched for assertions.
const MAX_IMPORT: usize = 1_000;

/// Maximum depth of modules and imports. Items below it are compared as one part.
const MAX_DEPTH: usize = 32;

/// Returns the inline tests of a file.
pub(super) fn inline_tests(text: &str) -> InlineTests {
    let tokens = tokenize_rust(text);
    let tests = doctests(&tokens);
    let code: Vec<Token> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Documentation(_))).collect();
    let mut found = InlineTests { tests, shadows: shadows(&code), definitions: Vec::new() };
    scan_items(&code, ModuleScope::default(), &mut found);
    found
}

/// An item with its attributes.
struct Item<'a> {
    /// Tokens of the attributes, without `#[` and `]`.
    attributes: Vec<&'a [Token]>,
    tokens: &'a [Token],
}

/// Modules around items.
#[derive(Clone, Default)]
struct ModuleScope {
    /// Their conditions.
    context: String,
    /// Whether only test builds have them.
    is_test: bool,
    depth: usize,
}

/// Records the items that only test builds have.
fn scan_items(tokens: &[Token], mut scope: ModuleScope, found: &mut InlineTests) {
    let mut rest = tokens;
    while !rest.is_empty() {
        let mut attributes = Vec::new();
        while let Some((attribute, is_inner, after)) = split_attribute(rest) {
            if !is_inner {
                attributes.push(attribute);
            } else if is_condition(attribute) {
                scope.context.push_str(&render(attribute));
            }
            rest = after;
        }
        let (item, after) = rest.split_at(item_length(rest));
        rest = after;
        if !item.is_empty() {
            record_item(&Item { attributes, tokens: item }, &scope, found);
        }
    }
}

fn record_item(item: &Item<'_>, scope: &ModuleScope, found: &mut InlineTests) {
    let is_gated = item.attributes.iter().any(|attribute| is_test_build(attribute));
    let is_function = item.attributes.iter().any(|attribute| is_test_attribute(attribute));
    let attributes = || {
        let others = item.attributes.iter().filter(|attribute| render(attribute) != "cfg ( test )");
        others.map(|attribute| format!("#[{}] ", render(attribute))).collect::<String>()
    };
    let is_test = scope.is_test || is_gated;
    let context = &scope.context;
    if keyword(item.tokens) == Some("mod")
        && scope.depth < MAX_DEPTH
        && let Some(body) = braces(item.tokens)
    {
        let mut inner = ModuleScope { is_test, depth: scope.depth + 1, ..scope.clone() };
        if item.attributes.iter().any(|attribute| is_condition(attribute)) {
            inner.context.push_str(&attributes());
        }
        scan_items(body, inner, found);
    } else if keyword(item.tokens) == Some("use") && is_test {
        // Imports may be merged and split.
        for path in imported_paths(item.tokens) {
            let tokens = format!("{context}{}use {path}", attributes());
            found.definitions.extend(imported_name(&path).map(str::to_owned));
            found.tests.push(InlineTest { name: format!("use {}", path.replace(" : : ", "::")), tokens });
        }
    } else if is_test || is_function {
        let name = if is_function {
            format!("test {}", name_after(item.tokens, "fn").unwrap_or_default())
        } else {
            describe(item.tokens.get(..NAMED_TOKENS).unwrap_or(item.tokens))
        };
        if !is_function {
            found.definitions.extend(defined_name(item.tokens).map(str::to_owned));
        }
        let tokens = format!("{context}{}{}", attributes(), render(item.tokens));
        found.tests.push(InlineTest { name, tokens });
    }
}

/// Splits an attribute off. Returns its tokens, whether it is about the module around it, and the rest.
fn split_attribute(tokens: &[Token]) -> Option<(&[Token], bool, &[Token])> {
    let rest = tokens.split_first().filter(|(first, _)| first.is_sign('#'))?.1;
    let (is_inner, rest) = match rest.split_first() {
        Some((first, rest)) if first.is_sign('!') => (true, rest),
        _ => (false, rest),
    };
    if !rest.first()?.is_sign('[') {
        return None;
    }
    let length = group_length(rest);
    let (attribute, after) = rest.split_at(length);
    let inner = attribute.get(1..length.saturating_sub(1)).unwrap_or_default();
    Some((inner, is_inner, after))
}

/// Returns the number of tokens of the group whose bracket starts the tokens.
fn group_length(tokens: &[Token]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        if is_opening(token) {
            depth += 1;
        } else if is_closing(token) {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return index + 1;
            }
        }
    }
    tokens.len()
}

fn is_opening(token: &Token) -> bool {
    ['(', '[', '{'].into_iter().any(|sign| token.is_sign(sign))
}

fn is_closing(token: &Token) -> bool {
    [')', ']', '}'].into_iter().any(|sign| token.is_sign(sign))
}

/// Returns the number of tokens of the item that starts here.
fn item_length(tokens: &[Token]) -> usize {
    let ends_with_semicolon =
        keyword(tokens).is_some_and(|keyword| STATEMENTS.contains(&keyword)) && !is_block_item(tokens);
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        if is_opening(token) {
            index += group_length(tokens.get(index..).unwrap_or_default());
            if token.is_sign('{') && !ends_with_semicolon {
                return index;
            }
        } else {
            index += 1;
            if token.is_sign(';') || is_closing(token) {
                return index;
            }
        }
    }
    tokens.len()
}

/// Returns the keyword of an item, after its visibility.
fn keyword(tokens: &[Token]) -> Option<&str> {
    let mut rest = tokens;
    loop {
        let (first, after) = rest.split_first()?;
        if first.is_word("pub") {
            let length = if after.first()?.is_sign('(') { group_length(after) } else { 0 };
            rest = after.get(length..)?;
        } else if ["unsafe", "async", "default"].into_iter().any(|word| first.is_word(word)) {
            rest = after;
        } else {
            return first.word();
        }
    }
}

/// Returns whether an item that starts with a keyword of a statement has a body: `const fn` and `extern "C"`.
fn is_block_item(tokens: &[Token]) -> bool {
    let head = tokens.split(|token| token.is_sign('{') || token.is_sign('=') || token.is_sign(';')).next();
    let words: Vec<&str> = head.into_iter().flatten().filter_map(Token::word).collect();
    let is_extern = words.contains(&"extern") && !words.contains(&"crate");
    words.contains(&"fn") && (words.contains(&"const") || is_extern)
        || is_extern && words.iter().any(|word| word.starts_with('"'))
}

/// Returns the paths that an import brings into scope.
fn imported_paths(tokens: &[Token]) -> Vec<String> {
    let start = tokens.iter().position(|token| token.is_word("use")).map_or(0, |index| index + 1);
    let tree = tokens.get(start..).unwrap_or_default();
    let tree = tree.split_last().filter(|(last, _)| last.is_sign(';')).map_or(tree, |(_, tree)| tree);
    let mut paths = Vec::new();
    add_paths("", tree, 0, &mut paths);
    paths
}

/// Adds the paths of a tree of imports, which may have several branches.
fn add_paths(prefix: &str, tree: &[Token], depth: usize, paths: &mut Vec<String>) {
    let mut rest = tree;
    while !rest.is_empty() {
        let mut end = 0;
        while let Some(token) = rest.get(end).filter(|token| !token.is_sign(',')) {
            end += if is_opening(token) { group_length(rest.get(end..).unwrap_or_default()) } else { 1 };
        }
        let (branch, after) = rest.split_at(end.min(rest.len()));
        rest = after.get(1..).unwrap_or_default();
        match branch.iter().position(|token| token.is_sign('{')) {
            Some(group) if depth < MAX_DEPTH => {
                let (path, group) = branch.split_at(group);
                let inner = group.get(1..group.len().saturating_sub(1)).unwrap_or_default();
                add_paths(&format!("{prefix}{} ", render(path)), inner, depth + 1, paths);
            }
            _ if !branch.is_empty() => paths.push(format!("{prefix}{}", render(branch))),
            _ => {}
        }
    }
}

/// Returns the name that an import defines, unless the module above has the item.
fn imported_name(path: &str) -> Option<&str> {
    let mut words = path.rsplit(' ');
    let name = words.next().filter(|name| *name != "*")?;
    let is_from_above = path.strip_prefix("super : : ") == Some(name);
    if is_from_above { None } else { Some(name) }
}

/// Returns the name that an item defines.
fn defined_name(tokens: &[Token]) -> Option<&str> {
    let keywords = ["fn", "const", "static", "type", "struct", "enum", "trait", "union", "mod"];
    match keyword(tokens)? {
        "macro_rules" => tokens.get(2)?.word(),
        "const" if is_block_item(tokens) => name_after(tokens, "fn"),
        keyword if keywords.contains(&keyword) => name_after(tokens, keyword),
        _ => None,
    }
}

/// Returns the tokens between the first braces of an item.
fn braces(tokens: &[Token]) -> Option<&[Token]> {
    let start = tokens.iter().position(|token| token.is_sign('{'))?;
    let group = tokens.get(start..)?;
    group.get(1..group_length(group).saturating_sub(1))
}

fn name_after<'a>(tokens: &'a [Token], keyword: &str) -> Option<&'a str> {
    let index = tokens.iter().position(|token| token.is_word(keyword))?;
    tokens.get(index + 1)?.word()
}

fn is_condition(attribute: &[Token]) -> bool {
    attribute.first().is_some_and(|first| first.is_word("cfg") || first.is_word("cfg_attr"))
}

/// Returns whether an attribute limits an item to test builds, also with further conditions: `cfg(all(test, not(loom)))`.
fn is_test_build(attribute: &[Token]) -> bool {
    let mut rest = attribute;
    if !rest.first().is_some_and(|first| first.is_word("cfg")) {
        return false;
    }
    while let Some((first, after)) = rest.split_first() {
        if first.is_word("test") {
            return true;
        }
        let skipped = if first.is_word("not") { group_length(after) } else { 0 };
        rest = after.get(skipped..).unwrap_or_default();
    }
    false
}

/// Returns whether an attribute makes a function a test, such as `test`, `tokio::test(…)` and `rstest`.
fn is_test_attribute(attribute: &[Token]) -> bool {
    let path = attribute.iter().take_while(|token| !is_opening(token)).filter_map(Token::word);
    path.last().is_some_and(|last| last.ends_with("test") || last == "test_case" || last == "quickcheck")
}

fn render(tokens: &[Token]) -> String {
    let shown = tokens.iter().map(|token| match token {
        Token::Word(text) | Token::Documentation(text) => text.clone(),
        Token::Sign(sign) => sign.to_string(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Returns tokens for a message.
fn describe(tokens: &[Token]) -> String {
    render(tokens).replace(" : : ", "::").trim_end_matches(" ;").to_owned()
}

/// Returns the assertions that a file defines or imports from elsewhere.
fn shadows(tokens: &[Token]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let rest = tokens.get(index + 1..).unwrap_or_default();
        if token.is_word("macro_rules") {
            let name = rest.get(1).and_then(Token::word);
            found.extend(name.filter(|name| ASSERTIONS.contains(name)).map(str::to_owned));
        } else if token.is_word("use") {
            let path: Vec<&Token> =
                rest.iter().take(MAX_IMPORT).take_while(|token| !token.is_sign(';')).collect();
            found.extend(imported_assertions(&path));
        }
    }
    found
}

/// Returns the assertions among the names that an import brings into scope.
fn imported_assertions(path: &[&Token]) -> Vec<String> {
    let root = path.iter().find_map(|token| token.word());
    let is_renamed = path.iter().any(|token| token.is_word("as"));
    if !is_renamed && root.is_some_and(|root| ASSERTION_CRATES.contains(&root)) {
        return Vec::new();
    }
    let is_end = |index: usize| path.get(index + 1).is_none_or(|next| next.is_sign(',') || next.is_sign('}'));
    let named = path.iter().enumerate().filter(|(index, _)| is_end(*index));
    let names = named.filter_map(|(index, token)| {
        let name = token.word()?;
        let is_new_name = index.checked_sub(1).and_then(|before| path.get(before))?.is_word("as");
        (ASSERTIONS.contains(&name) || is_new_name && name == "test").then(|| name.to_owned())
    });
    names.collect()
}

/// Returns the code blocks of documentation.
fn doctests(tokens: &[Token]) -> Vec<InlineTest> {
    let mut tests = Vec::new();
    let mut open: Option<String> = None;
    for token in tokens {
        let Token::Documentation(text) = token else {
            // Code ends the documentation of an item.
            open = None;
            continue;
        };
        let text = text.trim();
        match open.take() {
            None => open = text.strip_prefix("```").map(str::to_owned),
            Some(code) if text.starts_with("```") => {
                let (info, body) = code.split_once('\n').unwrap_or((code.as_str(), ""));
                if is_rust(info) {
                    let first = tokenize_rust(body.lines().next().unwrap_or_default());
                    let name = format!("doctest {}", describe(&first));
                    tests.push(InlineTest { name, tokens: format!("doctest {code}") });
                }
            }
            Some(mut code) => {
                code.push('\n');
                code.push_str(&render(&tokenize_rust(text)));
                open = Some(code);
            }
        }
    }
    tests
}

/// Returns whether the words after the fence of a code block leave it to rustdoc.
fn is_rust(info: &str) -> bool {
    let mut words = info.split([',', ' ']).filter(|word| !word.is_empty());
    words.all(|word| {
        ["rust", "ignore", "no_run", "should_panic", "compile_fail"].contains(&word)
            || word.starts_with("edition")
    })
}
