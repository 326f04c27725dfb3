// Reads the prose of source files: comments of TypeScript, JavaScript and Lua, and messages in strings.
import { parse } from '@babel/parser';
import { withoutMarkup } from './markdown.mjs';

/** Comments that steer a tool. */
const DIRECTIVE = /^\s*(?:biome-ignore|@ts-|eslint|example:|#!|#region|#endregion|@__PURE__)/;
/** Four words in a row: a string that people read. */
const SENTENCE = /[A-Za-z][a-z'’]*,? [a-z'’-]+,? [a-z'’-]+,? [a-z'’-]+/;

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

/** Joins line comments on successive lines that start at the same column. */
function grouped(comments) {
  const groups = [];
  let last = null;
  for (const { type, value, loc } of comments) {
    if (type === 'CommentBlock') {
      const lines = value.split('\n').map((text, at) => [loc.start.line + at, text.replace(/^\s*\*+ ?/, '')]);
      groups.push(lines);
      last = null;
    } else if (!DIRECTIVE.test(value)) {
      if (last !== null && last.end === loc.start.line - 1 && last.column === loc.start.column) {
        last.lines.push([loc.start.line, value.replace(/^ /, '')]);
        last.end = loc.start.line;
      } else {
        last = {
          lines: [[loc.start.line, value.replace(/^ /, '')]],
          end: loc.start.line,
          column: loc.start.column,
        };
        groups.push(last.lines);
      }
    } else last = null;
  }
  return groups;
}

/** The text of a literal, a template or a sum of them; what is filled in at run time becomes a word in backquotes. */
function textOf(node) {
  if (node.type === 'StringLiteral') return node.value;
  if (node.type === 'TemplateLiteral')
    return node.quasis.map(({ value }) => value.cooked ?? value.raw).join('`x`');
  if (node.type === 'BinaryExpression' && node.operator === '+')
    return textOf(node.left) + textOf(node.right);
  return '`x`';
}

const isText = ({ type, operator }) =>
  type === 'StringLiteral' || type === 'TemplateLiteral' || (type === 'BinaryExpression' && operator === '+');
const SKIPPED = new Set([
  'ImportDeclaration',
  'ExportAllDeclaration',
  'TSLiteralType',
  'loc',
  'extra',
  'comments',
]);

/** Returns the messages of a syntax tree: [{line, text, kind: 'message', part}]. Each line of a text is a block. */
function messagesOf(program) {
  const found = [];
  const open = [program];
  while (open.length > 0) {
    const node = open.pop();
    if (SKIPPED.has(node.type)) continue;
    if (isText(node)) {
      for (const [at, whole] of textOf(node).split('\n').entries()) {
        for (const text of whole.split(/\s{2,}/)) {
          if (SENTENCE.test(text.replace(/`[^`]*`/g, 'x')))
            found.push({
              line: node.loc.start.line + at,
              text: withoutMarkup(text),
              kind: 'message',
              part: 'text',
            });
        }
      }
      if (node.type !== 'TemplateLiteral') continue;
    }
    for (const [key, value] of Object.entries(node)) {
      if (SKIPPED.has(key) || value === null || typeof value !== 'object') continue;
      for (const child of Array.isArray(value) ? value : [value]) if (child?.type) open.push(child);
    }
  }
  return found;
}

/** Returns the comments of a TypeScript or JavaScript file, and the messages too if `messages` is true. */
export function proseOfScript(text, { messages }) {
  const tree = parse(text, { sourceType: 'unambiguous', plugins: ['typescript'], attachComment: false });
  const comments = grouped(tree.comments).flatMap(blocksOf);
  return messages ? [...comments, ...messagesOf(tree.program)] : comments;
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
