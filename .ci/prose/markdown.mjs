// Reads the prose of a Markdown page: paragraphs, headings, list items and table cells, without code.

const FENCE = /^\s*(?:```|~~~)/;
const ITEM = /^(\s*(?:>\s*)*)(?:[-*+]|\d+\.)\s+(?:\[[ x]\]\s+)?/;

/** Replaces a piece of text by as many other characters, so that every place in the text stays the same. */
const blank = (piece) => piece.replace(/[^\n]/g, ' ');

/** Hides what is not prose: inline code becomes one word in backquotes; links, addresses and markup become spaces. */
export function withoutMarkup(text) {
  return text
    .replace(/(`+)([^`]+?)\1/g, (_, ticks, code) => `${ticks}${'x'.repeat(code.length)}${ticks}`)
    .replace(/\]\([^)\s]*(?:\s+"[^"]*")?\)/g, blank)
    .replace(/!?\[|\]/g, blank)
    .replace(/<[^>\s][^>]*>/g, blank)
    .replace(/https?:\/\/[^\s)]+/g, (address) => 'x'.repeat(address.length))
    .replace(/\*\*|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)/g, blank);
}

/** Splits a table row at bars that are not in code. Returns [{text, column}]. */
function cellsOf(row) {
  const hidden = row.replace(/`[^`]*`/g, (code) => 'x'.repeat(code.length)).replaceAll('\\|', 'xx');
  const cells = [];
  for (let from = 0, at = 0; from <= row.length; from = at + 1) {
    at = hidden.indexOf('|', from);
    if (at < 0) at = row.length;
    if (row.slice(from, at).trim() !== '') cells.push(row.slice(from, at));
  }
  return cells;
}

/** Returns the blocks of a page: [{line, text, kind: 'doc', part}], `part` being text, heading or cell. */
export function proseOfMarkdown(page) {
  const blocks = [];
  let open = null;
  let fenced = false;
  let commented = false;
  const close = () => {
    if (open !== null) blocks.push({ ...open, kind: 'doc', text: withoutMarkup(open.text) });
    open = null;
  };
  for (const [index, line] of page.split('\n').entries()) {
    if (FENCE.test(line)) {
      close();
      fenced = !fenced;
      continue;
    }
    if (fenced) continue;
    if (/^\s*<!--/.test(line)) commented = true;
    if (commented) {
      close();
      if (line.includes('-->')) commented = false;
      continue;
    }
    if (line.trim() === '' || /^\s*<\/?[a-z]+[^>]*>\s*$/.test(line) || /^\s*[-=|: ]+$/.test(line)) close();
    else if (/^\s*\|/.test(line)) {
      close();
      for (const text of cellsOf(line)) {
        open = { line: index + 1, text, part: 'cell' };
        close();
      }
    } else if (/^#+ /.test(line)) {
      close();
      open = { line: index + 1, text: line.replace(/^#+ /, ''), part: 'heading' };
      close();
    } else {
      if (ITEM.test(line)) close();
      const text = line.replace(ITEM, '').replace(/^\s*(?:>\s*)+/, '');
      if (open === null) open = { line: index + 1, text, part: 'text' };
      else open.text += `\n${text}`;
    }
  }
  close();
  return blocks;
}
