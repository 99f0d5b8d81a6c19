//! The client specification, section 8, over real HTTP: the real adapters with the scripted server, which checks every
//! request against the provider's documented rules.

/// Declares each function as a test of each provider: `openai::name`, `anthropic::name`, `gemini::name` and
/// `compatible::name`.
macro_rules! per_provider {
    ($($test:ident),+ $(,)?) => {
        per_provider!(@ openai OpenAiResponses $($test)+);
        per_provider!(@ anthropic AnthropicMessages $($test)+);
        per_provider!(@ gemini Gemini $($test)+);
        per_provider!(@ compatible ChatCompletions $($test)+);
    };
    (@ $module:ident $dialect:ident $($test:ident)+) => {
        mod $module {
            use pintle_testkit::Dialect;
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(Dialect::$dialect).await;
                }
            )+
        }
    };
}

mod adapter;
pub(crate) mod caching;
mod content;
mod contract;
mod failure;
mod harness;
mod infrastructure;
mod parity;
mod reasoning;
mod retry;
mod streaming;
