// Text columns for a terminal. Knows nothing of processes.

export interface Column {
  readonly title: string;
  readonly align: "left" | "right";
  /** Columns are left out, highest number first, until the table fits; 0 always stays. */
  readonly optional: number;
  readonly cells: readonly string[];
  /** Colours a cell that has its final width. */
  readonly paint?: ((text: string, row: number) => string) | undefined;
}

const GAP = "  ";
/** The longest name that Linux gives a program. */
const READABLE = 15;

/** Lines of a table at most `width` wide: a head that `paintHead` colours, then the rows. */
export function formatTable(
  columns: readonly Column[],
  width: number,
  paintHead: (text: string) => string = (text) => text,
): string[] {
  const shown = [...columns];
  while (tableWidth(shown) > width) {
    const last = shown.reduce((most, column) => (column.optional > most.optional ? column : most));
    if (last.optional === 0) break;
    shown.splice(shown.indexOf(last), 1);
  }
  const rows = Math.max(0, ...columns.map((column) => column.cells.length));
  const head = formatRow(shown, width, (column) => column.title, (_, text) => text);
  const lines = [paintHead(head)];
  for (let row = 0; row < rows; row++) {
    const paint = (column: Column, text: string): string => column.paint?.(text, row) ?? text;
    lines.push(formatRow(shown, width, (column) => column.cells[row] ?? "", paint));
  }
  return lines;
}

/** At most `width` cells of a text; a cut shows. */
export function cut(text: string, width: number): string {
  if (length(text) <= width) return text;
  if (width < 1) return "";
  let kept = "";
  let left = width - 1;
  for (const character of text) {
    left -= cells(character);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

function formatRow(
  columns: readonly Column[],
  width: number,
  cell: (column: Column) => string,
  paint: (column: Column, text: string) => string,
): string {
  let line = "";
  let left = width;
  for (const [index, column] of columns.entries()) {
    const gap = index === 0 ? "" : GAP;
    const last = index === columns.length - 1;
    const text = cut(last && column.align === "left" ? cell(column) : padded(column, cell(column)), left - gap.length);
    if (text === "") break;
    line += gap + paint(column, text);
    left -= gap.length + length(text);
  }
  return line;
}

function padded(column: Column, text: string): string {
  const padding = " ".repeat(Math.max(0, columnWidth(column) - length(text)));
  return column.align === "right" ? padding + text : text + padding;
}

/** The last column may be cut at the edge, so it counts only so far that it can be read. */
function tableWidth(columns: readonly Column[]): number {
  const widths = columns.map((column, index) =>
    index === columns.length - 1 ? Math.min(columnWidth(column), READABLE) : columnWidth(column) + GAP.length,
  );
  return widths.reduce((sum, one) => sum + one, 0);
}

const widths = new WeakMap<Column, number>();

function columnWidth(column: Column): number {
  let width = widths.get(column);
  if (width === undefined) {
    width = column.cells.reduce((most, cell) => Math.max(most, length(cell)), column.title.length);
    widths.set(column, width);
  }
  return width;
}

/** In cells of a terminal. */
function length(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let sum = 0;
  for (const character of text) sum += cells(character);
  return sum;
}

/** Marks on the character before. */
const NO_CELL = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
/** Those of East Asia that are wide (Unicode's annex 11), and emoji. */
const TWO_CELLS =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

function cells(character: string): number {
  return NO_CELL.test(character) ? 0 : TWO_CELLS.test(character) ? 2 : 1;
}
