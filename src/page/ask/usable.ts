/*
 * Checks that answers have the members that the page reads. A server of another version may answer differently, and
 * the views rely on these members.
 */

/** The type of a member: a text, number or flag, a list, or an object with members of its own. */
type Shape = 'string' | 'number' | 'boolean' | 'list' | { readonly [name: string]: Shape };

function matches(shape: Shape, value: unknown): boolean {
  if (shape === 'list') return Array.isArray(value);
  if (typeof shape === 'string') return typeof value === shape;
  if (typeof value !== 'object' || value === null) return false;
  const members = value as Readonly<Record<string, unknown>>;
  return Object.entries(shape).every(([name, member]) => matches(member, members[name]));
}

/** Shapes by the path of a question, or by the type of a stream event. */
const SHAPES: Readonly<Record<string, Shape>> = {
  caller: { by: 'string', right: 'string' },
  overview: {
    version: 'string',
    now: 'number',
    uptime_seconds: 'number',
    health: { status: 'string' },
    store: { name: 'string', up: 'boolean', nodes: 'list' },
    workers: 'list',
    policy: {
      version: 'string',
      domains: 'list',
      reload: { result: 'string', at: 'number' },
      errors: 'list',
    },
    keeps: { top: 'number', history: 'number' },
  },
  point: { ends: 'number', ok: 'number', denied: 'number', would: 'number', errors: 'number' },
  buckets: {
    meets: 'string',
    store: 'string',
    domain: 'string',
    entries: 'list',
    notes: 'list',
    buckets: 'list',
  },
  'rlconfig?format=json': { version: 'string', domains: 'list' },
  history: { step: 'number', ends: 'number' },
  top: { by: 'string', of: 'string', covers: 'number', sampled: 'number', error: {}, top: 'list' },
};

/** Returns whether the page can use the answer to a question at `path`, or an event with this name. */
export function isUsable(path: string, answer: unknown): boolean {
  const shape = SHAPES[path];
  return shape === undefined || matches(shape, answer);
}
