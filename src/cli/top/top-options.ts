import { readArguments } from '../arguments.js';
import { DEBUG_OPTIONS, type DebugTarget } from '../call/debug-options.js';
import { MAX_TOP_ROWS } from './ask-top.js';
import type { FullTopQuestion } from './merge-top.js';

/** Options of `weir top`. */
export interface TopOptions {
  readonly question: FullTopQuestion;
  /** Whether to print the table again and again. */
  readonly watch: boolean;
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
  limit: { type: 'string', default: '20' },
  watch: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;

/** Parses the arguments after `top`. Returns an error message if they are invalid. */
export function readTopOptions(args: readonly string[]): TopOptions | string {
  const parsed = readArguments('top', args, OPTIONS);
  if (typeof parsed === 'string') return parsed;
  const { values, positionals } = parsed;
  const wrong = (sentence: string): string => `weir top: ${sentence}; see weir top --help\n`;
  if (positionals.length > 0) return wrong('this command accepts options, but no other arguments');
  const { by, of, domain, rule } = values;
  if (by !== 'denied' && by !== 'used') return wrong('--by must be denied or used');
  if (of !== 'minute' && of !== 'hour') return wrong('--of must be minute or hour');
  const limit = Number(values.limit);
  if (!/^\d+$/.test(values.limit) || limit < 1 || limit > MAX_TOP_ROWS) {
    return wrong(`--limit must be a whole number from 1 to ${MAX_TOP_ROWS}`);
  }
  if (values.all !== undefined && values.address !== undefined) {
    return wrong('--all and --address cannot be combined; remove --address');
  }
  const { address, 'token-file': tokenFile, 'tls-ca': tlsCa, timeout } = values;
  return {
    question: { by, of, limit, ...(domain !== undefined && { domain }), ...(rule !== undefined && { rule }) },
    watch: values.watch === true,
    json: values.json === true,
    all: values.all,
    target: { address, 'token-file': tokenFile, 'tls-ca': tlsCa, timeout },
  };
}
