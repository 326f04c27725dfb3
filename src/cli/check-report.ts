import { CODE, type DescriptorStatus, LIMIT_UNIT, type RateLimitResponse } from '../codec/messages.js';
import { printable, printableJson } from '../runtime/printable.js';
import { secondsText } from '../runtime/texts.js';
import { isUnlimited, isUnmatched, type UnmatchedDescriptor } from './check-unmatched.js';

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
    ...answer.responseHeadersToAdd.map(({ key, value }) => `  ${printable(key)}: ${printable(value)}`),
    ...answer.requestHeadersToAdd.map(
      ({ key, value }) => `  upstream ${printable(key)}: ${printable(value)}`,
    ),
    ...(answer.rawBody?.length ? [`  body: ${printable(bodyText(answer) ?? '')}`] : []),
  ];
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
