//! Identity of a directory, over hosts and paths.

/// Returns the identity of a directory, from its inode and the time of its birth since 1970; `None` without such a time.
pub(crate) fn identity(inode: u64, seconds: u64, nanos: u64) -> Option<String> {
    (seconds > 0).then(|| format!("{inode:x}-{seconds:x}.{nanos:09}"))
}
