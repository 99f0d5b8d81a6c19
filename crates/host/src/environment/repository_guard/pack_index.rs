//! Indexes of packs, version 2 (gitformat-pack).

/// Bytes of the header: a magic number and the version.
const HEADER: usize = 8;

/// Bytes of the table that has the number of objects up to each first byte.
const FANOUT: usize = 256 * 4;

/// The ids of the objects in a pack, sorted.
#[derive(Debug)]
pub(super) struct PackIndex {
    content: Vec<u8>,
    /// Bytes of an id.
    length: usize,
    count: usize,
}

impl PackIndex {
    /// Parses an index; `None` for another format.
    pub(super) fn parse(content: Vec<u8>, length: usize) -> Option<Self> {
        if content.get(..HEADER)? != b"\xfftOc\x00\x00\x00\x02" {
            return None;
        }
        let last = content.get(HEADER + FANOUT - 4..HEADER + FANOUT)?;
        let count = u32::from_be_bytes(last.try_into().ok()?) as usize;
        let end = count.checked_mul(length)?.checked_add(HEADER + FANOUT)?;
        content.get(..end)?;
        Some(Self { content, length, count })
    }

    /// Returns all ids.
    pub(super) fn ids(&self) -> impl Iterator<Item = &[u8]> {
        let table = self.content.get(HEADER + FANOUT..).unwrap_or_default();
        table.chunks_exact(self.length.max(1)).take(self.count)
    }

    /// Returns whether the pack has an object.
    pub(super) fn contains(&self, id: &[u8]) -> bool {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            let start = HEADER + FANOUT + middle * self.length;
            match self.content.get(start..start + self.length).map(|found| found.cmp(id)) {
                Some(std::cmp::Ordering::Less) => low = middle + 1,
                Some(std::cmp::Ordering::Greater) => high = middle,
                Some(std::cmp::Ordering::Equal) => return true,
                None => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(ids: &[[u8; 2]]) -> Vec<u8> {
        let mut content = b"\xfftOc\x00\x00\x00\x02".to_vec();
        for first in 0..=u8::MAX {
            let count = ids.iter().filter(|id| id[0] <= first).count();
            content.extend(u32::try_from(count).unwrap().to_be_bytes());
        }
        ids.iter().for_each(|id| content.extend(id));
        // Checksums and offsets follow.
        content.extend([0; 16]);
        content
    }

    #[test]
    fn all_ids_of_a_pack_are_found() {
        let ids = [[0, 0], [0, 9], [7, 7], [255, 1], [255, 255]];
        for count in 0..=ids.len() {
            let parsed = PackIndex::parse(index(&ids[..count]), 2).unwrap();
            assert_eq!(parsed.ids().collect::<Vec<_>>(), ids[..count].iter().collect::<Vec<_>>());
            for (at, id) in ids.iter().enumerate() {
                assert_eq!(parsed.contains(id), at < count, "{id:?} of {count}");
            }
            assert!(!parsed.contains(&[1, 1]));
        }
    }

    #[test]
    fn other_formats_are_no_indexes() {
        let mut short = index(&[[1, 2]]);
        short.truncate(HEADER + FANOUT + 1);
        for content in [Vec::new(), vec![0; 2000], short] {
            assert!(PackIndex::parse(content, 2).is_none());
        }
    }
}
