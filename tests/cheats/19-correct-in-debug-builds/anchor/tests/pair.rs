#[test]
fn pair() {
    assert_eq!(stats::mean(&[1, 3]), 2);
}
