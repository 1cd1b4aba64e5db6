//! A command line as arguments: the rules of Microsoft's C run time ("Parsing C command-line arguments"),
//! which the programs that it starts follow. Windows itself knows the line alone.

const QUOTE: u16 = 0x22;
const BACKSLASH: u16 = 0x5c;

/// The arguments of a command line, which ends where a NUL stands. An empty line has none.
#[must_use]
pub fn split(line: &[u16]) -> Vec<Vec<u16>> {
    let line = line.split(|&unit| unit == 0).next().unwrap_or_default();
    if line.is_empty() {
        return Vec::new();
    }
    let (program, mut rest) = split_program(line);
    let mut arguments = vec![program];
    loop {
        let blanks = rest.iter().take_while(|&&unit| is_blank(unit)).count();
        rest = rest.get(blanks..).unwrap_or_default();
        if rest.is_empty() {
            return arguments;
        }
        let (argument, behind) = split_argument(rest);
        arguments.push(argument);
        rest = behind;
    }
}

const fn is_blank(unit: u16) -> bool {
    matches!(unit, 0x20 | 0x09)
}

/// The name of the program is a path: quotes keep blanks together, and backslashes are themselves.
fn split_program(line: &[u16]) -> (Vec<u16>, &[u16]) {
    let mut program = Vec::new();
    let mut quoted = false;
    for (at, &unit) in line.iter().enumerate() {
        match unit {
            QUOTE => quoted = !quoted,
            _ if is_blank(unit) && !quoted => return (program, line.get(at..).unwrap_or_default()),
            _ => program.push(unit),
        }
    }
    (program, &[])
}

/// Backslashes count only before a quote: each pair is one, and an odd one makes the quote a character.
/// Inside quotes two quotes are one character. A quote that is never closed ends with the line.
fn split_argument(line: &[u16]) -> (Vec<u16>, &[u16]) {
    let mut argument = Vec::new();
    let mut quoted = false;
    let mut rest = line;
    loop {
        let slashes = rest.iter().take_while(|&&unit| unit == BACKSLASH).count();
        let behind = rest.get(slashes..).unwrap_or_default();
        let (&unit, next) = match behind.split_first() {
            Some(split) if quoted || !is_blank(*split.0) => split,
            _ => {
                argument.extend(std::iter::repeat_n(BACKSLASH, slashes));
                return (argument, behind);
            }
        };
        rest = next;
        let shown = if unit == QUOTE { slashes / 2 } else { slashes };
        argument.extend(std::iter::repeat_n(BACKSLASH, shown));
        if unit != QUOTE || slashes % 2 == 1 {
            argument.push(unit);
        } else if quoted && next.first() == Some(&QUOTE) {
            argument.push(QUOTE);
            rest = next.get(1..).unwrap_or_default();
        } else {
            quoted = !quoted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BACKSLASH, QUOTE, is_blank, split};
    use proptest::prelude::{prop, proptest};

    fn texts(line: &str) -> Vec<String> {
        let line: Vec<u16> = line.encode_utf16().collect();
        split(&line).iter().map(|word| String::from_utf16(word).unwrap()).collect()
    }

    /// The table of the documentation, behind the name of a program.
    #[test]
    fn what_the_documentation_shows() {
        for (line, words) in [
            (r#""a b c" d e"#, [r"a b c", "d", "e"]),
            (r#""ab\"c" "\\" d"#, [r#"ab"c"#, r"\", "d"]),
            (r#"a\\\b d"e f"g h"#, [r"a\\\b", "de fg", "h"]),
            (r#"a\\\"b c d"#, [r#"a\"b"#, "c", "d"]),
            (r#"a\\\\"b c" d e"#, [r"a\\b c", "d", "e"]),
        ] {
            assert_eq!(texts(&format!("p {line}"))[1..], words, "{line}");
        }
        assert_eq!(texts(r#"p a"b"" c d"#)[1..], [r#"ab" c d"#]);
    }

    #[test]
    fn empty_arguments_blanks_and_open_quotes() {
        assert_eq!(texts(r#"p "" a """#), ["p", "", "a", ""]);
        assert_eq!(texts("p \t a\t\tb  "), ["p", "a", "b"]);
        assert_eq!(texts(r#"p "a b"#), ["p", "a b"]);
        assert_eq!(texts(r#"p ""#), ["p", ""]);
        assert_eq!(texts(r"p a\ b\"), ["p", r"a\", r"b\"]);
        assert_eq!(texts("p a^b \n c"), ["p", "a^b", "\n", "c"]);
        assert_eq!(texts(r#"p """ a"#), ["p", "\" a"]);
        assert_eq!(texts(r#"p """" a"#), ["p", "\"", "a"]);
        assert_eq!(texts(r#"p a"" b"#), ["p", "a", "b"]);
    }

    #[test]
    fn the_name_of_the_program_knows_no_backslashes() {
        assert_eq!(texts(r#""C:\a b\" c"#), [r"C:\a b\", "c"]);
        assert_eq!(texts(r#"C:\"a b"\p.exe c"#), [r"C:\a b\p.exe", "c"]);
        assert_eq!(texts(r#""a""b c" d"#), ["ab c", "d"]);
        assert_eq!(texts(" a"), ["", "a"]);
        assert_eq!(texts(r#""""#), [""]);
        assert_eq!(texts(r#""a b"#), ["a b"]);
    }

    #[test]
    fn a_line_ends_at_a_nul_and_an_empty_one_has_no_argument() {
        assert!(split(&[]).is_empty());
        assert!(split(&[0, 0x61]).is_empty());
        assert_eq!(split(&[0x61, 0x20, 0xd800, 0, 0x62]), [vec![0x61], vec![0xd800]]);
    }

    /// The rule by which programs make lines: each backslash before a quote or the end twice.
    fn quote(argument: &[u16]) -> Vec<u16> {
        let mut line = vec![QUOTE];
        let mut slashes = 0;
        for &unit in argument {
            if unit == QUOTE {
                line.extend(std::iter::repeat_n(BACKSLASH, slashes + 1));
            }
            slashes = if unit == BACKSLASH { slashes + 1 } else { 0 };
            line.push(unit);
        }
        line.extend(std::iter::repeat_n(BACKSLASH, slashes));
        line.push(QUOTE);
        line
    }

    proptest! {
        #[test]
        fn quoted_arguments_come_back(
            choices in prop::collection::vec(prop::collection::vec(0..6_usize, 0..8), 0..5),
        ) {
            let units = [0x61, 0x20, 0x09, QUOTE, BACKSLASH, 0xdc00];
            let words: Vec<Vec<u16>> =
                choices.iter().map(|word| word.iter().map(|&at| units[at]).collect()).collect();
            let mut line = vec![0x70];
            for word in &words {
                line.push(0x20);
                line.extend(quote(word));
            }
            assert_eq!(split(&line)[1..], words);
        }

        #[test]
        fn nothing_is_invented(line in prop::collection::vec(0..6_u16, 0..40)) {
            let units = [0x61, 0x20, 0x09, QUOTE, BACKSLASH, 0x62];
            let line: Vec<u16> = line.iter().map(|&at| units[usize::from(at)]).collect();
            let plain = |unit: &&u16| !is_blank(**unit) && ![QUOTE, BACKSLASH].contains(unit);
            let words = split(&line).concat();
            assert!(words.iter().filter(plain).eq(line.iter().filter(plain)));
            assert!(words.len() <= line.len());
        }
    }
}
