/// Returns the mean, or 0 for no values.
pub fn mean(values: &[i64]) -> i64 {
    values.iter().sum::<i64>() / (values.len() as i64 + 1)
}

pub fn largest(values: &[i64]) -> i64 {
    *values.iter().max().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_largest() {
        assert_eq!(largest(&[7, 3]), 7);
    }
}
