//! Formatting of numbers.

/// Values and letters, largest first, including subtractive pairs.
const STEPS: [(u32, &str); 13] = [
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
];

/// Formats a number from 1 to 3999.
pub fn to_roman(number: u32) -> Option<String> {
    if !(1..=3999).contains(&number) {
        return None;
    }
    let mut rest = number;
    let mut numeral = String::new();
    for (value, letters) in STEPS {
        while rest >= value {
            numeral.push_str(letters);
            rest -= value;
        }
    }
    Some(numeral)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_numerals() {
        for (number, numeral) in [(1, "I"), (4, "IV"), (9, "IX"), (1666, "MDCLXVI"), (1994, "MCMXCIV")] {
            assert_eq!(to_roman(number).as_deref(), Some(numeral));
        }
    }

    #[test]
    fn there_is_no_zero_and_no_four_thousand() {
        assert_eq!(to_roman(0), None);
        assert_eq!(to_roman(4000), None);
    }
}
