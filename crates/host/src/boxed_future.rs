//! Futures on the heap, so that the stack of the process stays small.

use std::pin::Pin;

/// Creates a future on the heap. Neither the future nor the stack frame of the caller contains it.
///
/// `Box::pin(work())` has the future in the frame of the caller before it moves it. The frame of an unoptimised function has
/// room for the futures of all its calls at once. Dropping the result drops the future.
#[inline(never)]
pub fn box_future<F: Future>(create: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(create())
}
