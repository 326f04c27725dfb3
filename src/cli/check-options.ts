import { parseArgs } from 'node:util';
import type { Descriptor, DescriptorEntry } from '../codec/messages.js';
import { parseGoDuration } from '../config/yaml/go-duration.js';
import { defaultOf } from '../server/settings/settings-table.js';
import { isAddress } from './address.js';
import { readEntry } from './arguments.js';
import { type ChannelOptions, readTlsOptions, TLS_OPTIONS } from './tls-options.js';

/** What `weir check` is asked to do. */
export interface CheckOptions {
  /** `host:port` of a gRPC listener, or `unix:<path>`. */
  readonly address: string;
  readonly channel: ChannelOptions;
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  readonly count: number;
  readonly concurrency: number;
  /** `hits_addend` of the request; 0 leaves it out, which means 1. */
  readonly hits: number;
  readonly timeoutMs: number;
  readonly json: boolean;
  /** Policy file or directory that tells why no rule matched. */
  readonly policy: string | undefined;
  /** `host:port` of the server's debug port, which does. */
  readonly debug: string | undefined;
}

export type CheckArguments =
  | { readonly kind: 'run'; readonly options: CheckOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'usage'; readonly message: string };

/** Where a server listens whose settings nobody made. */
const ADDRESS = `${defaultOf('grpcHost')}:${defaultOf('grpcPort')}`;
const MAX_COUNT = 10_000_000;
const MAX_CONCURRENCY = 10_000;
const MAX_TIMEOUT_MS = 3_600_000;
const MAX_HITS = 0xffff_ffff;

export const CHECK_HELP = `Usage: weir check [options] key=value … [+ key=value …]

Asks a running server and prints how it decided. The entries make one descriptor; a lone + starts the next.

  --address <host:port>  gRPC address of the server, or unix:<path> (default ${ADDRESS})
  --domain <name>        domain of the policy (default open-api)
  --count <n>            calls to make (default 1)
  --concurrency <n>      calls at once (default 1)
  --hits <n>             hits of each call (default 1)
  --timeout <duration>   longest wait for one answer, such as 500ms or 2s (default 1s)
  --tls                  speak TLS, and trust the issuers Node.js ships
  --ca <file>            speak TLS, and trust these issuers (PEM)
  --cert, --key <file>   speak TLS, and show this client certificate (PEM)
  --policy <path>        policy file or directory that tells why no rule matched
  --debug <host:port>    debug port of the server, which tells it, too (default: port ${defaultOf('debugPort')} beside port
                         ${defaultOf('grpcPort')} of this machine)
  --json                 print one JSON object instead of the table
  --help                 print this text

Exit code: 0 when every call was answered, OVER_LIMIT included; 1 when a call failed; 2 for wrong arguments.

Example: weir check --count 200 --concurrency 20 tenant=acme resource_group=user-chats
`;

class UsageError extends Error {}

/** Reads the arguments after `check`. Never throws: a mistake comes back as a sentence. */
export function parseCheckArguments(args: readonly string[]): CheckArguments {
  try {
    return parse(args);
  } catch (error) {
    if (error instanceof UsageError) return { kind: 'usage', message: error.message };
    // Unknown options and options without a value: the sentences of node:util are good enough.
    if (String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS')) {
      return { kind: 'usage', message: (error as Error).message };
    }
    throw error;
  }
}

function parse(args: readonly string[]): CheckArguments {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      address: { type: 'string', default: ADDRESS },
      domain: { type: 'string', default: 'open-api' },
      count: { type: 'string', default: '1' },
      concurrency: { type: 'string', default: '1' },
      hits: { type: 'string', default: '0' },
      timeout: { type: 'string', default: '1s' },
      ...TLS_OPTIONS,
      policy: { type: 'string' },
      debug: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return { kind: 'help' };
  const channel = readTlsOptions(values);
  if (typeof channel === 'string') throw new UsageError(channel);
  const count = wholeNumber('--count', values.count, 1, MAX_COUNT);
  return {
    kind: 'run',
    options: {
      address: address(values.address),
      channel,
      domain: values.domain,
      descriptors: descriptors(positionals),
      count,
      concurrency: Math.min(wholeNumber('--concurrency', values.concurrency, 1, MAX_CONCURRENCY), count),
      hits: wholeNumber('--hits', values.hits, 0, MAX_HITS),
      timeoutMs: duration('--timeout', values.timeout),
      json: values.json,
      policy: values.policy,
      debug: debugAddress(values.debug),
    },
  };
}

function descriptors(words: readonly string[]): Descriptor[] {
  if (words.length === 0) throw new UsageError('name at least one entry as key=value');
  const groups: DescriptorEntry[][] = [[]];
  for (const word of words) {
    if (word === '+') groups.push([]);
    else groups.at(-1)?.push(entry(word));
  }
  if (groups.some((group) => group.length === 0)) {
    throw new UsageError('a + stands between two descriptors; each needs at least one key=value');
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
  if (read === undefined) throw new UsageError(`"${word}" is no entry; write key=value`);
  return read;
}

function address(text: string): string {
  if (isAddress(text)) return text;
  throw new UsageError(
    `--address "${text}" is neither host:port, with IPv6 addresses in brackets as in [::1]:8081, nor unix:<path>`,
  );
}

function debugAddress(text: string | undefined): string | undefined {
  if (text === undefined || (isAddress(text) && !text.startsWith('unix:'))) return text;
  throw new UsageError(
    `--debug "${text}" is not host:port, with IPv6 addresses in brackets as in [::1]:6070`,
  );
}

function wholeNumber(option: string, text: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${option} "${text}" is not a whole number from ${min} to ${max}`);
}

/** A duration in Go's syntax, as milliseconds. */
function duration(option: string, text: string): number {
  const nanos = parseGoDuration(text);
  const milliseconds = nanos === undefined ? Number.NaN : Number(nanos) / 1e6;
  if (milliseconds >= 1 && milliseconds <= MAX_TIMEOUT_MS) return Math.round(milliseconds);
  throw new UsageError(`${option} "${text}" is not a duration from 1ms to 1h, such as 500ms or 2s`);
}
