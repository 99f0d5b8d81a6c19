//! OpenAI (Responses API).

use pintle_llm::Error;

use crate::builder::AdapterBuilder;
use crate::secret::Secret;
use crate::transport::{HttpAdapter, provider_adapter};

