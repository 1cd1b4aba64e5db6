//! The answer of `GetTokenInformation(TokenUser)` as bytes, and the user in it: pure.

/// `sizeof(TOKEN_USER)`: a pointer to the SID, and its attributes.
const HEAD: usize = 16;
/// `SECURITY_MAX_SID_SIZE`: fifteen sub-authorities.
const LONGEST_SID: usize = 68;
/// Room for every answer.
pub const LONGEST_ANSWER: usize = HEAD + LONGEST_SID;

const REVISION: u8 = 1;
const SID_HEAD: usize = 8;
const SUB_AUTHORITY: usize = 4;
const MOST_SUB_AUTHORITIES: u8 = 15;

/// A user as the bytes of its SID: one user has one.
pub type User = smallvec::SmallVec<[u8; 32]>;

/// Parses an answer that was written to `address`; `None` for one of another form.
#[must_use]
pub fn parse_user(answer: &[u8], address: u64) -> Option<User> {
    let pointer = u64::from_le_bytes(answer.get(..8)?.try_into().ok()?);
    let start = usize::try_from(pointer.checked_sub(address)?).ok()?;
    if start < HEAD {
        return None;
    }
    let sid = answer.get(start..)?;
    let &[revision, count, ..] = sid else { return None };
    if revision != REVISION || count > MOST_SUB_AUTHORITIES {
        return None;
    }
    let length = SUB_AUTHORITY.checked_mul(usize::from(count))?.checked_add(SID_HEAD)?;
    sid.get(..length).map(User::from_slice)
}
