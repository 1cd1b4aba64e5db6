//! Where a process keeps what it was started with, and the form of that: pure. The process environment
//! block (PEB) points at the parameters (`RTL_USER_PROCESS_PARAMETERS`), and these at texts. All of it is
//! the process's own memory, so nothing in it is trusted. The places are the same from Windows 7 to 11.

use super::bytes::{decode, u16_at, u32_at, u64_at, units};
use crate::command::Keys;

/// The longest text that a `UNICODE_STRING` can have.
pub const LONGEST_TEXT: usize = 65_534;
/// `sizeof(UNICODE_STRING)`.
const HEAD: usize = 16;
/// Room for every answer of `NtQueryInformationProcess` that is a text.
pub const TEXT_ROOM: usize = HEAD + LONGEST_TEXT + 2;

/// The places in one kind of process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Of a pointer.
    width: usize,
    /// `PEB.ProcessParameters`.
    parameters: u64,
    /// `CurrentDirectory.DosPath`, `CommandLine`, `Environment` and `EnvironmentSize`.
    directory: usize,
    line: usize,
    environment: usize,
    environment_size: usize,
}

/// Of a 64-bit process.
pub const NATIVE: Layout = Layout {
    width: 8,
    parameters: 0x20,
    directory: 0x38,
    line: 0x70,
    environment: 0x80,
    environment_size: 0x3f0,
};

/// Of a 32-bit process, which has a PEB of its own beside the 64-bit one.
pub const WOW64: Layout = Layout {
    width: 4,
    parameters: 0x10,
    directory: 0x24,
    line: 0x40,
    environment: 0x48,
    environment_size: 0x290,
};

/// Bytes in the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where.
    pub address: u64,
    /// How many.
    pub length: usize,
}

/// What the parameters point at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The working directory.
    pub directory: Place,
    /// The command line.
    pub line: Place,
    /// The environment.
    pub environment: Place,
}

impl Layout {
    /// Where the PEB keeps the pointer at the parameters.
    #[must_use]
    pub fn pointer(&self, peb: u64) -> Option<Place> {
        Some(Place { address: peb.checked_add(self.parameters)?, length: self.width })
    }

    /// The parameters, as far as they are read; `None` where the process has none yet.
    #[must_use]
    pub fn parameters(&self, pointer: &[u8]) -> Option<Place> {
        let address = self.address_at(pointer, 0)?;
        let length = self.environment_size.checked_add(self.width)?;
        (address != 0).then_some(Place { address, length })
    }

    /// `None` for what is cut, and for texts with half a unit.
    #[must_use]
    pub fn parse(&self, parameters: &[u8]) -> Option<Parameters> {
        let environment = Place {
            address: self.address_at(parameters, self.environment)?,
            length: usize::try_from(self.address_at(parameters, self.environment_size)?).ok()?,
        };
        Some(Parameters {
            directory: self.text_at(parameters, self.directory)?,
            line: self.text_at(parameters, self.line)?,
            environment,
        })
    }

    /// A `UNICODE_STRING`.
    fn text_at(&self, bytes: &[u8], offset: usize) -> Option<Place> {
        let length = usize::from(u16_at(bytes, offset)?);
        let address = self.address_at(bytes, offset.checked_add(self.width)?)?;
        (length % 2 == 0).then_some(Place { address, length })
    }

    fn address_at(&self, bytes: &[u8], offset: usize) -> Option<u64> {
        if self.width == 8 { u64_at(bytes, offset) } else { u32_at(bytes, offset).map(u64::from) }
    }
}

/// The text of an answer that was written to `address`: a `UNICODE_STRING`, and behind it what it points
/// at. `None` for one of another form.
#[must_use]
pub fn parse_text(answer: &[u8], address: u64) -> Option<Vec<u16>> {
    let text = NATIVE.text_at(answer, 0)?;
    if text.length == 0 {
        return Some(Vec::new());
    }
    let start = usize::try_from(text.address.checked_sub(address)?).ok()?;
    if start < HEAD {
        return None;
    }
    let end = start.checked_add(text.length)?;
    answer.get(start..end).map(units)
}

/// A working directory as `GetCurrentDirectory` says it: a backslash ends a drive alone. `None` for what
/// is no path.
#[must_use]
pub fn parse_directory(text: &[u16]) -> Option<Vec<u8>> {
    const BACKSLASH: u16 = 0x5c;
    const COLON: u16 = 0x3a;
    let shown = match text {
        [.., COLON, BACKSLASH] => text,
        [short @ .., BACKSLASH] => short,
        _ => text,
    };
    (!shown.is_empty() && !shown.contains(&0)).then(|| decode(shown))
}

/// The values of `keys` in an environment, by the place of the key; the first of several counts. Names
/// are compared without regard to case. `None` if it has no end: strings that each end in NUL, and an
/// empty one.
#[must_use]
pub fn parse_environment(block: &[u8], keys: &Keys) -> Option<Vec<(usize, Vec<u8>)>> {
    const EQUALS: u16 = 0x3d;
    let block = units(block);
    let names: Vec<Vec<u16>> = keys.iter().map(|key| folded(&utf16(key))).collect();
    let mut values: Vec<Option<Vec<u8>>> = vec![None; keys.len()];
    let mut rest = block.as_slice();
    loop {
        let end = rest.iter().position(|&unit| unit == 0)?;
        let (string, behind) = rest.split_at(end);
        rest = behind.get(1..)?;
        let Some((_, tail)) = string.split_first() else { break };
        // A name can begin with an equals sign: the directories of drives do.
        let Some(equals) = tail.iter().position(|&unit| unit == EQUALS) else { continue };
        let (name, value) = string.split_at_checked(equals.checked_add(1)?)?;
        let name = folded(name);
        for (known, wanted) in values.iter_mut().zip(&names) {
            if known.is_none() && *wanted == name {
                *known = Some(decode(value.get(1..)?));
            }
        }
    }
    let known = values.into_iter().enumerate();
    Some(known.filter_map(|(place, value)| Some((place, value?))).collect())
}

fn utf16(key: &[u8]) -> Vec<u16> {
    String::from_utf8_lossy(key).encode_utf16().collect()
}

/// Each unit in upper case, where that is one other unit of the same kind: ASCII or not.
fn folded(name: &[u16]) -> Vec<u16> {
    name.iter().map(|&unit| upper(unit).unwrap_or(unit)).collect()
}

fn upper(unit: u16) -> Option<u16> {
    let character = char::from_u32(unit.into())?;
    let mut all = character.to_uppercase();
    let single = all.next().filter(|_| all.next().is_none())?;
    let single = u16::try_from(u32::from(single)).ok()?;
    ((single < 0x80) == (unit < 0x80)).then_some(single)
}
