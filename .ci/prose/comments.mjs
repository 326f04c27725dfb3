// Reads the comments of TypeScript, JavaScript and Lua.
import { scan } from '../scan.mjs';
import { withoutMarkup } from './markdown.mjs';

/** Comments that steer a tool. */
const DIRECTIVE = /^\s*(?:biome-ignore|@ts-|eslint|example:|#!|#region|#endregion|@__PURE__)/;

/** Hides what a comment quotes: links to code, and passages in quotation marks, which others wrote. */
function withoutQuotes(text) {
  return text
    .replace(/\{@link\s+([^}]+)\}/g, (link) => `\`${'x'.repeat(link.length - 2)}\``)
    .replace(/"[^"]*\s[^"]*\s[^"]*\s[^"]*"/g, (quote) => quote.replace(/[^\n]/g, 'x'));
}

/** Splits lines into blocks at empty lines, list items, tags and drawings. `lines` are [line number, text]. */
function blocksOf(lines) {
  const blocks = [];
  let open = null;
  let fenced = false;
  const close = () => {
    if (open !== null)
      blocks.push({ ...open, kind: 'comment', part: 'text', text: withoutMarkup(withoutQuotes(open.text)) });
    open = null;
  };
  for (const [line, text] of lines) {
    if (/^\s*```/.test(text)) fenced = !fenced;
    if (fenced || text.trim() === '' || /^ {4,}\S/.test(text) || /^\s*[`│├└|+-]{2,}/.test(text)) {
      close();
      continue;
    }
    if (/^\s*(?:[-*]|\d+[.)])\s|^\s*@[a-z]+/.test(text)) close();
    const words = text
      .replace(/^\s*(?:[-*]|\d+[.)])\s+|^\s*@(?:param|returns?|throws)\s+(?:\{[^}]*\}\s+)?/, '')
      .trim();
    if (open === null) open = { line, text: words, first: blocks.length === 0 };
    else open.text += `\n${words}`;
  }
  close();
  return blocks;
}

/** Joins line comments on successive lines that start at the same column. Returns lists of [line number, text]. */
function grouped(comments) {
  const groups = [];
  let last = null;
  for (const { line, column, text } of comments) {
    if (text.startsWith('/*')) {
      const lines = text.slice(2, -2).split('\n');
      groups.push(lines.map((one, at) => [line + at, one.replace(/^\s*\*+ ?/, '')]));
      last = null;
    } else if (DIRECTIVE.test(text.slice(2))) last = null;
    else {
      const words = text.slice(2).replace(/^ /, '');
      if (last?.line === line - 1 && last.column === column) last.lines.push([line, words]);
      else {
        last = { lines: [[line, words]], column };
        groups.push(last.lines);
      }
      last.line = line;
    }
  }
  return groups;
}

/** Returns the comments of a TypeScript or JavaScript file. */
export function proseOfScript(text) {
  return grouped(scan(text).comments).flatMap(blocksOf);
}

/** Returns the comments of a Lua file. */
export function proseOfLua(text) {
  const groups = [];
  let last = null;
  for (const [index, line] of text.split('\n').entries()) {
    const whole = /^\s*--+ ?(.*)$/.exec(line)?.[1];
    const comment = whole ?? /\s--+ (.*)$/.exec(line)?.[1];
    if (last !== null && whole !== undefined) last.push([index + 1, whole]);
    else {
      last = whole === undefined ? null : [[index + 1, whole]];
      if (comment !== undefined) groups.push(last ?? [[index + 1, comment]]);
    }
  }
  return groups.flatMap(blocksOf);
}
