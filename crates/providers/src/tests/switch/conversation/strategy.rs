//! Strategies that generate conversations.

use proptest::prelude::*;

use super::{Arguments, AssistantPart, Call, Delivery, IdShape, ORIGINS, ResultSpec, Step, UserPart};

/// Generates conversations of up to a dozen steps after a first question.
pub(in crate::tests::switch) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 0..12)
}

/// Generates texts that have broken encoders before: empty and blank ones, and characters that JSON escapes.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(String::new()),
        1 => Just(" \n".to_owned()),
        1 => Just("\u{0}\u{7f}\u{2028}\"\\/</script>".to_owned()),
        1 => Just("data: [DONE]\n\n{\"type\":\"text\"}".to_owned()),
        4 => ".{1,20}",
    ]
}

fn result_spec() -> impl Strategy<Value = ResultSpec> {
    (hostile(), any::<bool>(), any::<bool>(), 0_usize..3)
        .prop_map(|(text, structured, is_error, images)| ResultSpec { text, structured, is_error, images })
}

fn call() -> impl Strategy<Value = Call> {
    use IdShape::{Anthropic, Counted, Empty, Hostile, Long, OpenAi, Twin, Uuid};
    let id = prop::sample::select(vec![OpenAi, Anthropic, Uuid, Counted, Empty, Long, Twin, Hostile]);
    let name = prop::sample::select(vec![
        "read_file",
        "read_file",
        "apply_patch",
        "",
        "no such tool!",
        "инструмент",
        "9lives",
        "a.b:c-d",
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
    ]);
    let arguments = prop_oneof![
        4 => Just(Arguments::Object),
        1 => Just(Arguments::Nothing),
        1 => prop::sample::select(vec!["{\"pa", "[1, 2]", "null", "\"a\""]).prop_map(Arguments::Broken),
        2 => hostile().prop_map(Arguments::Freeform),
    ];
    (id, name, arguments, any::<bool>(), result_spec())
        .prop_map(|(id, name, arguments, signed, result)| Call { id, name, arguments, signed, result })
}

fn delivery() -> impl Strategy<Value = Delivery> {
    use Delivery::{Apart, Interleaved, Plain, Steered, Together};
    prop::sample::select(vec![Together, Together, Apart, Steered, Interleaved, Plain])
}

fn assistant_part() -> impl Strategy<Value = AssistantPart> {
    prop_oneof![
        3 => (hostile(), any::<bool>()).prop_map(|(text, signed)| AssistantPart::Text(text, signed)),
        3 => (hostile(), prop::bool::weighted(0.8))
            .prop_map(|(text, signed)| AssistantPart::Thinking(text, signed)),
        1 => Just(AssistantPart::Redacted),
        1 => Just(AssistantPart::Opaque),
        1 => Just(AssistantPart::OpaqueCall),
        1 => Just(AssistantPart::Image),
    ]
}

fn user_part() -> impl Strategy<Value = UserPart> {
    prop_oneof![
        5 => hostile().prop_map(UserPart::Text),
        1 => Just(UserPart::ImageBytes),
        1 => Just(UserPart::ImageUrl),
        1 => Just(UserPart::Document),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let response = |calls| {
        let parts = prop::collection::vec(assistant_part(), 0..4);
        (0..ORIGINS.len(), parts, prop::collection::vec(call(), calls), delivery())
            .prop_map(|(origin, parts, calls, delivery)| Step::Response { origin, parts, calls, delivery })
    };
    prop_oneof![
        3 => prop::collection::vec(user_part(), 0..3).prop_map(Step::User),
        1 => (any::<bool>(), hostile()).prop_map(|(developer, text)| Step::Instruct { developer, text }),
        5 => response(1..4),
        2 => response(0..1),
    ]
}
