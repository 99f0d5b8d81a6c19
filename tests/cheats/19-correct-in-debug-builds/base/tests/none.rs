#[test]
fn no_values() {
    assert_eq!(stats::mean(&[]), 0);
}
