//! Quoting for POSIX shells.

/// Appends `bytes` as one quoted word on a single line: line feeds are taken from the variable
/// `pintle_n`.
///
/// The bytes must not contain a zero byte.
pub(super) fn quote(line: &mut Vec<u8>, bytes: &[u8]) {
    line.push(b'\'');
    for byte in bytes {
        match byte {
            b'\'' => line.extend_from_slice(br"'\''"),
            b'\n' => line.extend_from_slice(br#"'"$pintle_n"'"#),
            byte => line.push(*byte),
        }
    }
    line.push(b'\'');
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a real shell checks the result")]

    use std::{ffi::OsStr, os::unix::ffi::OsStrExt, process::Command};

    use proptest::prelude::*;

    use super::*;

    fn printed(words: &[Vec<u8>]) -> Vec<u8> {
        let mut line = b"pintle_n='\n'; printf '%s|'".to_vec();
        for word in words {
            line.push(b' ');
            quote(&mut line, word);
        }
        let shell = Command::new("/bin/sh").arg("-c").arg(OsStr::from_bytes(&line)).output().unwrap();
        assert!(shell.status.success() && shell.stderr.is_empty(), "{shell:?}");
        shell.stdout
    }

    fn joined(words: &[Vec<u8>]) -> Vec<u8> {
        words.iter().flat_map(|word| word.iter().copied().chain([b'|'])).collect()
    }

    #[test]
    fn hostile_words_are_preserved() {
        let words = [
            "",
            " ",
            "a b",
            "-n",
            "--",
            "$(id)",
            "`id`",
            "$HOME",
            "*",
            "?[a]",
            "it's",
            "''",
            "\"",
            "\\",
            "\\'",
            "a\nb",
            "\n\n",
            "!x",
            "~",
            "#",
            ";",
            "&",
            "|",
            "\t",
            "\u{1e}",
            "{a,b}",
            "$pintle_n",
        ];
        let mut words = words.map(|word| word.as_bytes().to_vec()).to_vec();
        words.push(b"\xff\xfe\x80".to_vec());
        words.push((1..=255).collect());
        assert_eq!(printed(&words), joined(&words));
    }

    #[test]
    fn a_word_is_on_one_line() {
        let mut line = Vec::new();
        quote(&mut line, b"a\n'b'\n");
        assert!(!line.contains(&b'\n'));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn any_words_are_preserved(words in prop::collection::vec(prop::collection::vec(1_u8.., 0..20), 1..20)) {
            prop_assert_eq!(printed(&words), joined(&words));
        }
    }
}
