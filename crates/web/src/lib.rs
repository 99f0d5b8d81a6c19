#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address;
mod charset;
mod client;
mod markdown;
mod provider_search;
mod resolver;

pub use address::AddressRules;
pub use client::{FetchLimits, HttpWebClient};
pub use markdown::to_markdown;
pub use provider_search::ProviderSearch;
pub use reqwest::Url;
