// Finds the texts of a source file. A string, a template or a concatenation of both is one text. A text is a list of
// parts: strings, and placeholders with the range of their expression.
import { parse } from '@babel/parser';

const TYPED = new Set(['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']);
const NO_TEXT_KEYS = new Set([
  'loc',
  'extra',
  'leadingComments',
  'trailingComments',
  'innerComments',
  'typeAnnotation',
]);

/** Tells whether a node joins texts by +. */
function isConcatenation(node) {
  return (
    node.type === 'BinaryExpression' && node.operator === '+' && (isText(node.left) || isText(node.right))
  );
}

const isText = (node) =>
  node.type === 'StringLiteral' || node.type === 'TemplateLiteral' || isConcatenation(node);

/** Returns a readable name for an expression. */
function nameOf(node) {
  if (node === undefined || node === null) return 'value';
  if (node.type === 'Identifier') return node.name;
  if (node.type === 'PrivateName') return node.id.name;
  if (node.type === 'MemberExpression' || node.type === 'OptionalMemberExpression') {
    return node.computed ? nameOf(node.object) : nameOf(node.property);
  }
  if (
    node.type === 'CallExpression' ||
    node.type === 'OptionalCallExpression' ||
    node.type === 'NewExpression'
  ) {
    const [first] = node.arguments;
    const named = first && /Identifier|MemberExpression/.test(first.type) ? nameOf(first) : 'value';
    if (named !== 'value') return named;
    const { callee } = node;
    const chained = callee.type === 'MemberExpression' && callee.object.type !== 'ThisExpression';
    return nameOf(chained && callee.object.type !== 'Identifier' ? callee.object : callee);
  }
  for (const key of ['expression', 'test', 'argument', 'left']) if (node[key]) return nameOf(node[key]);
  return 'value';
}

/** Returns the parts of a text. */
function partsOf(node, source) {
  if (node.type === 'StringLiteral') return [node.value];
  if (node.type === 'TemplateLiteral') {
    return node.quasis.flatMap(({ value }, index) => {
      const expression = node.expressions[index];
      return expression === undefined
        ? [value.cooked]
        : [value.cooked, ...placeholder(expression, source, false)];
    });
  }
  if (isConcatenation(node)) return [node.left, node.right].flatMap((side) => partsOf(side, source));
  return placeholder(node, source, true);
}

/** Returns the parts of an expression within a text. `isOperand`: an operand of +, not part of a template. */
function placeholder(node, source, isOperand) {
  if (isText(node) && !isOperand) return partsOf(node, source);
  const { parenthesized, parenStart } = node.extra ?? {};
  const end = parenthesized ? source.indexOf(')', node.end) + 1 : node.end;
  return [{ name: nameOf(node), node, start: parenthesized ? parenStart : node.start, end, isOperand }];
}

/** Joins adjacent strings, and gives different expressions different names. */
function tidied(parts, source) {
  const literal = parts.filter((part) => typeof part === 'string').join('');
  const sources = new Map();
  const joined = [];
  for (const part of parts) {
    if (typeof part === 'string') {
      if (typeof joined.at(-1) === 'string') joined[joined.length - 1] += part;
      else if (part !== '') joined.push(part);
      continue;
    }
    const expression = source.slice(part.start, part.end);
    let { name } = part;
    for (let count = 2; ; count++) {
      if ((sources.get(name) ?? expression) === expression && !literal.includes(`{${name}}`)) break;
      name = `${part.name}${count}`;
    }
    sources.set(name, expression);
    joined.push({ ...part, name });
  }
  return joined;
}

/** Formats a text as one line for `npm run messages` and `--rename`. */
export function shown(parts) {
  return parts
    .map((part) =>
      typeof part === 'string'
        ? part.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\t', '\\t')
        : `{${part.name}}`,
    )
    .join('');
}

/** Parses a line in the format of {@link shown}, and inserts `placeholders` by name. */
export function partsOfLine(line, placeholders) {
  const known = new Map(placeholders.map((one) => [one.name, one]));
  return line
    .split(/(\{[\w$]+\})/)
    .map((piece) => known.get(/^\{([\w$]+)\}$/.exec(piece)?.[1]) ?? unescaped(piece))
    .filter((part) => part !== '');
}

const ESCAPED = { n: '\n', t: '\t', '\\': '\\' };
const unescaped = (line) => line.replace(/\\([nt\\])/g, (_all, char) => ESCAPED[char]);

/**
 * Returns all texts and literal regular expressions of JavaScript or TypeScript. Texts inside a placeholder follow the
 * text around them. `use` tells how a text is used: `key`, `compared`, or the name of the called function.
 */
export function textsOfCode(path, source) {
  const texts = [];
  const regexps = [];
  const { program } = parse(source, {
    sourceType: 'module',
    errorRecovery: true,
    plugins: path.endsWith('.ts') ? ['typescript'] : [],
  });
  const add = (node, parent, use) => {
    const parts = tidied(partsOf(node, source), source);
    const { start, end } = node;
    const isOneTemplate = node.type === 'TemplateLiteral';
    const line = node.loc.start.line;
    texts.push({ path, line, start, end, parts, shown: shown(parts), parent, use, isOneTemplate });
    for (const part of parts) if (typeof part !== 'string') visit(part.node, node.type, 'value');
  };
  const visit = (node, parent, use) => {
    if (isText(node)) add(node, parent, use);
    else if (node.type === 'RegExpLiteral') regexps.push(regexpOf(path, node));
    else if (node.type.startsWith('TS') && !TYPED.has(node.type)) return;
    else if (node.type === 'ImportDeclaration') return;
    else {
      for (const [key, value] of Object.entries(node)) {
        if (NO_TEXT_KEYS.has(key) || (key === 'source' && node.type.startsWith('Export'))) continue;
        for (const child of Array.isArray(value) ? value : [value]) {
          if (typeof child?.type === 'string') visit(child, node.type, useOf(node, key, child) ?? use);
        }
      }
    }
  };
  visit(program, 'File', 'value');
  return { texts, regexps };
}

const regexpOf = (path, { start, end, loc, pattern }) => ({
  path,
  start,
  end,
  line: loc.start.line,
  pattern,
});

function useOf(node, key, child) {
  if (key === 'key' || key === 'property' || node.type === 'TaggedTemplateExpression') return 'key';
  if (key === 'test' && node.type === 'SwitchCase') return 'compared';
  if (node.type === 'BinaryExpression' && /^[=!]==?$/.test(node.operator)) return 'compared';
  if (key === 'arguments') return nameOf({ ...node.callee, arguments: [] });
  if (node.type === 'ObjectProperty' && !isText(child)) return undefined;
  return node.type === 'ObjectProperty' ? `${nameOf(node.key)}:` : undefined;
}

const INLINE = 'code|b|em|strong|a|kbd|br';
const SHOWN_ATTRIBUTES = 'aria-label|title|placeholder|alt';

/** Returns the texts of an HTML page: text between tags, and attributes that browsers show or read aloud. */
export function textsOfPage(path, source) {
  const found = [];
  const blank = source.replace(/<(style|script)[\s\S]*?<\/\1>|<!--[\s\S]*?-->/g, (all) =>
    ' '.repeat(all.length),
  );
  for (const match of blank.matchAll(new RegExp(`(?<=>)(?:[^<>]|</?(?:${INLINE})(?: [^>]*)?>)+`, 'g'))) {
    found.push([match.index, match[0]]);
  }
  for (const match of blank.matchAll(new RegExp(`(?<= (?:${SHOWN_ATTRIBUTES})=")[^"]+`, 'g'))) {
    found.push([match.index, match[0]]);
  }
  return plain(path, source, found);
}

/** Returns the summaries and descriptions of a YAML file, or the texts that a shell script prints. */
export function textsOfLines(path, source) {
  const line = path.endsWith('.sh')
    ? /(?<=\b(?:echo|say|die|fail|printf) +(["']))(?:(?!\1).)+/g
    : /(?<=^ *(?:- )?(?:summary|description): *(["']?))\S.*?(?=\1$)/gm;
  return plain(
    path,
    source,
    [...source.matchAll(line)].map((match) => [match.index, match[0]]),
  );
}

function plain(path, source, found) {
  return found
    .map(([index, text]) => [index + text.search(/\S|$/), text.trim()])
    .filter(([, text]) => text !== '')
    .map(([start, text]) => {
      const line = source.slice(0, start).split('\n').length;
      const parts = [text];
      return { path, line, start, end: start + text.length, parts, shown: shown(parts), use: 'plain' };
    })
    .sort((a, b) => a.start - b.start);
}
