//! The scripted server over real connections, driven by a client written by hand.

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
