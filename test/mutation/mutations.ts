import { parse } from '@babel/parser';

/** A change in one place of a source file. */
export interface Mutation {
  /** Path of the source file from the root of the repository. */
  readonly path: string;
  readonly line: number;
  /** Description of the change, such as `< to <=`. */
  readonly change: string;
  /** The source line without its indentation. */
  readonly text: string;
  /** Number of this mutation among all mutations with the same change and text, from 1. */
  readonly occurrence: number;
  /** The characters from `start` to `end` become `replacement`. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly loc: { readonly start: { readonly line: number } };
  readonly [key: string]: unknown;
}

type Change = Pick<Mutation, 'change' | 'start' | 'end' | 'replacement'>;

const COMPARISONS: Readonly<Record<string, string>> = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' };
const ARITHMETIC: Readonly<Record<string, string>> = { '+': '-', '-': '+', '+=': '-=', '-=': '+=' };
const LOGICAL_OPERATORS: Readonly<Record<string, string>> = { '??': '&&', '&&': '||', '||': '&&' };
const CONDITIONAL_TYPES = ['IfStatement', 'ConditionalExpression', 'WhileStatement', 'DoWhileStatement'];
/** Type syntax that contains an expression. All other type syntax is not mutated. */
const TYPED_EXPRESSIONS = ['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression'];

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Node>).type === 'string';
}

/** Returns whether `node` is a string or a concatenation of strings, as far as the syntax shows. */
function isText(node: Node): boolean {
  if (node.type === 'BinaryExpression') return isText(node['left'] as Node) || isText(node['right'] as Node);
  return node.type === 'StringLiteral' || node.type === 'TemplateLiteral';
}

/** Replaces the operator between the operands of `node`. */
function operatorChange(source: string, node: Node, to: string): Change {
  const operator = node['operator'] as string;
  const after = (node['left'] as Node).end;
  const start = source.indexOf(operator, after);
  return { change: `${operator} to ${to}`, start, end: start + operator.length, replacement: to };
}

/** Replaces a logical operator. Both operands get parentheses, because ?? and && cannot be mixed without them. */
function logicalChange(source: string, node: Node, to: string): Change {
  const [left, right] = [node['left'] as Node, node['right'] as Node].map(({ start, end }) =>
    source.slice(start, end),
  );
  const replacement = `((${left}) ${to} (${right}))`;
  return { change: `${node['operator']} to ${to}`, start: node.start, end: node.end, replacement };
}

/** Adds 1 to an even constant, and subtracts 1 from an odd constant. This exchanges 0 and 1. */
function constantChange(source: string, { start, end, type, value }: Node): Change {
  const isBig = type === 'BigIntLiteral';
  const isOdd = isBig ? BigInt(value as string) % 2n === 1n : (value as number) % 2 === 1;
  const step = isOdd ? -1 : 1;
  const changed = isBig ? `${BigInt(value as string) + BigInt(step)}n` : `${(value as number) + step}`;
  return { change: `${source.slice(start, end)} to ${changed}`, start, end, replacement: changed };
}

/** Returns whether the statement is a call, awaited or not, except a call of super. */
function isCall(node: Node): boolean {
  const expression = node['expression'] as Node;
  const call = expression.type === 'AwaitExpression' ? (expression['argument'] as Node) : expression;
  return /^(Optional)?CallExpression$/.test(call.type) && (call['callee'] as Node).type !== 'Super';
}

function changesOf(source: string, node: Node): readonly Change[] {
  const { type, start, end } = node;
  const operator = node['operator'] as string;
  if (type === 'BinaryExpression' || type === 'AssignmentExpression') {
    const to =
      COMPARISONS[operator] ??
      (isText(node['right'] as Node) || isText(node) ? undefined : ARITHMETIC[operator]);
    return to === undefined ? [] : [operatorChange(source, node, to)];
  }
  if (type === 'LogicalExpression') {
    const to = LOGICAL_OPERATORS[operator];
    return to === undefined ? [] : [logicalChange(source, node, to)];
  }
  if (CONDITIONAL_TYPES.includes(type)) {
    const { start: from, end: until } = node['test'] as Node;
    const replacement = `!(${source.slice(from, until)})`;
    return [{ change: 'negate the condition', start: from, end: until, replacement }];
  }
  if (type === 'ExpressionStatement' && isCall(node))
    return [{ change: 'drop the call', start, end, replacement: ';' }];
  if (type === 'BooleanLiteral') {
    const to = String(node['value'] !== true);
    return [{ change: `${node['value']} to ${to}`, start, end, replacement: to }];
  }
  if (type === 'NumericLiteral' || type === 'BigIntLiteral') return [constantChange(source, node)];
  return [];
}

function* walk(node: Node): Generator<Node> {
  if (node.type.startsWith('TS')) {
    if (TYPED_EXPRESSIONS.includes(node.type)) yield* walk(node['expression'] as Node);
    return;
  }
  if (node.type === 'ImportDeclaration') return;
  yield node;
  for (const [key, value] of Object.entries(node)) {
    if (key === 'key' && node['computed'] !== true) continue;
    for (const one of Array.isArray(value) ? value : [value]) if (isNode(one)) yield* walk(one);
  }
}

/** Returns a name of the mutation that does not change when its file moves. */
export function identityOf({
  change,
  text,
  occurrence,
}: Pick<Mutation, 'change' | 'text' | 'occurrence'>): string {
  return `${change} | ${text} | ${occurrence}`;
}

/** Returns all mutations of source files, in the order of their paths. `texts` are the files' contents by path. */
export function mutationsOf(texts: ReadonlyMap<string, string>): Mutation[] {
  const seen = new Map<string, number>();
  const all: Mutation[] = [];
  for (const [path, source] of [...texts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const lines = source.split('\n');
    const { program } = parse(source, { sourceType: 'module', plugins: ['typescript'] });
    for (const node of walk(program as unknown as Node)) {
      for (const change of changesOf(source, node)) {
        const line = source.slice(0, change.start).split('\n').length;
        const text = (lines[line - 1] as string).trim();
        const key = `${change.change} | ${text}`;
        const occurrence = (seen.get(key) ?? 0) + 1;
        seen.set(key, occurrence);
        all.push({ path, line, text, occurrence, ...change });
      }
    }
  }
  return all;
}

/** Returns the source after the mutation. */
export function mutate(source: string, { start, end, replacement }: Mutation): string {
  return source.slice(0, start) + replacement + source.slice(end);
}
