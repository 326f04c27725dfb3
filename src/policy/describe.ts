import { describeFailurePolicy } from '../limiter/failure-policy.js';
import type { WindowRate } from '../limiter/fixed-window.js';
import type { Rate } from '../limiter/rate.js';
import { withoutAddressSecrets } from '../runtime/shown-address.js';
import { plural } from '../runtime/texts.js';
import { type LeaseSpec, leaseRefusal, loweredBy } from './leases.js';
import { columnNames, type PlanRate } from './plans/plan-rate.js';
import { isBlocked } from './plans/plan-rules.js';
import type { PlanTable } from './plans/plan-table.js';
import { keptText, type PrioritySpec } from './priorities.js';
import {
  type DeniedResponse,
  HEADER_FAMILIES,
  type HeaderFamilies,
  type HoldSpec,
  type OnOver,
  type PhaseSchedule,
  phaseAt,
  type Rule,
} from './rule.js';

/**
 * Formats a rate: `token bucket: 100 tokens, 10 every 1s, debt up to 100`, `window: 10 per 5 minutes`, `concurrency:
 * 10 requests`, or `blocked: no requests`.
 */
export function describeRate(rate: Rate | undefined): string {
  if (rate === undefined) return 'unlimited';
  if (isBlocked({ rate })) return 'blocked: no requests';
  if (rate.kind === 'concurrency') return `concurrency: ${plural(rate.max, 'request')}`;
  const debt = rate.maxDebt === 0 ? '' : `, debt up to ${rate.maxDebt}`;
  if (rate.kind === 'window') return `window: ${rate.requestsPerUnit} per ${describeWindow(rate)}${debt}`;
  const { maxTokens, tokensPerFill, fillIntervalMicros } = rate;
  const size = plural(maxTokens, 'token');
  return `token bucket: ${size}, ${tokensPerFill} every ${describeMicros(fillIntervalMicros)}${debt}`;
}

/**
 * Formats a limit with its holds: `concurrency: 10 requests, expires after 1m, retry after 5s`, or `window: 100 per
 * minute, debt up to 100, holds 5 hits, expires after 10m`.
 */
export function describeLimit(rule: Pick<Rule, 'rate' | 'hold'> & Partial<Pick<Rule, 'shared'>>): string {
  // The limit of a class is described by what it leaves to others, see describeOptions.
  const { rate, hold } = rule.shared ?? rule;
  const limit = describeRate(rate);
  if (hold === undefined) return limit;
  const expiry = `expires after ${describeMicros(hold.expiresAfterMillis * 1000)}`;
  const retry = retryAfterText(hold);
  if (rate?.kind === 'concurrency') return `${limit}, ${expiry}${retry && `, retry after ${retry}`}`;
  const freed = hold.unknown === 'free' ? ', frees an unknown use' : '';
  const paired = hold.pair === 'oldest' ? ', ends settle the oldest hold' : '';
  const held = hold.amount === undefined ? 'the hits of the first call' : plural(hold.amount, 'hit');
  return `${limit}, holds ${held}, ${expiry}${freed}${paired}`;
}

/** Formats `retry_after`; '' without one. */
export function retryAfterText({ retryAfterSeconds }: HoldSpec): string {
  return retryAfterSeconds === undefined ? '' : describeMicros(retryAfterSeconds * 1_000_000);
}

/** Formats a window: `minute`, `5 minutes`, `day of Europe/Berlin`. */
function describeWindow({ unit, multiplier, calendar }: WindowRate): string {
  if (calendar !== undefined) return `${unit} of ${calendar.timeZone}`;
  return multiplier === 1 ? unit : `${multiplier} ${unit}s`;
}

/** Formats a duration in the largest unit of Go's syntax that needs no fraction: `1s`, `1500ms`, `24h`. */
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

/** Formats the current phase and the start of others: `grace_period (active from 2024-05-15T00:00:00.000Z)`. */
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

/** Formats a rule on one line. */
export function describeRule(rule: Rule, wallMicros: number): string {
  const parts = [
    rule.name === '' ? '' : `"${rule.name}"`,
    describeLimit(rule),
    describePlanValues(rule.plan),
  ];
  parts.push(`phase ${describePhase(rule.phase, wallMicros)}`, ...describeOptions(rule));
  return parts.filter((part) => part !== '').join('; ');
}

/** Formats the settings of a rule besides its limit and its phase, one item for each. */
export function describeOptions(rule: Rule): readonly string[] {
  const parts: string[] = [];
  if (rule.shadowMode) parts.push('shadow mode');
  if (rule.quotaMode) parts.push('quota mode');
  if (rule.rate !== undefined && rule.enforcePercent !== 100) {
    parts.push(`${rule.enforcePercent}% of denials enforced`);
  }
  if (rule.replaces.length > 0) parts.push(`replaces ${rule.replaces.map((name) => `"${name}"`).join(', ')}`);
  parts.push(`on store failure ${describeFailurePolicy(rule.onStoreFailure)}`);
  if (rule.responseHeaders !== undefined) parts.push(`headers ${describeHeaders(rule.responseHeaders)}`);
  if (rule.requestHeaders !== undefined) {
    parts.push(`request headers ${describeRequestHeaders(rule.requestHeaders)}`);
  }
  if (rule.deniedResponse !== undefined) parts.push(`denied ${describeDenied(rule.deniedResponse)}`);
  if (rule.priorities !== undefined) parts.push(describeClasses(rule, rule.priorities));
  if (rule.lease !== undefined && rule.rate !== undefined) parts.push(describeLease(rule, rule.lease));
  if (rule.onOver !== undefined) parts.push(describeOnOver(rule.onOver));
  if (rule.nextLimit !== '') parts.push(`then "${rule.nextLimit}"`);
  if (rule.metadata !== undefined) parts.push(`metadata ${JSON.stringify(rule.metadata)}`);
  return parts;
}

/** Formats `priorities`, of a class: `class batch, which can use 50 of 100`, or of the limit as a whole. */
function describeClasses({ className, shared, rate }: Rule, { by, classes, unknown }: PrioritySpec): string {
  if (shared !== undefined) {
    return `class ${className}, which can use ${rate?.reportedLimit} of ${shared.rate?.reportedLimit}`;
  }
  const kept = classes.map((one) => `${one.name} keeps ${keptText(one)}`).join(', ');
  return `classes by ${by}: ${kept}, others are ${unknown}`;
}

/**
 * Formats `lease`: `leases up to 100 hits for 50ms, which lowers the capacity by 5`, or `no leases, because slots are
 * given back`.
 */
function describeLease(rule: Rule, lease: LeaseSpec): string {
  const { rate } = rule;
  if (rate?.lease === undefined) return `no leases, because ${leaseRefusal(rule)}`;
  const text = `leases up to ${plural(lease.max, 'hit')} for ${describeMicros(lease.forMicros)}`;
  if (rate.kind === 'window') return text;
  return text + (lease.exact ? `, which lowers the capacity by ${loweredBy(rule)}` : ', not exact');
}

/** Formats the fields that come from a plan: `max_tokens from the plan value burst`; '' without any. */
export function describePlanValues(plan: PlanRate | undefined): string {
  if (plan === undefined) return '';
  return columnNames(plan)
    .map(([key, value]) => `${key} from the plan value ${value}`)
    .join(', ');
}

/** Formats `plans`: `tenant from customers.csv: 3 rows, 1 refused; default free; max drop 20 % from 20 rows`. */
export function describePlans(plans: PlanTable): string {
  const { by, file, standard, maxDrop, maxDropFrom, readColumns, refused } = plans;
  const rows = plural(plans.rowCount, 'row');
  const source = file === '' ? '' : ` from ${withoutAddressSecrets(file)}`;
  return [
    `${by}${source}: ${rows}${refused === 0 ? '' : `, ${refused} refused`}`,
    ...(standard === undefined ? [] : [`default ${standard}`]),
    ...(readColumns === undefined ? [] : [`columns ${readColumns.join(', ')}`]),
    `max drop ${maxDrop} % from ${maxDropFrom} rows`,
  ].join('; ');
}

/** Describes rows that a new version of a table lacks: `5 of 20 rows are gone, more than 20 %`. */
export function describeDrop({ maxDrop }: Pick<PlanTable, 'maxDrop'>, lost: number, before: number): string {
  return `${lost} of ${before} rows are gone, more than ${maxDrop} %`;
}

/** Formats a plan: `free: burst 20, rate 5`. */
export function describePlan({ name, values }: PlanTable['plans'][number]): string {
  return `${name}: ${Object.entries(values)
    .map((pair) => pair.join(' '))
    .join(', ')}`;
}

/** Formats `on_over`: `passes if over, with x-weir-over: burst and metadata {"tier":"low"}`. */
function describeOnOver({ requestHeaders, metadata }: OnOver): string {
  const marks = requestHeaders.map(({ key, value }) => `${key}: ${value}`);
  if (metadata !== undefined) marks.push(`metadata ${JSON.stringify(metadata)}`);
  return marks.length === 0 ? 'passes if over' : `passes if over, with ${marks.join(' and ')}`;
}

/** Returns the names of header families as in `response_headers` and `request_headers`. */
export function headerFamilies(headers: HeaderFamilies): readonly string[] {
  const fields = Object.keys(HEADER_FAMILIES) as (keyof HeaderFamilies)[];
  return fields.filter((field) => headers[field]).map((field) => HEADER_FAMILIES[field]);
}

/** Formats `response_headers`: `x-ratelimit, retry-after`, `none`, or the variable that applies. */
export function describeHeaders(headers: HeaderFamilies | undefined): string {
  if (headers === undefined) return 'none, unless LIMIT_RESPONSE_HEADERS_ENABLED is set';
  return headerFamilies(headers).join(', ') || 'none';
}

/** Formats `request_headers` in the same way. */
export function describeRequestHeaders(headers: HeaderFamilies | undefined): string {
  return headers === undefined
    ? 'none, unless LIMIT_REQUEST_HEADERS_ENABLED is set'
    : describeHeaders(headers);
}

/** Formats `denied_response`: `with problem+json`, `with 12 bytes of text/plain`, or `without a body`. */
export function describeDenied(denied: DeniedResponse | undefined): string {
  if (denied?.preset === 'problem+json') return 'with problem+json';
  if (denied === undefined || denied.body === '') return 'without a body';
  return `with ${plural(Buffer.byteLength(denied.body), 'byte')} of ${denied.contentType || 'text/plain'}`;
}

/** Formats `decision_metadata`: `on`, `off`, or the variable that applies. */
export function describeDecisionMetadata(set: boolean | undefined): string {
  if (set === undefined) return 'off, unless DECISION_METADATA is set';
  return set ? 'on' : 'off';
}
