mod bad_input;
mod decisions;
mod following;
mod harness;
mod lifecycle;
mod restarts;
