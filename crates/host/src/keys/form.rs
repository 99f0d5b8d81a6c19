//! Form of a key.

use super::SUBSCRIPTION_NOTICE;
use crate::failure::Failure;
use crate::provider::Provider;

/// Shortest key, in bytes. Anything shorter is not redacted, since it occurs by chance.
const SHORTEST: usize = pintle_env::Redactions::SHORTEST;

/// Longest key, in bytes.
const LONGEST: usize = 4096;

/// Beginning of the tokens of a subscription.
const SUBSCRIPTION: &str = "sk-ant-oat";

/// Checks that a text can be the key of a provider. Messages never repeat it.
pub fn check(provider: Provider, key: &str) -> Result<(), Failure> {
    let wrong =
        |problem: String| Err(Failure::usage(format!("this is no key of {}: {problem}", provider.name())));
    if key.is_empty() {
        return wrong("it is empty".to_owned());
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return wrong("it contains a space, a line break or another invalid character".to_owned());
    }
    if key.len() < SHORTEST || key.len() > LONGEST {
        return wrong(format!("it has {} characters, expected {SHORTEST} to {LONGEST}", key.len()));
    }
    if key.starts_with(SUBSCRIPTION) {
        return wrong(format!("it is a token of a subscription; {SUBSCRIPTION_NOTICE}"));
    }
    match owner(key) {
        Some(owner) if owner != provider && provider != Provider::OpenAiCompatible => {
            wrong(format!("it has the form of a key of {}", owner.name()))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the provider whose keys have this form and no other provider's; `None` if it is not known.
fn owner(key: &str) -> Option<Provider> {
    let forms = [
        ("sk-ant-", Provider::Anthropic),
        ("sk-proj-", Provider::OpenAi),
        ("sk-svcacct-", Provider::OpenAi),
        ("AIza", Provider::Gemini),
    ];
    forms.into_iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, provider)| provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_of_a_key_is_checked() {
        let cases = [
            (Provider::Anthropic, "sk-ant-api03-0123", None),
            (Provider::Anthropic, "gateway-0123456", None),
            (Provider::OpenAi, "sk-proj-0123456789", None),
            (Provider::OpenAiCompatible, "sk-ant-api03-0123", None),
            (Provider::Gemini, "", Some("it is empty")),
            (Provider::Gemini, "two words of it", Some("it contains a space")),
            (Provider::Gemini, "Schlüssel-0123", Some("another invalid character")),
            (Provider::Gemini, "short", Some("it has 5 characters, expected 8 to 4096")),
            (Provider::OpenAi, "sk-ant-api03-0123", Some("it has the form of a key of anthropic")),
            (Provider::Anthropic, "AIza0123456789", Some("it has the form of a key of gemini")),
            (Provider::Anthropic, "sk-ant-oat01-0123", Some("it is a token of a subscription")),
        ];
        for (provider, key, problem) in cases {
            let checked = check(provider, key);
            let Some(problem) = problem else {
                assert_eq!(checked, Ok(()), "{key}");
                continue;
            };
            let message = checked.unwrap_err().message();
            assert!(message.starts_with("this is no key of ") && message.contains(problem), "{message}");
            assert!(key.is_empty() || !message.contains(key), "{message}");
        }
    }
}
