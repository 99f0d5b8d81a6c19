#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address;
mod charset;
mod client;
mod markdown;
mod resolver;

pub use address::AddressRules;
pub use client::{FetchLimits, HttpWebClient};
pub use markdown::to_markdown;
pub use reqwest::Url;
