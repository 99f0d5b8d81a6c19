//! Paths to other modules in Rust text: `use crate::…`, `super::…` and inline `crate::…`, without test code.

use std::collections::BTreeMap;

use super::rust_code;

/// Paths and modules found in one file.
#[derive(Debug, Default)]
pub(super) struct ModulePaths {
    pub(super) references: Vec<Reference>,
    /// Modules that exist in tests only, as paths from the crate root.
    pub(super) test_modules: Vec<Vec<String>>,
    /// Names that the root of the crate imports, with the path that each refers to.
    pub(super) root_imports: BTreeMap<String, Vec<String>>,
}

/// One use of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// The module that contains the path, from the crate root.
    pub(super) from: Vec<String>,
    /// The path, from the crate root.
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// Finds the paths in `text`, the source of the module `module`.
pub(super) fn find(text: &str, module: &[String]) -> ModulePaths {
    let code = rust_code::without_comments_and_literals(text);
    let tokens = tokens(&code);
    let mut parser =
        Parser { tokens, at: 0, module: module.to_vec(), scopes: Vec::new(), found: ModulePaths::default() };
    while parser.step() {}
    parser.found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Splits code into names, `::` and single characters of punctuation.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let is_name = |character: char| character == '_' || character.is_alphanumeric();
    let mut tokens = Vec::new();
    for (line, number) in code.lines().zip(1..) {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_name(first) {
                rest.find(|character| !is_name(character)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (text, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            tokens.push(Token { text, line: number });
            rest = after.trim_start();
        }
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    /// The module at the current position, from the crate root.
    module: Vec<String>,
    /// One entry for each open brace: whether it is the body of a module.
    scopes: Vec<bool>,
    found: ModulePaths,
}

impl<'a> Parser<'a> {
    /// Reads one construct. Returns `false` at the end.
    fn step(&mut self) -> bool {
        let Some(token) = self.tokens.get(self.at).copied() else { return false };
        match token.text {
            "#" if self.is_test_attribute() => self.skip_item(),
            "mod" if self.text(2) == "{" => {
                let name = self.text(1).to_owned();
                self.module.push(name);
                self.scopes.push(true);
                self.at += 3;
            }
            "use" if self.module.is_empty() => self.root_import(),
            "crate" | "super" | "self" if self.text(1) == "::" && !self.is_continuation() => self.path(),
            "{" => self.open(),
            "}" => self.close(),
            _ => self.at += 1,
        }
        true
    }

    fn open(&mut self) {
        self.scopes.push(false);
        self.at += 1;
    }

    fn close(&mut self) {
        if self.scopes.pop() == Some(true) {
            self.module.pop();
        }
        self.at += 1;
    }

    /// Returns the text of the token `ahead` of the current one, empty past the end.
    fn text(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    /// Returns whether the current name continues a path, or is the scope of a visibility: `pub(in crate::a)`.
    fn is_continuation(&self) -> bool {
        let before =
            |back: usize| self.at.checked_sub(back).and_then(|at| self.tokens.get(at)).map_or("", |t| t.text);
        before(1) == "::" || (before(1) == "in" && before(2) == "(")
    }

    /// Returns whether an attribute `#[cfg(test)]` or `#[cfg(all(test, …))]` starts here.
    fn is_test_attribute(&self) -> bool {
        let texts: Vec<&str> = (1..8).map(|ahead| self.text(ahead)).collect();
        matches!(texts.as_slice(), ["[", "cfg", "(", "test", ..] | ["[", "cfg", "(", "all", "(", "test", ..])
    }

    /// Skips the attribute here and the item that it applies to. Records the item if it is a module.
    fn skip_item(&mut self) {
        while self.text(0) == "#" {
            self.at += 1;
            self.skip_group();
        }
        let mut is_import = false;
        let is_item = [
            "pub",
            "use",
            "mod",
            "fn",
            "async",
            "const",
            "static",
            "type",
            "struct",
            "enum",
            "impl",
            "trait",
            "unsafe",
            "extern",
            "macro_rules",
        ]
        .contains(&self.text(0));
        loop {
            match self.text(0) {
                "" | "}" => return,
                ";" => break,
                "," if !is_item => break,
                "use" => is_import = true,
                "mod" => {
                    let mut module = self.module.clone();
                    module.push(self.text(1).to_owned());
                    self.found.test_modules.push(module);
                }
                "{" if !is_import => return self.skip_group(),
                "(" | "[" | "{" => {
                    self.skip_group();
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
    }

    /// Skips the group in brackets that starts here.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            match self.text(0) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Reads a path that starts with `crate`, `super` or `self`.
    fn path(&mut self) {
        let mut path = match self.text(0) {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            _ => self.module.iter().rev().skip(1).rev().cloned().collect(),
        };
        self.at += 2;
        while self.text(0) == "super" && self.text(1) == "::" {
            path.pop();
            self.at += 2;
        }
        let from = self.module.clone();
        for leaf in self.tree(&path) {
            self.found.references.push(Reference { from: from.clone(), path: leaf.path, line: leaf.line });
        }
    }

    /// Reads an import in the root of the crate, which may make items of modules available as `crate::Item`.
    fn root_import(&mut self) {
        self.at += 1;
        if matches!(self.text(0), "crate" | "self") && self.text(1) == "::" {
            self.at += 2;
        }
        for leaf in self.tree(&[]) {
            self.found.root_imports.insert(leaf.name, leaf.path);
        }
    }

    /// Reads the rest of a path below `prefix`, which may be a tree in braces.
    fn tree(&mut self, prefix: &[String]) -> Vec<Leaf> {
        let mut path = prefix.to_vec();
        loop {
            let Some(token) = self.tokens.get(self.at).copied() else { return Vec::new() };
            if token.text == "{" {
                return self.branches(&path);
            }
            if !token.text.starts_with(|first: char| first == '_' || first.is_alphanumeric()) {
                // A glob, or generic arguments of the last segment.
                let name = path.last().cloned().unwrap_or_default();
                self.at += usize::from(token.text == "*");
                return vec![Leaf { name, path, line: token.line }];
            }
            self.at += 1;
            if token.text != "self" {
                path.push(token.text.to_owned());
            }
            if self.text(0) == "::" {
                self.at += 1;
                continue;
            }
            let mut name = path.last().cloned().unwrap_or_default();
            if self.text(0) == "as" {
                name = self.text(1).to_owned();
                self.at += 2;
            }
            return vec![Leaf { name, path, line: token.line }];
        }
    }

    /// Reads the branches of a tree in braces.
    fn branches(&mut self, prefix: &[String]) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        self.at += 1;
        while !matches!(self.text(0), "" | "}") {
            if self.text(0) == "," {
                self.at += 1;
            } else {
                let before = self.at;
                leaves.extend(self.tree(prefix));
                // Anything that is not a path: skip it, so that malformed text ends as well.
                self.at = self.at.max(before + 1);
            }
        }
        self.at += 1;
        leaves
    }
}

/// The end of a path, and the name under which an import makes it available.
struct Leaf {
    name: String,
    path: Vec<String>,
    line: usize,
}

#[cfg(test)]
mod tests {
    use super::find;

    /// The paths in `text`, the source of `module`, each with its line and the module that contains it.
    fn paths(text: &str, module: &str) -> Vec<String> {
        let module: Vec<String> =
            module.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let references = find(text, &module).references.into_iter();
        references
            .map(|found| format!("{}: {} -> {}", found.line, found.from.join("::"), found.path.join("::")))
            .collect()
    }

    #[test]
    fn imports_and_inline_paths_are_found() {
        let cases: [(&str, &[&str]); 10] = [
            ("use crate::b::C;", &["1: a::x -> b::C"]),
            (
                "use crate::{\n    b::{C, D as E},\n    f::*,\n};",
                &["2: a::x -> b::C", "2: a::x -> b::D", "3: a::x -> f"],
            ),
            ("use super::y::{self, Z};", &["1: a::x -> a::y", "1: a::x -> a::y::Z"]),
            ("use super::super::b::C;", &["1: a::x -> b::C"]),
            ("fn f() { crate::b::g::<crate::c::T>() }", &["1: a::x -> b::g", "1: a::x -> c::T"]),
            ("macro_rules! m { () => { $crate::b::g() } }", &["1: a::x -> b::g"]),
            (
                "mod inner { use super::super::y::Z; }\nuse super::q;",
                &["1: a::x::inner -> a::y::Z", "2: a::x -> a::q"],
            ),
            ("pub(in crate::a) fn f() {}\npub(crate) fn g() {}", &[]),
            ("// crate::b::C\nfn f() { \"crate::b::C\"; std::b::c(); }", &[]),
            ("use crate::{b", &["1: a::x -> b"]),
        ];
        for (text, expected) in cases {
            assert_eq!(paths(text, "a::x"), expected, "{text}");
        }
    }

    #[test]
    fn test_code_is_left_out() {
        let text = "
            #[cfg(test)]
            use crate::{b::C, d::E};
            #[cfg(all(test, unix))]
            mod tests { use crate::b::C; }
            #[cfg(test)]
            #[expect(dead_code)]
            pub(crate) mod fakes;
            struct S {
                #[cfg(test)]
                field: crate::b::C,
                other: crate::e::F,
            }
            #[cfg(test)]
            impl S { fn f() { crate::b::g() } }
            #[cfg(not(test))]
            fn f() { crate::h::i() }
            #[cfg(any(test, feature = \"testing\"))]
            fn g() { crate::j::k() }
        ";
        assert_eq!(paths(text, "a"), ["12: a -> e::F", "17: a -> h::i", "19: a -> j::k"]);
        let modules: Vec<String> =
            find(text, &["a".to_owned()]).test_modules.iter().map(|module| module.join("::")).collect();
        assert_eq!(modules, ["a::tests", "a::fakes"]);
    }

    #[test]
    fn the_root_shows_what_its_imports_stand_for() {
        let found = find("mod a;\npub use a::{B, c::D as E};\nuse crate::f::G;\nuse std::fmt;\n", &[]);
        let imports: Vec<String> =
            found.root_imports.iter().map(|(name, path)| format!("{name} = {}", path.join("::"))).collect();
        assert_eq!(imports, ["B = a::B", "E = a::c::D", "G = f::G", "fmt = std::fmt"]);
    }
}
