import type { Rate, WindowRate } from '../limiter/rate.js';
import { type PhaseSchedule, phaseAt, type ResponseHeaders, type Rule } from '../limiter/rule.js';

/** `token bucket: 100 tokens, 10 every 1s, debt up to 100`; `window: 10 per 5 minutes`. */
export function describeRate(rate: Rate | undefined): string {
  if (rate === undefined) return 'unlimited';
  const debt = rate.maxDebt === 0 ? '' : `, debt up to ${rate.maxDebt}`;
  if (rate.kind === 'window') return `window: ${rate.requestsPerUnit} per ${describeWindow(rate)}${debt}`;
  const { maxTokens, tokensPerFill, fillIntervalMicros } = rate;
  return `token bucket: ${maxTokens} tokens, ${tokensPerFill} every ${describeMicros(fillIntervalMicros)}${debt}`;
}

/** `minute`, `5 minutes`, `day of Europe/Berlin`. */
function describeWindow({ unit, multiplier, calendar }: WindowRate): string {
  if (calendar !== undefined) return `${unit} of ${calendar.timeZone}`;
  return multiplier === 1 ? unit : `${multiplier} ${unit}s`;
}

/** A span in the largest unit of Go's duration syntax that needs no fraction: `1s`, `1500ms`, `24h`. */
export function describeMicros(micros: number): string {
  const units: readonly (readonly [string, number])[] = [
    ['h', 3_600_000_000],
    ['m', 60_000_000],
    ['s', 1_000_000],
    ['ms', 1000],
  ];
  for (const [unit, length] of units) if (micros % length === 0) return `${micros / length}${unit}`;
  return `${micros}us`;
}

/** The phase in force, and when others begin: `grace_period (active from 2024-05-15T00:00:00.000Z)`. */
export function describePhase(schedule: PhaseSchedule, wallMicros: number): string {
  const turns = [
    describeTurn('grace_period', schedule.gracePeriodAtMicros, wallMicros),
    describeTurn('active', schedule.activeAtMicros, wallMicros),
  ].filter((turn) => turn !== '');
  const phase = phaseAt(schedule, wallMicros);
  return turns.length === 0 ? phase : `${phase} (${turns.join(', ')})`;
}

function describeTurn(phase: string, atMicros: number, wallMicros: number): string {
  if (!Number.isFinite(atMicros)) return '';
  const time = new Date(Math.floor(atMicros / 1000)).toISOString();
  return `${phase} ${atMicros <= wallMicros ? 'since' : 'from'} ${time}`;
}

/** All of a rule on one line. */
export function describeRule(rule: Rule, wallMicros: number): string {
  const parts = [rule.name === '' ? '' : `"${rule.name}"`, describeRate(rule.rate)];
  parts.push(`phase ${describePhase(rule.phase, wallMicros)}`);
  if (rule.shadowMode) parts.push('shadow mode');
  if (rule.quotaMode) parts.push('quota mode');
  if (rule.replaces.length > 0) parts.push(`replaces ${rule.replaces.map((name) => `"${name}"`).join(', ')}`);
  parts.push(`on store failure ${rule.onStoreFailure}`);
  if (rule.metadata !== undefined) parts.push(`metadata ${JSON.stringify(rule.metadata)}`);
  return parts.filter((part) => part !== '').join('; ');
}

/** `x-ratelimit, retry-after`, `none`, or that the environment decides. */
export function describeHeaders(headers: ResponseHeaders | undefined): string {
  if (headers === undefined) return 'as the environment says';
  const families = [headers.xRateLimit ? 'x-ratelimit' : '', headers.retryAfter ? 'retry-after' : ''];
  return families.filter((family) => family !== '').join(', ') || 'none';
}
