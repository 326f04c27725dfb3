/**
 * Returns the rows of a table for `test.each`, written as text: one case after the other, its cells on one line with
 * `=>` between them, or below each other.
 *
 *     key: a => 3:3: unknown key "a"
 *     key: a, rate_limit: 5
 *       3:25: "rate_limit" must be a mapping, not a single value; write it as { unit: minute,
 *         requests_per_unit: 10 }
 *
 * The first cell of a case has the indentation of the first line, the others have two more spaces. A line that is
 * indented further continues the cell above. Lines that begin with `//` are comments. Escapes such as `\n` are those of
 * strings, and an inserted value is part of its cell, whatever it contains.
 */
export function cases<Row extends readonly (string | undefined)[] = string[]>(
  text: TemplateStringsArray,
  ...values: readonly unknown[]
): readonly Row[] {
  const lines = text.raw
    .map((part, i) => (i < values.length ? `${part}\0${i}\0` : part))
    .join('')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trimStart().startsWith('//'));
  const base = indentOf(lines[0] ?? '');
  const rows: string[][] = [];
  for (const line of lines) {
    const depth = indentOf(line) - base;
    const row = rows.at(-1) ?? [];
    if (depth === 0) rows.push(line.trim().split(' => '));
    else if (depth === 2) row.push(line.trim());
    else if (depth > 2) row.push(`${row.pop()} ${line.trim()}`);
    else throw new Error(`a case is indented less than the first one: ${line.trim()}`);
  }
  const inserted = (cell: string) => unescaped(cell).replaceAll(/\0(\d+)\0/g, (_, i) => `${values[i]}`);
  return rows.map((row) => row.map(inserted) as readonly (string | undefined)[] as Row);
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', 0: '\0' };

function unescaped(raw: string): string {
  return raw.replaceAll(
    /\\(?:u\{([0-9a-f]+)\}|u([0-9a-f]{4})|x([0-9a-f]{2})|(.))/gi,
    (_, long, unit, byte, one) =>
      one === undefined
        ? String.fromCodePoint(Number.parseInt(long ?? unit ?? byte, 16))
        : (ESCAPES[one] ?? one),
  );
}
