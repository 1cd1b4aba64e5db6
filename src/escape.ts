// Text that came from outside and goes to a terminal or into a message.

// C0, DEL and C1: a terminal may obey them.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;

/** Spells control characters as `\n`, `\t`, `\r` or `\u{…}`; everything else stays. */
export function escapeControls(text: string): string {
  return text.replace(CONTROL, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    if (character === "\r") return "\\r";
    return `\\u{${character.charCodeAt(0).toString(16)}}`;
  });
}
