//! What getdents64(2) returns for a directory of processes or threads. Pure.

/// Appends the decimal names of one getdents64 answer to `ids`; other names are passed over.
/// `None` if the bytes do not have the documented form.
#[must_use]
pub fn parse_ids(mut bytes: &[u8], ids: &mut Vec<u32>) -> Option<()> {
    // struct linux_dirent64: u64 d_ino, s64 d_off, u16 d_reclen, u8 d_type, char d_name[], NUL.
    const LENGTH: std::ops::Range<usize> = 16..18;
    const NAME: usize = 19;
    while !bytes.is_empty() {
        let length = usize::from(u16::from_ne_bytes(bytes.get(LENGTH)?.try_into().ok()?));
        let name = bytes.get(NAME..length)?;
        ids.extend(parse_id(name)?);
        bytes = bytes.get(length..)?;
    }
    Some(())
}

/// The number that a name which ends in NUL is, if it is a pid as procfs spells it: decimal, no leading zero.
fn parse_id(name: &[u8]) -> Option<Option<u32>> {
    let mut id = 0_u32;
    for &byte in name {
        let digit = byte.wrapping_sub(b'0');
        if byte == 0 {
            return Some((id > 0).then_some(id));
        }
        let longer = id.checked_mul(10).and_then(|tens| tens.checked_add(digit.into()));
        match longer {
            Some(longer) if digit <= 9 && longer > 0 => id = longer,
            _ => return name.contains(&0).then_some(None),
        }
    }
    None
}

/// Spells one directory entry as the kernel does, for models of it.
#[must_use]
pub fn encode_entry(name: &str) -> Vec<u8> {
    let length = (19 + name.len() + 1).next_multiple_of(8);
    let mut entry = vec![0; 16];
    entry.extend(u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes());
    entry.push(4); // DT_DIR
    entry.extend(name.as_bytes());
    entry.resize(length, 0);
    entry
}

#[cfg(test)]
mod tests {
    use super::{encode_entry, parse_ids};
    use proptest::prelude::{any, prop, proptest};

    fn ids(names: &[&str]) -> Vec<u32> {
        let bytes: Vec<u8> = names.iter().flat_map(|name| encode_entry(name)).collect();
        let mut ids = Vec::new();
        parse_ids(&bytes, &mut ids).unwrap();
        ids
    }

    #[test]
    fn only_decimal_names_are_ids() {
        let names =
            [".", "..", "1", "4194304", "self", "0", "01", "1x", "", "4294967295", "4294967296"];
        assert_eq!(ids(&names), [1, 4_194_304, 4_294_967_295]);
    }

    #[test]
    fn cut_or_lying_entries_are_refused() {
        let bytes = [encode_entry("17"), encode_entry("18")].concat();
        let first = encode_entry("17").len();
        for cut in (1..bytes.len()).filter(|&cut| cut != first) {
            assert_eq!(parse_ids(&bytes[..cut], &mut Vec::new()), None, "cut at {cut}");
        }
        for length in [0_u16, 8, 18, 19, 255, u16::MAX] {
            let mut lying = encode_entry("17");
            lying[16..18].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(parse_ids(&lying, &mut Vec::new()), None, "length {length}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_or_hang(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_ids(&bytes, &mut Vec::new());
        }
    }
}
