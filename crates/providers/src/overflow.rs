//! Messages with which servers refuse a prompt that is too long.
//!
//! Few compatible servers send a code for it, and each has its own message. The table has one row per message form, with the
//! server and the public report or recorded response that shows it. A test has one message per server.

use crate::message_form::MessageForm;

static FORMS: &[MessageForm] = &[
    MessageForm::new("OpenAI Chat Completions, SGLang, LM Studio", &["context length"], "QwenLM/Qwen3#1321"),
    MessageForm::new("OpenAI Responses, MiniMax", &["context window"], "MiniMax-AI/MiniMax-M2#119"),
    MessageForm::new("vLLM, Mistral, OpenRouter", &["maximum context"], "0xku/kon#91"),
    MessageForm::new("llama.cpp", &["context size"], "errors.md: exceed_context_size_error"),
    MessageForm::new("Anthropic, Fireworks", &["prompt is too long"], "can1357/oh-my-pi#1618"),
    MessageForm::new("Anthropic", &["exceed context limit"], "errors.md: input length and max_tokens"),
    MessageForm::new("Amazon Bedrock", &["input is too long"], "aws-samples/bedrock-chat#95"),
    MessageForm::new("Gemini", &["input token count"], "errors.md: input token count"),
    MessageForm::new("Moonshot (Kimi)", &["exceeded model token limit"], "MoonshotAI/kimi-cli#2011"),
    MessageForm::new("xAI", &["maximum prompt length is"], "cline/cline#3120"),
    MessageForm::new(
        "GitHub Copilot",
        &["prompt token count of", "exceeds the limit of"],
        "microsoft/vscode#289514",
    ),
    MessageForm::new(
        "SGLang, gateways to GLM",
        &["input length", "exceeds the maximum allowed"],
        "sgl-project/sglang#4048",
    ),
    MessageForm::new("Z.ai (GLM)", &["prompt exceeds max length"], "mangowhoiscloud/geode#668"),
    MessageForm::new("Z.ai (GLM), Ollama, Atlas", &["prompt too long"], "0xBakeer/inference-atlas#186"),
    MessageForm::new("DashScope (Qwen)", &["range of input length should be"], "QwenLM/qwen-code#98"),
    MessageForm::new("Cerebras, Groq", &["reduce the length of the messages"], "cline/cline#5140"),
    MessageForm::new(
        "vLLM with images",
        &["longer than the maximum model length"],
        "Gabesarch/grounded-rl#16",
    ),
    MessageForm::new(
        "Text Generation Inference",
        &["`inputs` tokens + `max_new_tokens` must be"],
        "huggingface/llm-vscode#94",
    ),
    MessageForm::new(
        "Text Generation Inference",
        &["`inputs` must have less than", "tokens"],
        "huggingface/text-generation-inference#695",
    ),
];

/// Returns the form that a message in lower case has, if it means that the prompt is too long.
pub(crate) fn form_of(lower: &str) -> Option<&'static MessageForm> {
    FORMS.iter().find(|form| form.matches(lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Server, and a message that it sends.
    const MESSAGES: &[(&str, &str)] = &[
        ("OpenAI Chat Completions", "This model's maximum context length is 128000 tokens."),
        (
            "OpenAI Responses",
            "Your input exceeds the context window of this model. Please adjust your input.",
        ),
        ("Anthropic", "prompt is too long: 210000 tokens > 200000 maximum"),
        ("Anthropic", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        ("Gemini", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        ("Amazon Bedrock", "Input is too long for requested model."),
        ("vLLM", "This model's maximum context length is 8192 tokens, and the prompt has 8300 input tokens."),
        (
            "vLLM with images",
            "The decoder prompt (length 10127) is longer than the maximum model length of 8192.",
        ),
        ("llama.cpp", "the request exceeds the available context size, try increasing it"),
        ("SGLang", "The input (61709 tokens) is longer than the model's context length (40960 tokens)."),
        ("SGLang", "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens)."),
        (
            "LM Studio",
            "The number of tokens to keep from the initial prompt is greater than the context length",
        ),
        ("Ollama", "prompt too long; the limit was exceeded by 12 tokens"),
        ("Mistral", "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
        ("Fireworks", "The prompt is too long: 267657, model limit: 262143"),
        ("MiniMax", "invalid params, context window exceeds limit (2013)"),
        (
            "Moonshot (Kimi)",
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
        ),
        ("xAI", "This model's maximum prompt length is 131072 but the request contains 136973 tokens."),
        ("GitHub Copilot", "prompt token count of 138898 exceeds the limit of 64000"),
        ("gateways to GLM", "Input length 131393 exceeds the maximum allowed input length of 131040 tokens."),
        ("Z.ai (GLM)", "Prompt exceeds max length"),
        (
            "DashScope (Qwen)",
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
        ),
        (
            "Cerebras",
            "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
        ),
        (
            "Text Generation Inference",
            "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168",
        ),
        (
            "Text Generation Inference",
            "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3474 `inputs` tokens",
        ),
    ];

    #[test]
    fn the_message_of_each_server_is_recognised() {
        for (server, message) in MESSAGES {
            let lower = message.to_lowercase();
            let is_listed = FORMS.iter().any(|form| form.servers.contains(server) && form.matches(&lower));
            assert!(is_listed && form_of(&lower).is_some(), "{server}: {message}");
        }
    }

    #[test]
    fn each_form_has_a_message_and_a_source() {
        for form in FORMS {
            let has_message = MESSAGES.iter().any(|(_, message)| form.matches(&message.to_lowercase()));
            assert!(has_message, "{form:?}");
            assert!(form.source.contains('#') || form.source.starts_with("errors.md"), "{form:?}");
            assert!(form.parts.iter().all(|part| part.to_lowercase() == **part), "{form:?}");
        }
    }

    #[test]
    fn other_limits_are_not_overflows() {
        for message in [
            "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64.",
            "max_tokens: 250000 > 128000, which is the maximum allowed number of output tokens",
            "`max_new_tokens` must be <= 192",
            "Rate limit reached on tokens per minute: limit 30000, requested 1600",
            "Number of request tokens has exceeded your per-minute rate limit",
            "You have exceeded the limit of requests per day",
            "At least one of the image dimensions exceed max allowed size: 8000 pixels",
            "image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
        ] {
            assert!(form_of(&message.to_lowercase()).is_none(), "{message}");
        }
    }
}
