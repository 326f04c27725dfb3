import type { TimedRate } from '../../limiter/rate.js';
import { describeMicros, headerFamilies, retryAfterText } from '../../policy/describe.js';
import { columnNames } from '../../policy/plans/plan-rate.js';
import {
  type DeniedResponse,
  type HeaderFamilies,
  HOLD_SOURCES,
  type HoldSpec,
  type OnOver,
  type PhaseSchedule,
  phaseAt,
  type Rule,
} from '../../policy/rule.js';

/**
 * Returns a rule as in `/rlconfig?format=json` and `weir explain --json`, with the names of the policy file. Settings
 * that the file or the environment decides are null. `wallMicros` decides which phase is current.
 */
export function ruleJson(rule: Rule, wallMicros: number) {
  return {
    /** Path in the tree, such as `tenant/resource_group=user-chats`. */
    path: rule.path,
    name: rule.name,
    limit: limitJson(rule),
    /** The fields of the limit that come from a plan, each with the name of the value. */
    plan_values: rule.plan === undefined ? null : Object.fromEntries(columnNames(rule.plan)),
    phase: phaseJson(rule.phase, wallMicros),
    shadow_mode: rule.shadowMode,
    quota_mode: rule.quotaMode,
    enforce_percent: rule.enforcePercent,
    replaces: rule.replaces,
    on_store_failure: rule.onStoreFailure,
    response_headers: headersJson(rule.responseHeaders),
    request_headers: headersJson(rule.requestHeaders),
    denied_response: deniedJson(rule.deniedResponse),
    on_over: rule.onOver === undefined ? null : onOverJson(rule.onOver),
    // biome-ignore lint/suspicious/noThenProperty: the name of the key in policies
    then: rule.spillsTo === '' ? null : rule.spillsTo,
    metadata: rule.metadata ?? null,
  };
}

function limitJson({ rate, hold }: Pick<Rule, 'rate' | 'hold'>): unknown {
  if (rate === undefined) return { unlimited: true };
  if (rate.kind === 'concurrency')
    return { concurrency: { max: rate.max, ...expiryJson(hold), ...retryJson(hold) } };
  const debt = hold === undefined ? debtJson(rate) : { hold: holdJson(hold), max_debt: rate.maxDebt };
  if (rate.kind === 'window') {
    return {
      unit: rate.unit,
      requests_per_unit: rate.requestsPerUnit,
      ...(rate.multiplier !== 1 && { unit_multiplier: rate.multiplier }),
      ...(rate.calendar !== undefined && { calendar: rate.calendar.timeZone }),
      ...debt,
    };
  }
  const { maxTokens, tokensPerFill, fillIntervalMicros } = rate;
  return {
    token_bucket: {
      max_tokens: maxTokens,
      tokens_per_fill: tokensPerFill,
      fill_interval: describeMicros(fillIntervalMicros),
    },
    ...debt,
  };
}

function debtJson({ maxDebt }: TimedRate): object {
  return maxDebt === 0 ? {} : { allow_debt: true, max_debt: maxDebt };
}

function holdJson(hold: HoldSpec): object {
  const { amount, unknown, pair } = hold;
  const estimate = amount === undefined ? { from: HOLD_SOURCES[0] } : { amount };
  return { ...estimate, ...expiryJson(hold), unknown, pair };
}

function expiryJson(hold: HoldSpec | undefined): object {
  return hold === undefined ? {} : { expires_after: describeMicros(hold.expiresAfterMillis * 1000) };
}

function retryJson(hold: HoldSpec | undefined): object {
  return hold?.retryAfterSeconds === undefined ? {} : { retry_after: retryAfterText(hold) };
}

/** Returns the current phase, and the start times of scheduled phases. */
export function phaseJson(schedule: PhaseSchedule, wallMicros: number): object {
  const { gracePeriodAtMicros, activeAtMicros } = schedule;
  return {
    now: phaseAt(schedule, wallMicros),
    ...(Number.isFinite(gracePeriodAtMicros) && { grace_period: timeText(gracePeriodAtMicros) }),
    ...(Number.isFinite(activeAtMicros) && { active: timeText(activeAtMicros) }),
  };
}

function timeText(micros: number): string {
  return new Date(Math.floor(micros / 1000)).toISOString();
}

/** Returns the families as `response_headers` and `request_headers` list them; null if they are unset. */
export function headersJson(headers: HeaderFamilies | undefined): readonly string[] | null {
  return headers === undefined ? null : headerFamilies(headers);
}

/** Returns the value of `denied_response`; null if it is unset. */
export function deniedJson(denied: DeniedResponse | undefined): string | object | null {
  if (denied === undefined) return null;
  if (denied.preset === 'problem+json') return denied.preset;
  return { body: denied.body, ...(denied.contentType !== '' && { content_type: denied.contentType }) };
}

function onOverJson({ requestHeaders, metadata }: OnOver): object {
  return {
    allow: true,
    ...(requestHeaders.length > 0 && {
      request_headers: requestHeaders.map(({ key, value }) => ({ [key]: value })),
    }),
    ...(metadata !== undefined && { metadata }),
  };
}
