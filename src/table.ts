// Text columns for a terminal. Knows nothing of processes.

export interface Column {
  readonly title: string;
  readonly align: "left" | "right";
  /** Columns are left out, highest number first, until the table fits; 0 always stays. */
  readonly optional: number;
  readonly cells: readonly string[];
}

/** Lines of a table at most `width` wide, where the columns that always stay allow it. */
export function formatTable(columns: readonly Column[], width: number): string[] {
  const shown = [...columns];
  while (tableWidth(shown) > width) {
    const last = shown.reduce((most, column) => (column.optional > most.optional ? column : most));
    if (last.optional === 0) break;
    shown.splice(shown.indexOf(last), 1);
  }
  const rows = Math.max(0, ...columns.map((column) => column.cells.length));
  const lines = [formatRow(shown, (column) => column.title)];
  for (let row = 0; row < rows; row++) lines.push(formatRow(shown, (column) => column.cells[row] ?? ""));
  return lines.map((line) => cut(line, width));
}

function formatRow(columns: readonly Column[], cell: (column: Column) => string): string {
  const cells = columns.map((column) => {
    const text = cell(column);
    const padding = " ".repeat(Math.max(0, columnWidth(column) - length(text)));
    return column.align === "right" ? padding + text : text + padding;
  });
  return cells.join("  ").trimEnd();
}

/** The last column may be cut at the edge, so it counts with its title only. */
function tableWidth(columns: readonly Column[]): number {
  const widths = columns.map((column, index) =>
    index === columns.length - 1 ? column.title.length : columnWidth(column) + 2,
  );
  return widths.reduce((sum, one) => sum + one, 0);
}

function columnWidth(column: Column): number {
  return column.cells.reduce((most, cell) => Math.max(most, length(cell)), column.title.length);
}

function length(text: string): number {
  return [...text].length;
}

function cut(line: string, width: number): string {
  const characters = [...line];
  if (characters.length <= width) return line;
  return width < 1 ? "" : `${characters.slice(0, width - 1).join("")}…`;
}
