//! Tests of the scripted server over real connections, with a minimal client.

#[cfg(test)]
mod client;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod serving;
