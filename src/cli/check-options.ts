import type { Descriptor, DescriptorEntry } from '../codec/messages.js';
import { printableLine } from '../runtime/printable.js';
import { goMilliseconds, readArguments, readEntry } from './arguments.js';
import { type DebugServer, readDebugServer } from './call/debug-server.js';
import { readTarget, type ServerTarget, TARGET_OPTIONS } from './call/target.js';
import { CommandError, EXIT, type Io, usageError } from './io.js';

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

const MAX_COUNT = 10_000_000;
const MAX_CONCURRENCY = 10_000;
const MAX_TIMEOUT = '1h';
const MAX_HITS = 0xffff_ffff;

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
} as const;

/** Reads the arguments after `check`. Without `--address`, `environment` names the server. */
export function readCheckOptions(args: readonly string[], environment: Io['environment']): CheckOptions {
  const { values, positionals } = readArguments('check', args, OPTIONS);
  const count = wholeNumber('--count', values.count, 1, MAX_COUNT);
  const options = {
    domain: values.domain,
    descriptors: descriptors(positionals),
    count,
    concurrency: Math.min(wholeNumber('--concurrency', values.concurrency, 1, MAX_CONCURRENCY), count),
    hits: values.hits === undefined ? undefined : wholeNumber('--hits', values.hits, 0, MAX_HITS),
    timeoutMs: goMilliseconds('check', '--timeout', values.timeout, MAX_TIMEOUT),
    json: values.json,
    policy: values.policy,
    debug: debugServer(values.debug),
  };
  const target = readTarget('check', values, environment);
  if (target.addressWithoutCertificate === undefined) return { ...options, target };
  throw new CommandError(
    EXIT.FAILED,
    `GRPC_CLIENT_TLS_CACERT is set, so ${target.address} requires a client certificate; specify one with --cert and ` +
      '--key',
  );
}

/** Returns the error of an invalid argument. The message may quote the argument, so it is made printable. */
function invalid(sentence: string): CommandError {
  return usageError('check', printableLine(sentence));
}

function descriptors(words: readonly string[]): Descriptor[] {
  if (words.length === 0) throw invalid('specify at least one entry as key=value');
  const groups: DescriptorEntry[][] = [[]];
  for (const word of words) {
    if (word === '+') groups.push([]);
    else groups.at(-1)?.push(entry(word));
  }
  if (groups.some((group) => group.length === 0)) {
    throw invalid('"+" separates two descriptors; write at least one key=value before and after it');
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
    throw invalid(`"${word}" is not an entry; write ${meant}`);
  }
  return read;
}

function debugServer(text: string | undefined): DebugServer | undefined {
  const server = text === undefined ? undefined : readDebugServer(text, false);
  if (typeof server === 'string') throw invalid(`--debug ${server}`);
  return server;
}

function wholeNumber(option: string, text: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw invalid(`${option} "${text}" is not a whole number from ${min} to ${max}`);
}
