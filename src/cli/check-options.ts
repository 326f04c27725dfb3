import { parseArgs } from 'node:util';
import type { Descriptor, DescriptorEntry } from '../codec/messages.js';
import { parseGoDuration } from '../config/yaml/go-duration.js';
import { printableLine } from '../printable.js';
import { argumentError, readEntry } from './arguments.js';
import { type DebugServer, readDebugServer } from './call/debug-server.js';
import { readTarget, type ServerTarget, TARGET_OPTIONS } from './call/target.js';
import type { Io } from './io.js';

/** Options of `weir check`. */
export interface CheckOptions {
  readonly target: ServerTarget;
  /** Undefined without `--domain`. */
  readonly domain: string | undefined;
  readonly descriptors: readonly Descriptor[];
  readonly count: number;
  readonly concurrency: number;
  /** Hits of each call; 0 reads the limits without taking tokens. Undefined omits the field, which counts as 1. */
  readonly hits: number | undefined;
  readonly timeoutMs: number;
  readonly json: boolean;
  /** Policy file or directory of the server, to find the domain and to explain why no rule matched. */
  readonly policy: string | undefined;
  /** Debug port, to find the domain and to explain why no rule matched. */
  readonly debug: DebugServer | undefined;
}

export type CheckArguments =
  | { readonly kind: 'run'; readonly options: CheckOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'usage'; readonly message: string }
  /** The environment does not name a server that can be called; one message for each reason. */
  | { readonly kind: 'failed'; readonly messages: readonly string[] };

const MAX_COUNT = 10_000_000;
const MAX_CONCURRENCY = 10_000;
const MAX_TIMEOUT_MS = 3_600_000;
const MAX_HITS = 0xffff_ffff;

/** Reports an invalid argument. The message may quote the argument, so it is made printable. */
class UsageError extends Error {
  constructor(message: string) {
    super(printableLine(message));
  }
}

/**
 * Reads the arguments after `check`. Without `--address`, `environment` names the server. Returns invalid arguments as
 * a message and does not throw for them.
 */
export function parseCheckArguments(args: readonly string[], environment: Io['environment']): CheckArguments {
  try {
    return parse(args, environment);
  } catch (error) {
    if (error instanceof UsageError) return { kind: 'usage', message: error.message };
    if (String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS')) {
      return { kind: 'usage', message: argumentError('check', error as Error, Object.keys(OPTIONS)) };
    }
    throw error;
  }
}

const OPTIONS = {
  domain: { type: 'string' },
  count: { type: 'string', default: '1' },
  concurrency: { type: 'string', default: '1' },
  hits: { type: 'string' },
  timeout: { type: 'string', default: '5s' },
  ...TARGET_OPTIONS,
  policy: { type: 'string' },
  debug: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

function parse(args: readonly string[], environment: Io['environment']): CheckArguments {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: OPTIONS,
  });
  if (values.help) return { kind: 'help' };
  const count = wholeNumber('--count', values.count, 1, MAX_COUNT);
  const options = {
    domain: values.domain,
    descriptors: descriptors(positionals),
    count,
    concurrency: Math.min(wholeNumber('--concurrency', values.concurrency, 1, MAX_CONCURRENCY), count),
    hits: values.hits === undefined ? undefined : wholeNumber('--hits', values.hits, 0, MAX_HITS),
    timeoutMs: duration('--timeout', values.timeout),
    json: values.json,
    policy: values.policy,
    debug: debugServer(values.debug),
  };
  const found = readTarget(values, environment);
  if (found.kind !== 'target') return found;
  const { target } = found;
  if (target.addressWithoutCertificate !== undefined) {
    return {
      kind: 'failed',
      messages: [
        `GRPC_CLIENT_TLS_CACERT is set, so ${target.address} requires a client certificate; specify one ` +
          'with --cert and --key',
      ],
    };
  }
  return { kind: 'run', options: { ...options, target } };
}

function descriptors(words: readonly string[]): Descriptor[] {
  if (words.length === 0) throw new UsageError('specify at least one entry as key=value');
  const groups: DescriptorEntry[][] = [[]];
  for (const word of words) {
    if (word === '+') groups.push([]);
    else groups.at(-1)?.push(entry(word));
  }
  if (groups.some((group) => group.length === 0)) {
    throw new UsageError('"+" separates two descriptors; write at least one key=value before and after it');
  }
  return groups.map((entries) => ({
    entries,
    limit: undefined,
    hitsAddend: undefined,
    isNegativeHits: false,
  }));
}

function entry(word: string): DescriptorEntry {
  const read = readEntry(word);
  if (read === undefined) {
    const meant = /^[^:]+:[^:]/.test(word) ? word.replace(/: */, '=') : 'key=value';
    throw new UsageError(`"${word}" is not an entry; write ${meant}`);
  }
  return read;
}

function debugServer(text: string | undefined): DebugServer | undefined {
  const server = text === undefined ? undefined : readDebugServer(text, false);
  if (typeof server === 'string') throw new UsageError(`--debug ${server}`);
  return server;
}

function wholeNumber(option: string, text: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${option} "${text}" is not a whole number from ${min} to ${max}`);
}

/** Converts a duration in Go's syntax to milliseconds. */
function duration(option: string, text: string): number {
  const nanos = parseGoDuration(text);
  const milliseconds = nanos === undefined ? Number.NaN : Number(nanos) / 1e6;
  if (milliseconds >= 1 && milliseconds <= MAX_TIMEOUT_MS) return Math.round(milliseconds);
  throw new UsageError(`${option} "${text}" is not a duration from 1ms to 1h, such as 500ms or 2s`);
}
