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

/** At most `width` characters of a text; a cut shows. */
export function cut(text: string, width: number): string {
  const characters = [...text];
  if (characters.length <= width) return text;
  return width < 1 ? "" : `${characters.slice(0, width - 1).join("")}…`;
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

function length(text: string): number {
  return [...text].length;
}
