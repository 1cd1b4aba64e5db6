// Text that came from outside and goes to a terminal or into a message.

// C0, DEL and C1: a terminal may obey them. Those that separate lines and that turn the direction of writing would
// show the rest of a line as what it is not.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Spells control characters as `\n`, `\t`, `\r` or `\u{…}`; everything else stays. */
export function escapeControls(text: string): string {
  return text.replace(CONTROL, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    if (character === "\r") return "\\r";
    return `\\u{${character.charCodeAt(0).toString(16)}}`;
  });
}
