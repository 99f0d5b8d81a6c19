mod bad_input;
mod cuts;
mod damage;
mod decisions;
mod following;
mod harness;
mod lifecycle;
mod mounted;
mod opening;
mod restarts;
mod room;
mod serialised;
#[cfg(feature = "tasks")]
mod tasks;
mod watching;
