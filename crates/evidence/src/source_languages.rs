//! Programming languages by the extensions of their files, and the lines that define symbols in them.

/// A language of source files.
#[derive(Debug)]
pub(crate) struct SourceLanguage {
    /// Name, for users.
    pub(crate) name: &'static str,
    extensions: &'static [&'static str],
    /// Words that may precede a keyword.
    pub(crate) modifiers: &'static [&'static str],
    /// Words that the name of a symbol follows.
    pub(crate) keywords: &'static [&'static str],
    /// Form of definitions of functions without a keyword.
    pub(crate) functions: FunctionForm,
}

/// Form of definitions of functions without a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionForm {
    /// There are none.
    Keyword,
    /// `int add(int a)`, at the start of a line.
    TypeFirst,
    /// `public int add(int a)`, with a modifier.
    WithModifier,
    /// `add() {`
    Parentheses,
}

const fn language(
    name: &'static str,
    extensions: &'static [&'static str],
    modifiers: &'static [&'static str],
    keywords: &'static [&'static str],
) -> SourceLanguage {
    SourceLanguage { name, extensions, modifiers, keywords, functions: FunctionForm::Keyword }
}

impl SourceLanguage {
    const fn with_functions(self, functions: FunctionForm) -> Self {
        Self { functions, ..self }
    }
}

/// All languages.
static LANGUAGES: [SourceLanguage; 32] = [
    language("C", &["c", "h"], &["static", "typedef"], &["struct", "enum", "union"])
        .with_functions(FunctionForm::TypeFirst),
    language(
        "C#",
        &["cs"],
        &[
            "public",
            "private",
            "protected",
            "internal",
            "static",
            "abstract",
            "sealed",
            "partial",
            "async",
            "override",
            "virtual",
            "readonly",
        ],
        &["class", "struct", "interface", "enum", "record", "namespace"],
    )
    .with_functions(FunctionForm::WithModifier),
    language(
        "C++",
        &["cc", "cpp", "cxx", "hpp"],
        &["static"],
        &["class", "struct", "enum", "union", "namespace"],
    )
    .with_functions(FunctionForm::TypeFirst),
    language("CSS", &["css", "scss"], &[], &[]),
    language(
        "Clojure",
        &["clj"],
        &[],
        &["(defn", "(defn-", "(def", "(defmacro", "(defprotocol", "(defrecord"],
    ),
    language(
        "Dart",
        &["dart"],
        &["abstract", "final", "sealed"],
        &["class", "mixin", "extension", "enum", "typedef"],
    ),
    language("Elixir", &["ex", "exs"], &[], &["defmodule", "def", "defp", "defmacro", "defprotocol"]),
    language("Erlang", &["erl"], &[], &[]),
    language("F#", &["fs"], &["rec", "inline", "private"], &["module", "namespace", "type", "let", "member"]),
    language("Go", &["go"], &[], &["func", "type"]),
    language("HTML", &["html"], &[], &[]),
    language("Haskell", &["hs"], &[], &["module", "data", "newtype", "type", "class"]),
    language(
        "Java",
        &["java"],
        &[
            "public",
            "private",
            "protected",
            "static",
            "final",
            "abstract",
            "sealed",
            "synchronized",
            "default",
        ],
        &["class", "interface", "enum", "record", "@interface"],
    )
    .with_functions(FunctionForm::WithModifier),
    language(
        "JavaScript",
        &["js", "jsx", "cjs", "mjs"],
        &["export", "default", "async"],
        &["function", "function*", "class"],
    ),
    language(
        "Kotlin",
        &["kt", "kts"],
        &[
            "public",
            "private",
            "protected",
            "internal",
            "open",
            "abstract",
            "data",
            "sealed",
            "override",
            "suspend",
            "inline",
            "enum",
        ],
        &["class", "interface", "object", "fun", "typealias"],
    ),
    language("Lua", &["lua"], &["local"], &["function"]),
    language("OCaml", &["ml"], &["rec"], &["let", "type", "module", "class"]),
    language("Objective-C", &["m"], &[], &["@interface", "@implementation", "@protocol"]),
    language(
        "PHP",
        &["php"],
        &["public", "private", "protected", "static", "abstract", "final", "readonly"],
        &["function", "class", "interface", "trait", "enum", "namespace"],
    ),
    language("Perl", &["pl", "pm"], &[], &["sub", "package"]),
    language("Python", &["py"], &["async"], &["def", "class"]),
    language("R", &["r"], &[], &[]),
    language("Ruby", &["rb"], &["private", "protected"], &["def", "class", "module"]),
    language(
        "Rust",
        &["rs"],
        &["pub", "async", "unsafe", "const", "extern", "default"],
        &["fn", "struct", "enum", "union", "trait", "type", "mod", "macro_rules!"],
    ),
    language(
        "SQL",
        &["sql"],
        &["CREATE", "create", "OR", "or", "REPLACE", "replace"],
        &["TABLE", "table", "VIEW", "view"],
    ),
    language(
        "Scala",
        &["scala"],
        &["case", "abstract", "sealed", "override", "private", "protected", "implicit", "final", "inline"],
        &["class", "object", "trait", "def", "enum", "type"],
    ),
    language("Shell", &["sh", "bash"], &[], &["function"]).with_functions(FunctionForm::Parentheses),
    language("Svelte", &["svelte"], &["export", "async"], &["function"]),
    language(
        "Swift",
        &["swift"],
        &["public", "private", "internal", "open", "final", "static", "override", "fileprivate"],
        &["class", "struct", "enum", "protocol", "extension", "func", "actor"],
    ),
    language(
        "TypeScript",
        &["ts", "tsx", "cts", "mts"],
        &["export", "default", "async", "declare", "abstract"],
        &["function", "function*", "class", "interface", "type", "enum", "namespace"],
    ),
    language("Vue", &["vue"], &["export", "async"], &["function"]),
    language("Zig", &["zig"], &["pub", "export", "inline"], &["fn", "const"]),
];

/// Returns the language of a file by its name.
pub(crate) fn language_of(path: &str) -> Option<&'static SourceLanguage> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (_, extension) = name.rsplit_once('.')?;
    LANGUAGES.iter().find(|language| language.extensions.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_the_extension() {
        for (path, expected) in [
            ("src/main.rs", Some("Rust")),
            ("a.b/c.tsx", Some("TypeScript")),
            ("tool.sh", Some("Shell")),
            ("Makefile", None),
            ("src.rs/readme", None),
            ("notes.md", None),
        ] {
            assert_eq!(language_of(path).map(|language| language.name), expected, "{path}");
        }
        let mut all: Vec<&str> = LANGUAGES.iter().flat_map(|language| language.extensions).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "each extension has one language");
    }
}
