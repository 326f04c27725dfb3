import type { TopQuestion } from '../buckets/messages.js';

/** A validated question with its defaults. */
export interface CheckedTopQuestion extends TopQuestion {
  readonly by: 'denied' | 'used';
  readonly of: 'minute' | 'hour';
  readonly limit: number;
}

/** Maximum number of buckets in an answer. */
export const MAX_TOP_LIMIT = 1000;
const DEFAULT_LIMIT = 20;
const FIELDS: ReadonlySet<string> = new Set([
  'by',
  'of',
  'domain',
  'rule',
  'limit',
] satisfies (keyof TopQuestion)[]);

/** Validates a question. Returns a sentence if it is invalid. */
export function readTopQuestion(asked: unknown): CheckedTopQuestion | string {
  if (typeof asked !== 'object' || asked === null || Array.isArray(asked)) {
    return 'the body must be a JSON object, such as {"by":"denied","of":"minute"}';
  }
  const unknown = Object.keys(asked).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) {
    const shown = JSON.stringify(unknown.slice(0, 100));
    return `${shown} is not a valid field; the fields are ${[...FIELDS].join(', ')}`;
  }
  const {
    by = 'denied',
    of = 'minute',
    domain,
    rule,
    limit = DEFAULT_LIMIT,
  } = asked as Record<string, unknown>;
  if (by !== 'denied' && by !== 'used') return 'by must be "denied" or "used"';
  if (of !== 'minute' && of !== 'hour') return 'of must be "minute" or "hour"';
  if (domain !== undefined && typeof domain !== 'string')
    return 'domain must be a string that contains the name of a domain';
  if (rule !== undefined && typeof rule !== 'string') {
    return 'rule must be a string that contains the path of a rule, as shown by weir explain';
  }
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > MAX_TOP_LIMIT) {
    return `limit must be a whole number from 1 to ${MAX_TOP_LIMIT}`;
  }
  return { by, of, limit, ...(domain !== undefined && { domain }), ...(rule !== undefined && { rule }) };
}
