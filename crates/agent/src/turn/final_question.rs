//! Distinguishes final responses that ask the user from responses that end the task.

use crate::protocol::OutcomeStatus;

/// Beginnings of a last sentence that offers further help in general, in lower case.
const OFFERS: [&str; 14] = [
    "anything else",
    "anything more",
    "is there anything else",
    "is there anything more",
    "would you like anything else",
    "do you need anything else",
    "do you want anything else",
    "need anything else",
    "can i help you with anything else",
    "can i help with anything else",
    "what else can i",
    "how else can i",
    "any questions",
    "any other questions",
];

/// Beginnings of the rest of such a sentence. Any other rest makes it a question about the task.
const CONTINUATIONS: [&str; 8] = ["i", "you", "you'd", "help", "do", "to do", "for you", "today"];

/// Returns the status of a run that ends with this response.
pub(super) fn status_after(text: &str) -> OutcomeStatus {
    if asks_user(text) { OutcomeStatus::AwaitingInput } else { OutcomeStatus::Completed }
}

/// Returns whether a final response ends with a question that is more than an offer of further help.
fn asks_user(text: &str) -> bool {
    let Some(text) = text.trim_end().strip_suffix('?') else { return false };
    let sentence = text.rsplit(['.', '!', '?', ':', '\n']).next().unwrap_or_default();
    let sentence = sentence.to_lowercase().replace('’', "'");
    let words = sentence.split(|character: char| !character.is_alphanumeric() && character != '\'');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let is_general = |rest: &[&str]| {
        rest.is_empty() || CONTINUATIONS.iter().any(|continuation| strip_words(rest, continuation).is_some())
    };
    !OFFERS.iter().any(|offer| strip_words(&words, offer).is_some_and(is_general))
}

/// Returns the words after a phrase; `None` if they do not start with all of its words.
fn strip_words<'words, 'text>(words: &'words [&'text str], phrase: &str) -> Option<&'words [&'text str]> {
    phrase.split(' ').try_fold(words, |rest, expected| {
        let (word, rest) = rest.split_first()?;
        (*word == expected).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_of_further_help_are_no_questions() {
        for text in [
            "Done. Anything else?",
            "The test passes.\n\nIs there anything else I can help you with?",
            "It is fixed! What else can I do for you? ",
            "Renamed. **Anything else you need?",
            "All green. Any questions?",
            "It builds. Is there anything else you’d like?",
            "Done.",
            "Did it fail? No.",
        ] {
            assert!(!asks_user(text), "{text}");
        }
        for text in [
            "Which port?",
            "Shall I also update the changelog?",
            "Is there anything else in the directory that must stay?",
            "Does anything else listen on port 80?",
            "Is there anything else documented that must stay?",
            "Any questions your team has to answer first?",
            "Is there anything else its tests need?",
            "Anything elsewhere?",
            "Anything else? Or shall I deploy it?",
        ] {
            assert!(asks_user(text), "{text}");
        }
    }
}
