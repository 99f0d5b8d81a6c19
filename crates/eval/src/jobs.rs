//! Concurrent work on a list.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use pintle_host::failure::Failure;

/// Works on all items, `jobs` of them concurrently. After a failure, running work finishes, and no further work starts.
pub(crate) async fn for_each<'a, T, F: Future<Output = Result<(), Failure>>>(
    items: &'a [T],
    jobs: usize,
    work: impl Fn(usize, &'a T) -> F,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    join_all((0..jobs.max(1)).map(|_| work_next(items, &next, &work))).await.into_iter().collect()
}

async fn work_next<'a, T, F: Future<Output = Result<(), Failure>>>(
    items: &'a [T],
    next: &AtomicUsize,
    work: &impl Fn(usize, &'a T) -> F,
) -> Result<(), Failure> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(number) else { return Ok(()) };
        if let Err(failure) = work(number, item).await {
            next.store(items.len(), Ordering::Relaxed);
            return Err(failure);
        }
    }
}
