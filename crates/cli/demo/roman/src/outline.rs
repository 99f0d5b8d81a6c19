//! Sorting of chapter headings such as `IV. The road`.

use crate::parse::parse;

/// Sorts headings by chapter number.
///
/// Headings without a number, such as `Index`, keep their order and come last.
pub fn sort_headings(headings: &mut [String]) {
    headings.sort_by_key(|heading| chapter(heading).unwrap_or(u32::MAX));
}

/// Parses the number before the first dot.
fn chapter(heading: &str) -> Option<u32> {
    let (numeral, _) = heading.split_once('.')?;
    parse(numeral.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(headings: &[&str]) -> Vec<String> {
        let mut headings: Vec<String> = headings.iter().map(ToString::to_string).collect();
        sort_headings(&mut headings);
        headings
    }

    #[test]
    fn chapters_come_in_order() {
        let headings = sorted(&["X. Home", "IX. The bridge", "I. Departure", "V. Rain", "IV. The road"]);
        assert_eq!(headings, ["I. Departure", "IV. The road", "V. Rain", "IX. The bridge", "X. Home"]);
    }

    #[test]
    fn headings_without_a_number_come_last() {
        let headings = sorted(&["Index", "II. Away", "Thanks", "I. Departure"]);
        assert_eq!(headings, ["I. Departure", "II. Away", "Index", "Thanks"]);
    }
}
