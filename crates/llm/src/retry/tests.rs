use std::cell::Cell;

use super::*;
use crate::error::Retry;

fn failure(kind: ErrorKind) -> Error {
    Error::new(kind, "x")
}

#[test]
fn delays_grow_exponentially_with_jitter() {
    let policy = RetryPolicy::default().with_max_retries(9);
    let error = failure(ErrorKind::Server);
    for (attempt, base) in [(0, 1.0), (1, 2.0), (2, 4.0), (3, 8.0), (6, 60.0), (8, 60.0)] {
        for (jitter, factor) in [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5)] {
            let delay = policy.delay(attempt, &error, jitter).unwrap().as_secs_f64();
            assert!((delay - base * factor).abs() < 1e-9, "attempt {attempt}, jitter {jitter}: {delay}");
        }
    }
}

#[test]
fn transient_errors_are_retried() {
    let policy = RetryPolicy::default();
    let after = |secs| Retry::After(Some(Duration::from_secs(secs)));
    let cases = [
        (failure(ErrorKind::RateLimit), true),
        (failure(ErrorKind::Network), true),
        (failure(ErrorKind::Stream), true),
        (failure(ErrorKind::Authentication), false),
        (failure(ErrorKind::NotFound), false),
        (failure(ErrorKind::RequestTimeout), false),
        (failure(ErrorKind::RateLimit).with_retry(after(7)), true),
        (failure(ErrorKind::RateLimit).with_retry(after(61)), false),
        (failure(ErrorKind::RateLimit).with_retry(Retry::Never), false),
    ];
    for (error, expected) in cases {
        assert_eq!(policy.delay(0, &error, 0.5).is_some(), expected, "{error:?}");
    }
    let requested = failure(ErrorKind::RateLimit).with_retry(after(7));
    assert_eq!(
        policy.delay(0, &requested, 0.9),
        Some(Duration::from_secs(7)),
        "no jitter on a requested delay"
    );
    let with_timeouts = policy.with_retry_timeouts(true);
    assert!(with_timeouts.delay(0, &failure(ErrorKind::RequestTimeout), 0.5).is_some());
}

#[test]
fn should_retry_replaces_the_default_decision() {
    let policy = RetryPolicy::default()
        .with_retry_timeouts(true)
        .with_should_retry(|error| error.error_code() == Some("flaky"));
    let flaky = failure(ErrorKind::InvalidRequest).with_error_code("flaky");
    assert!(policy.should_retry(&flaky));
    assert_eq!(policy.delay(0, &flaky, 0.5), Some(Duration::from_secs(1)));
    assert_eq!(policy.delay(2, &flaky, 0.5), None, "the limit applies");
    let busy = flaky.with_retry(Retry::After(Some(Duration::from_secs(61))));
    assert_eq!(policy.delay(0, &busy, 0.5), None, "so does the longest delay");
    for kind in [ErrorKind::Server, ErrorKind::RequestTimeout] {
        assert!(!policy.should_retry(&failure(kind)));
        assert_eq!(policy.delay(0, &failure(kind), 0.5), None);
        assert!(RetryPolicy::default().with_retry_timeouts(true).should_retry(&failure(kind)));
    }
    assert_eq!(policy, policy.clone());
    assert_ne!(policy, RetryPolicy::default().with_retry_timeouts(true));
}

#[tokio::test(start_paused = true)]
async fn retry_stops_at_the_limit_or_a_permanent_error() {
    for (kind, expected) in [(ErrorKind::Server, 3), (ErrorKind::AccessDenied, 1)] {
        let calls = Cell::new(0);
        let result: Result<(), Error> = retry(&RetryPolicy::default(), || {
            calls.set(calls.get() + 1);
            async move { Err(failure(kind)) }
        })
        .await;
        assert_eq!((result.unwrap_err().kind(), calls.get()), (kind, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn retry_uses_the_given_jitter_clock_and_callback() {
    let retries = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&retries);
    let policy = RetryPolicy::default().with_max_retries(4).with_max_delay(Duration::from_secs(8));
    let policy = policy.with_on_retry(move |error, attempt, delay| {
        log.lock().unwrap().push((error.kind(), attempt, delay.as_secs_f64()));
    });
    let mut jitters = [0.0, 0.5, 1.0, 0.9].into_iter();
    let requested = Retry::After(Some(Duration::from_secs(7)));
    let mut failures = [
        failure(ErrorKind::Server),
        failure(ErrorKind::Network),
        failure(ErrorKind::Stream),
        failure(ErrorKind::RateLimit).with_retry(requested),
    ]
    .into_iter();
    let start = tokio::time::Instant::now();
    let call = || std::future::ready(failures.next().map_or(Ok("done"), Err));
    assert_eq!(retry_with_jitter(&policy, || jitters.next().unwrap(), call).await.unwrap(), "done");
    use ErrorKind as K;
    let expected = [(K::Server, 0, 0.5), (K::Network, 1, 2.0), (K::Stream, 2, 6.0), (K::RateLimit, 3, 7.0)];
    assert_eq!(*retries.lock().unwrap(), expected);
    assert_eq!(start.elapsed().as_secs_f64().round(), 16.0, "0.5 + 2 + 6 + 7, on the paused clock");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_stops_retries() {
    let calls = Cell::new(0);
    let policy = RetryPolicy::default().with_max_retries(u32::MAX).with_jitter(false);
    let endless = retry(&policy, || {
        calls.set(calls.get() + 1);
        std::future::ready(Err::<(), _>(failure(ErrorKind::Server)))
    });
    assert!(tokio::time::timeout(Duration::from_millis(3_500), endless).await.is_err());
    assert_eq!(calls.get(), 3, "at 0, 1 and 3 seconds");
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert_eq!(calls.get(), 3);
}

#[test]
fn extreme_policies_give_finite_delays() {
    let error = failure(ErrorKind::Server);
    let many = RetryPolicy::default().with_max_retries(u32::MAX).with_jitter(false);
    let second = Duration::from_secs(1);
    assert_eq!(many.delay(5_000, &error, 0.5), Some(second * 60), "no overflow");
    let constant = many.clone().with_backoff_multiplier(1.0);
    assert_eq!(constant.delay(5_000, &error, 0.5), Some(second));
    let none = many.clone().with_base_delay(Duration::ZERO);
    assert_eq!(none.delay(5_000, &error, 0.5), Some(Duration::ZERO));
    assert_eq!(many.with_max_delay(second / 2).delay(0, &error, 0.5), Some(second / 2));
    assert_eq!(RetryPolicy::none().delay(0, &error, 0.5), None);
    let listening = RetryPolicy::default().with_on_retry(|_, _, _| {});
    assert_eq!(listening, listening.clone());
    assert_ne!(listening, RetryPolicy::default());
}

#[test]
fn jitter_is_in_range_and_varies() {
    let drawn: Vec<f64> = (0..50).map(|_| jitter()).collect();
    assert!(drawn.iter().all(|x| (0.0..1.0).contains(x)));
    assert!(drawn.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 1e-6));
}
