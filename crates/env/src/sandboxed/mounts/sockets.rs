//! Sockets of local services in the file system.
#![expect(
    clippy::disallowed_methods,
    reason = "the kernel's table of sockets is not a file of the environment"
)]

use std::{fs, path::PathBuf};

/// The kernel's table of local sockets in the network namespace of this process.
const TABLE: &str = "/proc/net/unix";

/// Columns before the path.
const COLUMNS: usize = 7;

/// Returns the paths of bound sockets; those that are not absolute cannot be located.
pub(super) fn bound() -> Vec<PathBuf> {
    let table = fs::read(TABLE).unwrap_or_default();
    parse(&String::from_utf8_lossy(&table))
}

fn parse(table: &str) -> Vec<PathBuf> {
    let paths = table.lines().filter_map(|line| {
        let mut rest = line;
        for _ in 0..COLUMNS {
            rest = rest.trim_start().split_once(' ')?.1;
        }
        // The inode is right-aligned, so the path follows after one space.
        Some(rest)
    });
    paths.filter(|path| path.starts_with('/')).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, path::Path};

    use super::*;

    #[test]
    fn paths_are_the_last_column() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     0000: 00000003 00000000 00000000 0001 03  1577\n\
                     0000: 00000002 00000000 00010000 0001 01    20 /run/a socket\n\
                     0000: 00000002 00000000 00010000 0001 01 123456789 @/tmp/abstract\n\
                     0000: 00000002 00000000 00010000 0001 01 22 relative\n";
        assert_eq!(parse(table), [Path::new("/run/a socket")]);
    }

    #[test]
    fn a_bound_socket_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(bound().contains(&path));
    }
}
