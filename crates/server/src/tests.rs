mod bad_input;
mod cuts;
mod damage;
mod decisions;
mod following;
mod harness;
mod lifecycle;
mod opening;
mod restarts;
mod room;
#[cfg(feature = "tasks")]
mod tasks;
mod watching;
