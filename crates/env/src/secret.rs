//! Recognizes environment variables that hold secrets, by name and by value.
//!
//! The name patterns come from the loop specification (section 4.2), plus names used by common
//! tools. A value is a secret if it contains a URL with a password, or a key in one of the formats
//! that secret scanners look for.

use std::ffi::OsStr;

/// Uppercase name endings that mark a secret. An ending matches the whole name, or a suffix after an underscore. The
/// specification lists the first five.
const NAME_ENDINGS: [&str; 47] = [
    "API_KEY",
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "CREDENTIAL",
    "ACCESS_KEY",
    "ACCOUNT_KEY",
    "APIKEY",
    "API_KEYS",
    "AUTH",
    "AUTHTOKEN",
    "AUTH_CONFIG",
    "BEARER",
    "CLIENT_KEY",
    "CONNECTION_STRING",
    "COOKIE",
    "COOKIES",
    "CREDENTIALS",
    "DEPLOY_KEY",
    "DSN",
    "ENCRYPTION_KEY",
    "JWT",
    "LICENSE_KEY",
    "MASTER_KEY",
    "OTP",
    "PASS",
    "PASSCODE",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORDS",
    "PAT",
    "PGPASSWORD",
    "PRIVATE_KEY",
    "PWD",
    "SAS_URL",
    "SECRETS",
    "SECRET_KEY",
    "SECRET_KEY_BASE",
    "SIGNING_KEY",
    "SK",
    "SSHPASS",
    "SSH_KEY",
    "TOKENS",
    "TOTP",
    "WEBHOOK",
    "WEBHOOKS",
    "WEBHOOK_URL",
];

/// Names that match an ending but hold a path.
const EXEMPT_NAMES: [&str; 3] = ["PWD", "OLD_PWD", "GOOGLE_APPLICATION_CREDENTIALS"];

/// Prefixes of keys, each with the minimum number of key characters (`A-Za-z0-9_-`) that follow.
const KEY_FORMS: [(&str, usize); 33] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("rk_test_", 16),
    ("whsec_", 20),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 30),
    ("glpat-", 16),
    ("xoxa-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxs-", 16),
    ("xapp-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29", 20),
    ("npm_", 30),
    ("pypi-", 30),
    ("hf_", 20),
    ("SG", 40),
    ("dop_v1_", 30),
    ("shpat_", 20),
    ("gsk_", 20),
    ("xai-", 20),
    ("lin_api_", 20),
    ("AGE-SECRET-KEY-", 20),
    // The header of a JSON Web Token.
    ("eyJ", 30),
];

/// End of the first line of a private key in PEM format.
const PEM: &str = "PRIVATE KEY-----";

/// A value that is recognized as secret, for variables whose value is stored elsewhere.
pub(crate) const SECRET_VALUE: &str = PEM;

/// Returns true if the name or the value marks the variable as a secret.
pub(crate) fn is_secret(name: &OsStr, value: &OsStr) -> bool {
    is_secret_name(&name.to_string_lossy()) || is_secret_value(&value.to_string_lossy())
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    if EXEMPT_NAMES.contains(&name.as_str()) {
        return false;
    }
    NAME_ENDINGS.iter().any(|ending| {
        name.strip_suffix(ending).is_some_and(|before| before.is_empty() || before.ends_with('_'))
    })
}

fn is_secret_value(value: &str) -> bool {
    value.contains(PEM) || has_url_with_password(value) || has_key(value)
}

/// Returns true if a key starts somewhere at the beginning of a word.
fn has_key(value: &str) -> bool {
    KEY_FORMS.iter().any(|(form, least)| {
        value.match_indices(form).any(|(at, _)| {
            let (before, rest) = value.split_at(at);
            let tail = rest.strip_prefix(form).unwrap_or_default();
            // Some formats separate their parts by dots.
            let tail = tail.strip_prefix('.').unwrap_or(tail);
            let length = tail.chars().take_while(|character| is_key_character(*character)).count();
            !before.ends_with(|character: char| character.is_ascii_alphanumeric()) && length >= *least
        })
    })
}

fn is_key_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

/// Returns true if the value contains `SCHEME://USER:PASSWORD@`; the user may be empty.
fn has_url_with_password(value: &str) -> bool {
    value.match_indices("://").any(|(at, separator)| {
        let rest = value.get(at + separator.len()..).unwrap_or_default();
        let authority = rest.split(|end: char| end == '/' || end == '?' || end.is_whitespace()).next();
        let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
        let has_scheme =
            value.get(..at).is_some_and(|scheme| scheme.ends_with(|c: char| c.is_ascii_alphanumeric()));
        has_scheme
            && user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    })
}

/// Returns the value rules as an extended regular expression, so that a remote shell can apply them
/// without sending the values.
pub(crate) fn value_expression() -> String {
    let mut expression = format!("{PEM}|[A-Za-z0-9]://[^][:space:]/?@:]*:[^][:space:]/?@]+@");
    for (form, least) in KEY_FORMS {
        expression.push_str(&format!("|(=|[^A-Za-z0-9]){form}[.]?[A-Za-z0-9_-]{{{least},}}"));
    }
    expression
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the expression is tested with grep")]

    use std::{io::Write, process};

    use super::*;

    /// A variable, and whether its name and its value mark it as a secret.
    const VARIABLES: [(&str, &str, (bool, bool)); 63] = [
        ("OPENAI_API_KEY", "x", (true, false)),
        ("openai_api_key", "x", (true, false)),
        ("My_Secret", "x", (true, false)),
        ("GH_TOKEN", "x", (true, false)),
        ("DB_PASSWORD", "x", (true, false)),
        ("X_CREDENTIAL", "x", (true, false)),
        ("AWS_SECRET_ACCESS_KEY", "x", (true, false)),
        ("AWS_SESSION_TOKEN", "x", (true, false)),
        ("PGPASSWORD", "x", (true, false)),
        ("MYSQL_PWD", "x", (true, false)),
        ("NPM_CONFIG__AUTH", "x", (true, false)),
        ("npm_config_//registry.example/:_authToken", "x", (true, false)),
        ("STRIPE_SK", "x", (true, false)),
        ("GITHUB_PAT", "x", (true, false)),
        ("DOCKER_AUTH_CONFIG", "x", (true, false)),
        ("AZURE_STORAGE_CONNECTION_STRING", "x", (true, false)),
        ("RAILS_MASTER_KEY", "x", (true, false)),
        ("SSHPASS", "x", (true, false)),
        ("TOKEN", "x", (true, false)),
        ("VAULT_PASSPHRASE", "x", (true, false)),
        ("PASSPHRASE", "x", (true, false)),
        ("SESSION_JWT", "x", (true, false)),
        ("JWT", "x", (true, false)),
        ("SESSION_COOKIE", "x", (true, false)),
        ("SLACK_WEBHOOK_URL", "x", (true, false)),
        ("WEBHOOK", "x", (true, false)),
        ("SECRET_KEY", "x", (true, false)),
        ("SENTRY_DSN", "x", (true, false)),
        ("AWS_CREDENTIALS", "x", (true, false)),
        ("PATH", "x", (false, false)),
        ("COMPAT", "x", (false, false)),
        ("BYPASS", "x", (false, false)),
        ("MY_PWD", "x", (true, false)),
        ("GOPATH", "x", (false, false)),
        ("EDITOR", "vi", (false, false)),
        ("TOKENIZER", "x", (false, false)),
        ("SECRET_SANTA", "x", (false, false)),
        ("PWD", "/srv/app", (false, false)),
        ("KEYBOARD", "de", (false, false)),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/srv/app/key.json", (false, false)),
        ("SSH_AUTH_SOCK", "/run/user/0/agent", (false, false)),
        ("DATABASE_URL", "postgres://me:hunter2@db.example/app", (false, true)),
        ("DATABASE_URL", "postgres://me@db.example/app", (false, false)),
        ("DATABASE_URL", "sqlite:///tmp/a:b@c.db", (false, false)),
        ("REDIS_URL", "redis://:hunter2@cache.example:6379", (false, true)),
        ("ALL", "first http://a:b@c/ last", (false, true)),
        ("HTTP_PROXY", "http://proxy.example:3128", (false, false)),
        ("GIT_REMOTE", "ssh://git@host.example:22/a.git", (false, false)),
        ("A", "sk-ant-api03-aaaaaaaaaaaaaaaaaaaa", (false, true)),
        ("A", "Bearer sk-aaaaaaaaaaaaaaaaaaaaaaaa", (false, true)),
        ("A", "task-force-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", (false, false)),
        ("A", "sk-short", (false, false)),
        ("A", "ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", (false, true)),
        ("A", "xoxb-1111111111-2222222222-aaaa", (false, true)),
        ("A", "AKIAIOSFODNN7EXAMPLE", (false, true)),
        ("A", "AIzaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", (false, true)),
        ("A", "SG.aaaaaaaaaaaaaaaaaaaaaa-aaaaaaaaaaaaaaaaaaaaaaaaaaaa", (false, true)),
        ("A", "hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", (false, true)),
        ("A", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.x", (false, true)),
        ("A", "-----BEGIN OPENSSH PRIVATE KEY-----", (false, true)),
        ("A", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAA", (false, false)),
        ("COMMIT", "4365755aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", (false, false)),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36:mh=00", (false, false)),
    ];

    #[test]
    fn secrets_are_recognized_by_name_and_value() {
        for (name, value, expected) in VARIABLES {
            assert_eq!((is_secret_name(name), is_secret_value(value)), expected, "{name}={value}");
        }
    }

    #[test]
    fn the_expression_matches_the_rules() {
        for (name, value, (_, expected)) in VARIABLES {
            let mut grep = process::Command::new("grep")
                .args(["-qE", "-e", &value_expression()])
                .stdin(process::Stdio::piped())
                .spawn()
                .unwrap();
            grep.stdin.take().unwrap().write_all(format!("{name}={value}\n").as_bytes()).unwrap();
            assert_eq!(grep.wait().unwrap().success(), expected, "{name}={value}");
        }
    }
}
