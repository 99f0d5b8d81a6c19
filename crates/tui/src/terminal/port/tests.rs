//! The table of decision 0053 lists the capabilities of the ports.

use super::*;

/// Decision about the ports.
const PAGE: &str = include_str!("../../../../../docs/project/decisions/0053-session-port.md");

/// Row of the table of operations.
struct Row {
    operation: String,
    local: bool,
    remote: bool,
    refusal: String,
}

fn rows() -> Vec<Row> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [operation, _, local, remote, refusal] = cells[..] else { panic!("{line}") };
        let is_supported = |cell: &str| match cell {
            "yes" => true,
            "no" => false,
            _ => panic!("{line}"),
        };
        Row {
            operation: operation.trim_matches('`').to_owned(),
            local: is_supported(local),
            remote: is_supported(remote),
            refusal: refusal.to_owned(),
        }
    };
    rows.map(row).collect()
}

#[test]
fn the_decision_lists_the_operations_in_order() {
    let named: Vec<String> = Operation::ALL.iter().map(|operation| format!("{operation:?}")).collect();
    let listed: Vec<String> = rows().iter().map(|row| row.operation.clone()).collect();
    assert_eq!(named, listed);
    for row in rows() {
        assert_eq!(row.remote, row.refusal.is_empty(), "{}", row.operation);
    }
}

#[test]
fn a_local_session_supports_the_listed_operations() {
    for (operation, row) in Operation::ALL.into_iter().zip(rows()) {
        assert_eq!(local::CAPABILITIES.supports(operation), row.local, "{operation:?}");
    }
}

#[cfg(feature = "client")]
#[test]
fn a_session_of_a_server_supports_the_listed_operations() {
    for (operation, row) in Operation::ALL.into_iter().zip(rows()) {
        assert_eq!(remote::CAPABILITIES.supports(operation), row.remote, "{operation:?}");
        if let Some((_, end)) = row.refusal.split_once(" is not available") {
            assert_eq!(format!("is not available{end}"), remote::CAPABILITIES.refusal, "{operation:?}");
        }
    }
}
