import { readArguments } from '../arguments.js';
import { DEBUG_OPTIONS, type DebugTarget } from '../call/debug-options.js';
import { goMilliseconds } from '../go-milliseconds.js';
import { MAX_TOP_ROWS } from './ask-top.js';
import type { FullTopQuestion } from './merge-top.js';

/** Options of `weir top`. */
export interface TopOptions {
  readonly question: FullTopQuestion;
  readonly everyMs: number;
  readonly once: boolean;
  readonly json: boolean;
  /** Value of `--all`. */
  readonly all: string | undefined;
  readonly target: DebugTarget;
}

const OPTIONS = {
  ...DEBUG_OPTIONS,
  all: { type: 'string' },
  by: { type: 'string', default: 'denied' },
  of: { type: 'string', default: 'minute' },
  domain: { type: 'string' },
  rule: { type: 'string' },
  limit: { type: 'string' },
  every: { type: 'string', default: '2s' },
  once: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;

const [PRINTED_ROWS, LIVE_ROWS] = [20, 200];
const MAX_EVERY_MS = 3_600_000;

/**
 * Parses the arguments after `top`. Returns an error message if they are invalid. `live`: whether standard output is a
 * terminal that can be redrawn.
 */
export function readTopOptions(args: readonly string[], live: boolean): TopOptions | string {
  const parsed = readArguments('top', args, OPTIONS);
  if (typeof parsed === 'string') return parsed;
  const { values, positionals } = parsed;
  const wrong = (sentence: string): string => `weir top: ${sentence}; see weir top --help\n`;
  if (positionals.length > 0) return wrong('this command accepts options, but no other arguments');
  const { by, of, domain, rule } = values;
  if (by !== 'denied' && by !== 'used') return wrong('--by must be denied or used');
  if (of !== 'minute' && of !== 'hour') return wrong('--of must be minute or hour');
  const once = values.once === true || values.json === true || !live;
  const limit = Number(values.limit ?? (once ? PRINTED_ROWS : LIVE_ROWS));
  if (!/^\d+$/.test(values.limit ?? '1') || limit < 1 || limit > MAX_TOP_ROWS) {
    return wrong(`--limit must be a whole number from 1 to ${MAX_TOP_ROWS}`);
  }
  if (values.all !== undefined && values.address !== undefined) {
    return wrong('--all and --address cannot be combined; remove --address');
  }
  const everyMs = goMilliseconds('--every', values.every, MAX_EVERY_MS);
  if (typeof everyMs === 'string') return wrong(everyMs);
  const { address, 'token-file': tokenFile, 'tls-ca': tlsCa, timeout } = values;
  return {
    question: { by, of, limit, ...(domain !== undefined && { domain }), ...(rule !== undefined && { rule }) },
    everyMs,
    once,
    json: values.json === true,
    all: values.all,
    target: { address, 'token-file': tokenFile, 'tls-ca': tlsCa, timeout },
  };
}
