//! Unconditional controls: tests that must fail, in the supported languages.

use pintle_agent::SessionId;

/// Returns a function that writes a failing test for the end of a file, or `None` for unsupported languages.
#[must_use]
pub fn control_template(path: &str) -> Option<fn(&str) -> String> {
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension {
        "py" => |name| format!("\n\ndef {name}():\n    assert False\n"),
        "rs" => |name| format!("\n#[test]\nfn {name}() {{\n    panic!();\n}}\n"),
        "js" | "mjs" | "cjs" | "ts" | "jsx" | "tsx" => {
            |name| format!("\ntest('{name}', () => {{ throw new Error('control'); }});\n")
        }
        _ => return None,
    })
}

/// Returns an unpredictable name.
#[must_use]
pub fn generate_control_name() -> String {
    let id = SessionId::generate();
    let unique: String = id.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    format!("test_control_{}", unique.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_can_be_written() {
        let (one, other) = (generate_control_name(), generate_control_name());
        assert_ne!(one, other);
        assert!(one.chars().all(|character| character.is_ascii_alphanumeric() || character == '_'));
        for path in ["tests/a.py", "tests/a.rs", "a.test.ts"] {
            assert!(control_template(path).unwrap()(&one).contains(&one), "{path}");
        }
        assert!(control_template("tests/a.sh").is_none() && control_template("tests/a").is_none());
    }
}
