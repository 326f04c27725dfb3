// Writes a text as source code: a string, a template, or a concatenation of several lines.

const WIDE = 24;

/** Quotes a string like the formatter, with the quotes that need fewer escapes. */
function quoted(text) {
  const escaped = escapedControl(text);
  const quote = text.split("'").length > text.split('"').length ? '"' : "'";
  return quote + escaped.replaceAll(quote, `\\${quote}`) + quote;
}

/** Escapes control characters. With `keepsLines`, line breaks are not escaped. */
function escapedControl(text, keepsLines = false) {
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('\t', '\\t')
    .replace(/[\p{Cc}\u2028\u2029]/gu, (char) => {
      if (char === '\n') return keepsLines ? char : '\\n';
      return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
    });
}

/** Writes one literal; `render` returns the source of a placeholder. */
function literal(parts, render, keepsLines) {
  if (parts.every((part) => typeof part === 'string') && !keepsLines) return quoted(parts.join(''));
  const inner = parts.map((part) =>
    typeof part === 'string'
      ? escapedControl(part, keepsLines).replaceAll('`', '\\`').replaceAll('${', '\\${')
      : `\${${render(part)}}`,
  );
  return `\`${inner.join('')}\``;
}

/** Splits parts into words, each with its trailing space; placeholders are never split. */
function wordsOf(parts) {
  const words = [[]];
  for (const part of parts) {
    if (typeof part !== 'string') {
      words.at(-1).push(part);
      continue;
    }
    for (const piece of part.match(/\S+\s*|\s+/g) ?? []) {
      words.at(-1).push(piece);
      if (/\s$/.test(piece)) words.push([]);
    }
  }
  return words.filter((word) => word.length > 0);
}

const joined = (parts) =>
  parts.reduce((all, part) => {
    if (typeof part === 'string' && typeof all.at(-1) === 'string') all.push(all.pop() + part);
    else all.push(part);
    return all;
  }, []);

/**
 * Returns the source of a text. Long operands of + remain operands. `width`: maximum number of columns of one line, for
 * texts that have to be broken.
 */
export function writtenText(parts, render, { width = Number.POSITIVE_INFINITY, keepsLines = false } = {}) {
  const lines = [[]];
  const isWide = (part) =>
    typeof part !== 'string' && part.isOperand && (render(part).length > WIDE || /['`]/.test(render(part)));
  for (const part of joined(parts)) {
    if (isWide(part)) lines.push([part], []);
    else lines.at(-1).push(part);
  }
  const chunks = lines.filter((line) => line.length > 0);
  const broken = chunks.flatMap((line) => {
    if (line.length === 1 && isWide(line[0])) return [render(line[0])];
    if (keepsLines) return [literal(line, render, keepsLines)];
    const rows = [[]];
    for (const word of wordsOf(line)) {
      const longer = joined([...rows.at(-1), ...word]);
      if (rows.at(-1).length > 0 && literal(longer, render, false).length > width) rows.push(word);
      else rows[rows.length - 1] = longer;
    }
    return rows.map((row) => literal(joined(row), render, false));
  });
  if (broken.length > 1 && isWide(chunks[0][0]) && isWide(chunks[1]?.[0])) broken.unshift("''");
  return broken.join(' + ');
}

const NEEDS_PARENTHESES = new Set([
  'MemberExpression',
  'OptionalMemberExpression',
  'TSAsExpression',
  'TSSatisfiesExpression',
  'UnaryExpression',
  'BinaryExpression',
]);

/**
 * Returns `source` with new texts. Each edit has {text, parts}, and `width` for {@link writtenText}. An edit may be
 * inside a placeholder of another edit.
 */
export function withEdits(source, edits) {
  const inner = (start, end, except) => {
    let result = '';
    let at = start;
    for (const edit of edits) {
      const { text } = edit;
      if (edit === except || text.start < at || text.end > end) continue;
      result += source.slice(at, text.start) + replacement(edit);
      at = text.end;
    }
    return result + source.slice(at, end);
  };
  const replacement = (edit) => {
    const { text, parts } = edit;
    if (edit.plain !== undefined) return edit.plain;
    const keepsLines =
      /\n/.test(source.slice(text.start, text.end)) &&
      text.isOneTemplate &&
      parts.some((part) => typeof part === 'string' && part.includes('\n'));
    const written = writtenText(parts, (part) => inner(part.start, part.end, edit), {
      width: edit.width,
      keepsLines,
    });
    return / \+ /.test(written) && NEEDS_PARENTHESES.has(text.parent) ? `(${written})` : written;
  };
  edits.sort((a, b) => a.text.start - b.text.start || b.text.end - a.text.end);
  return inner(0, source.length);
}
