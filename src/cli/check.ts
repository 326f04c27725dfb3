import { type Client, type ServiceError, status } from '@grpc/grpc-js';
import { createClientCodec } from '../codec/client-codec.js';
import { CODE, type DescriptorStatus, LIMIT_UNIT, type RateLimitResponse } from '../codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../codec/rls-definition.js';
import { printable, printableJson } from '../runtime/printable.js';
import { secondsText } from '../runtime/texts.js';
import { failureAdvice } from './call/advice.js';
import { askServer, openClient } from './call/channel.js';
import { type CheckOptions, readCheckOptions } from './check-options.js';
import {
  domainNames,
  isUnlimited,
  isUnmatched,
  readServerPolicies,
  type ServerPolicies,
  type UnmatchedDescriptor,
  whyUnmatchedIn,
} from './check-unmatched.js';
import { CommandError, EXIT, type Io, PROGRESS_MS } from './io.js';
import { severalDomains } from './table.js';

/** Output streams of the command, and the environment that names the server. */
export interface CheckIo extends Pick<Io, 'out' | 'err' | 'environment'> {
  /** Whether to print colors. */
  readonly colour: boolean;
}

/** Runs `weir check`. Resolves with exit code 0 if every call got an answer, else with 1. */
export async function checkCommand(args: readonly string[], io: CheckIo): Promise<number> {
  const options = readCheckOptions(args, io.environment);
  const { domain, policies, note } = await chooseDomain(options);
  const client = openClient(options.target, { 'grpc.max_receive_message_length': -1 });
  const tally = new Tally(options.count, options.hits ?? 1);
  const progress = setInterval(() => {
    io.err(`weir check: ${tally.finished} of ${options.count} calls done\n`);
  }, PROGRESS_MS);
  try {
    await makeCalls(client, options, domain, tally);
  } finally {
    clearInterval(progress);
    client.close();
  }
  const counted = tally.result();
  const { last } = counted;
  const unmatched = last === undefined ? [] : await whyUnmatchedIn(last, options, domain, policies);
  const result = { ...counted, unmatched };
  if (last !== undefined && note !== undefined) io.err(`weir check: ${note}\n`);
  io.out(options.json ? checkJson(result) : checkTable(result, io.colour));
  if (tally.failure === undefined) return EXIT.OK;
  const why = failureAdvice(tally.failure, options.target, {
    method: SHOULD_RATE_LIMIT_PATH,
    timeoutMs: options.timeoutMs,
    whenLate: 'check the server, or raise --timeout',
  });
  throw new CommandError(EXIT.FAILED, `${tally.failures} of ${options.count} calls failed: ${why}`);
}

interface ChosenDomain {
  readonly domain: string;
  /** The policies that {@link domain} was chosen from; undefined with `--domain`. */
  readonly policies?: ServerPolicies;
  /** Sentence for the user if the domains of the server are unknown. */
  readonly note?: string;
}

/** Domain of the bundled policy. */
const BUNDLED_DOMAIN = 'open-api';

/** Returns the domain in `--domain`, or the only domain of the server. Throws if the server has several domains. */
async function chooseDomain(options: CheckOptions): Promise<ChosenDomain> {
  if (options.domain !== undefined) return { domain: options.domain };
  const policies = await readServerPolicies(options);
  const names = domainNames(policies);
  if (names === undefined) {
    const note =
      `the request is for the domain ${BUNDLED_DOMAIN}, because the domains of the server are unknown; specify ` +
      'the domain with --domain, or the debug port of the server with --debug <host:port>';
    return { domain: BUNDLED_DOMAIN, policies, note };
  }
  const [only = BUNDLED_DOMAIN, ...others] = names;
  if (others.length === 0) return { domain: only, policies };
  throw severalDomains('server', names);
}

/** Counts answers and errors. */
class Tally {
  finished = 0;
  failures = 0;
  /** First error; later errors are usually the same. */
  failure: ServiceError | undefined;
  readonly #errors = new Map<string, number>();
  readonly #latencies: Float64Array;
  #answers = 0;
  #ok = 0;
  #overLimit = 0;
  #last: RateLimitResponse | undefined;

  readonly #hits: number;

  constructor(count: number, hits: number) {
    this.#latencies = new Float64Array(count);
    this.#hits = hits;
  }

  answered(answer: RateLimitResponse, milliseconds: number): void {
    this.finished++;
    this.#latencies[this.#answers++] = milliseconds;
    this.#last = answer;
    if (answer.overallCode === CODE.OK) this.#ok++;
    else if (answer.overallCode === CODE.OVER_LIMIT) this.#overLimit++;
  }

  failed(error: ServiceError): void {
    this.finished++;
    this.failures++;
    this.failure ??= error;
    const name = status[error.code] ?? `code ${error.code}`;
    this.#errors.set(name, (this.#errors.get(name) ?? 0) + 1);
  }

  result(): Omit<CheckResult, 'unmatched'> {
    return {
      ok: this.#ok,
      overLimit: this.#overLimit,
      otherAnswers: this.#answers - this.#ok - this.#overLimit,
      errors: this.#errors,
      hits: this.#hits,
      last: this.#last,
      latencies: this.#latencies.subarray(0, this.#answers).sort(),
    };
  }
}

async function makeCalls(client: Client, options: CheckOptions, domain: string, tally: Tally): Promise<void> {
  const codec = createClientCodec();
  const { descriptors, hits } = options;
  // 0 hits of a request count as one hit, and 0 hits of a descriptor may start a request (`pair: oldest`). A refund of
  // 0 hits only looks.
  const request = Buffer.from(
    codec.encodeRequest({
      domain,
      descriptors:
        hits === 0
          ? descriptors.map((one) => ({ ...one, hitsAddend: 0, isNegativeHits: true }))
          : descriptors,
      hitsAddend: hits ?? 0,
    }),
  );
  let started = 0;
  const worker = async (): Promise<void> => {
    while (started < options.count) {
      started++;
      const before = performance.now();
      await askServer(client, codec, request, options.timeoutMs).then(
        (answer) => tally.answered(answer, performance.now() - before),
        (error: ServiceError) => tally.failed(error),
      );
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, worker));
}

export interface CheckResult {
  readonly ok: number;
  readonly overLimit: number;
  /** Number of answers that are neither OK nor OVER_LIMIT; 0 for a correct server. */
  readonly otherAnswers: number;
  /** Number of failed calls by the name of their gRPC status code. */
  readonly errors: ReadonlyMap<string, number>;
  /** `--hits` of each call; 1 if unset. */
  readonly hits: number;
  /** Last answer received; undefined if every call failed. */
  readonly last: RateLimitResponse | undefined;
  /** Descriptors of the last answer that no rule matched, with the reasons. */
  readonly unmatched: readonly UnmatchedDescriptor[];
  /** Latency of each answered call in milliseconds, in ascending order. */
  readonly latencies: Float64Array;
}

/**
 * Minimum number of answered calls for percentiles. The first call includes the connection setup, so a few calls say
 * little about the server.
 */
const MIN_CALLS_FOR_PERCENTILES = 10;

const codeNames = namesOf(CODE);
const unitNames = namesOf(LIMIT_UNIT);

/** Formats the result as text. With `colour`, OK is green and everything else is red. */
export function checkTable(result: CheckResult, colour: boolean): string {
  const paint = (text: string, good: boolean): string =>
    colour ? `\u001b[${good ? 32 : 31}m${text}\u001b[0m` : text;
  const rows: [string, number, boolean][] = [
    ['OK', result.ok, true],
    ['OVER_LIMIT', result.overLimit, false],
  ];
  if (result.otherAnswers > 0) rows.push(['other', result.otherAnswers, false]);
  for (const [code, count] of result.errors) rows.push([code, count, false]);
  const lines = rows.map(([name, count, good]) => `${paint(name.padEnd(20), good)}${count}`);
  if (result.last !== undefined) lines.push('', ...answerLines(result.last, result.hits, paint));
  lines.push(...unmatchedLines(result.unmatched));
  if (hasPercentiles(result)) {
    lines.push('', `latency  p50 ${milliseconds(result, 0.5)} ms, p99 ${milliseconds(result, 0.99)} ms`);
  }
  return `${lines.join('\n')}\n`;
}

/** Formats the result as one line of JSON. */
export function checkJson(result: CheckResult): string {
  const { last } = result;
  return `${printableJson({
    ok: result.ok,
    overLimit: result.overLimit,
    otherAnswers: result.otherAnswers,
    errors: Object.fromEntries(result.errors),
    last: last && {
      code: codeName(last.overallCode),
      statuses: last.statuses.map((status) => ({
        code: codeName(status.code),
        limit: status.currentLimit && {
          name: status.currentLimit.name,
          requestsPerUnit: status.currentLimit.requestsPerUnit,
          unit: unitName(status.currentLimit.unit),
        },
        remaining: status.limitRemaining,
        resetSeconds: status.durationUntilResetSeconds,
      })),
      headers: last.responseHeadersToAdd,
      requestHeaders: last.requestHeadersToAdd.length > 0 ? last.requestHeadersToAdd : undefined,
      body: bodyText(last),
      dynamicMetadata: last.dynamicMetadata,
    },
    unmatched: result.unmatched.length > 0 ? result.unmatched : undefined,
    latencyMs: hasPercentiles(result)
      ? { p50: percentile(result.latencies, 0.5), p99: percentile(result.latencies, 0.99) }
      : undefined,
  })}\n`;
}

function answerLines(
  answer: RateLimitResponse,
  hits: number,
  paint: (text: string, good: boolean) => string,
): string[] {
  const code = codeName(answer.overallCode);
  return [
    `last answer         ${paint(code, answer.overallCode === CODE.OK)}`,
    ...answer.statuses.map((status, i) => `  descriptor ${i + 1}: ${statusText(status, hits)}`),
    ...answer.responseHeadersToAdd.map(
      ({ key, value }) => `  ${printable(key)}: ${printable(String(value))}`,
    ),
    ...answer.requestHeadersToAdd.map(
      ({ key, value }) => `  upstream ${printable(key)}: ${printable(String(value))}`,
    ),
    ...classLines(answer),
    ...(answer.rawBody?.length ? [`  body: ${printable(bodyText(answer) ?? '')}`] : []),
  ];
}

/** Returns the class of the caller (`priorities`), which an answer with decision metadata names. */
function classLines({ dynamicMetadata }: RateLimitResponse): readonly string[] {
  const { class: name } = (dynamicMetadata?.['decision'] ?? {}) as { readonly class?: unknown };
  return typeof name === 'string' ? [`  class ${printable(name)}`] : [];
}

function unmatchedLines(unmatched: readonly UnmatchedDescriptor[]): readonly string[] {
  const lines = unmatched.flatMap(({ descriptor, why }) =>
    why.map((text) => `  descriptor ${descriptor}: ${printable(text)}`),
  );
  return lines.length === 0 ? [] : ['', 'why no rule matched', ...lines];
}

function bodyText({ rawBody }: RateLimitResponse): string | undefined {
  return rawBody?.length ? Buffer.from(rawBody).toString() : undefined;
}

function statusText(status: DescriptorStatus, hits: number): string {
  const parts = [codeName(status.code)];
  const limit = status.currentLimit;
  if (limit === undefined) parts.push(noLimitLabel(status));
  else {
    const unit = limit.unit === LIMIT_UNIT.unknown ? '' : ` per ${unitName(limit.unit)}`;
    const name = limit.name === '' ? '' : ` (${printable(limit.name)})`;
    parts.push(`limit ${limit.requestsPerUnit}${unit}${name}`, `remaining ${status.limitRemaining}`);
  }
  const seconds = status.durationUntilResetSeconds;
  if (seconds !== undefined) parts.push(`${resetLabel(status, hits)} ${secondsText(seconds)}`);
  return parts.join(', ');
}

/** Returns the label of `duration_until_reset`, whose meaning depends on the answer: see docs/policy/answers.md. */
function resetLabel({ code, currentLimit }: DescriptorStatus, hits: number): string {
  if (code !== CODE.OVER_LIMIT) return 'reset in';
  // A request that exceeds a processing bound is denied without a limit.
  if (currentLimit === undefined) return 'denied for';
  if (hits <= 1) return 'reset in';
  return hits > currentLimit.requestsPerUnit ? 'full in' : 'enough tokens in';
}

function noLimitLabel(status: DescriptorStatus): string {
  if (isUnmatched(status)) return 'no rule matched';
  return isUnlimited(status) ? 'unlimited' : 'no limit';
}

function hasPercentiles({ latencies }: CheckResult): boolean {
  return latencies.length >= MIN_CALLS_FOR_PERCENTILES;
}

function milliseconds(result: CheckResult, share: number): string {
  return percentile(result.latencies, share).toFixed(2);
}

/** Returns the smallest value that is greater than or equal to `share` of all values (nearest-rank method). */
function percentile(sorted: Float64Array, share: number): number {
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? 0;
}

function codeName(code: number): string {
  return codeNames.get(code) ?? `code ${code}`;
}

function unitName(unit: number): string {
  return unitNames.get(unit) ?? `unit ${unit}`;
}

function namesOf(values: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(values).map(([name, value]) => [value, name]));
}
