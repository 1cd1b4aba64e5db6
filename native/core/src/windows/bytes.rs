//! Numbers and texts of Windows in bytes: pure. Both architectures are little-endian.

/// The number at an offset; `None` behind the end.
#[must_use]
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let end = offset.checked_add(2)?;
    bytes.get(offset..end)?.try_into().ok().map(u16::from_le_bytes)
}

/// The same of 32 bits.
#[must_use]
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let end = offset.checked_add(4)?;
    bytes.get(offset..end)?.try_into().ok().map(u32::from_le_bytes)
}

/// The same of 64 bits.
#[must_use]
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let end = offset.checked_add(8)?;
    bytes.get(offset..end)?.try_into().ok().map(u64::from_le_bytes)
}

/// The units of a text; half of one at the end is none.
#[must_use]
pub fn units(bytes: &[u8]) -> Vec<u16> {
    let (units, _) = bytes.as_chunks::<2>();
    units.iter().copied().map(u16::from_le_bytes).collect()
}

/// UTF-16 as UTF-8, as a `TextDecoder` would: unpaired surrogates are U+FFFD.
#[must_use]
pub fn decode(units: &[u16]) -> Vec<u8> {
    let characters = char::decode_utf16(units.iter().copied());
    let text: String = characters.map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    text.into_bytes()
}
