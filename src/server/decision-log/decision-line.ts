import { exactTimeText } from '../../limiter/clock.js';
import type { Entry } from '../../limiter/entry.js';
import { printableJson } from '../../runtime/printable.js';
import { MAX_CHARACTERS, shown } from '../../runtime/texts.js';
import type { DecisionRecord, DescriptorRecord } from '../../service/record/decision-record.js';

/**
 * Version of the format, in the member `decision` of each line. It increases with each change that readers must know.
 */
const DECISION_FORMAT = 1;

/** Maximum number of characters of a line. Further descriptors are omitted and counted. */
export const MAX_LINE_CHARACTERS = 32 * 1024;

/** Names of envoy.type.v3.RateLimitUnit in protobuf JSON. */
const UNITS = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'];

/**
 * Returns a line of the decision log, with its line end: one JSON object per request. Members without a value are
 * omitted. `worker` is the number of the worker. Control characters in strings from callers are escaped, so that they
 * cannot affect a terminal.
 */
export function decisionLine(record: DecisionRecord, worker?: number): string {
  const { traceId, request, domain, code, reason, sample, wallMicros, micros } = record;
  let cut = record.moreDescriptors > 0 || domain.length > MAX_CHARACTERS;
  const head = printableJson({
    decision: DECISION_FORMAT,
    time: exactTimeText(wallMicros),
    ...(traceId !== '' && { trace_id: traceId }),
    ...(request !== '' && { request: shown(request) }),
    ...(worker !== undefined && { worker }),
    domain: shown(domain),
    code,
    ...(reason !== undefined && { reason }),
    sample,
    micros: Math.max(0, Math.round(micros)),
  });
  const texts: string[] = [];
  let length = head.length;
  let more = record.moreDescriptors;
  for (const descriptor of record.descriptors) {
    const text = printableJson(descriptorMembers(descriptor));
    cut ||= isCut(descriptor);
    length += text.length + 1;
    if (more > record.moreDescriptors || length > MAX_LINE_CHARACTERS) more++;
    else texts.push(text);
  }
  cut ||= more > 0;
  const end = `${more > 0 ? `,"more_descriptors":${more}` : ''}${cut ? ',"cut":true' : ''}}\n`;
  return `${head.slice(0, -1)},"descriptors":[${texts.join(',')}]${end}`;
}

function descriptorMembers(descriptor: DescriptorRecord): Readonly<Record<string, unknown>> {
  const { sent, moreEntries, override, rule, limit, remaining, holds } = descriptor;
  const { overSoftLimits } = descriptor;
  return {
    entries: descriptor.entries.map(shownEntry),
    ...(sent !== undefined && { sent: sent.map(shownEntry) }),
    ...(moreEntries > 0 && { more_entries: moreEntries }),
    hits: descriptor.hits,
    ...(descriptor.refund && { refund: true }),
    ...(override !== undefined && {
      override: { requests_per_unit: override.requestsPerUnit, unit: UNITS[override.unit] ?? override.unit },
    }),
    ...(rule !== '' && { rule: shown(rule) }),
    code: descriptor.code,
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining }),
    ...(descriptor.wouldBeThrottled && { would_be_throttled: true }),
    ...(overSoftLimits.length > 0 && { over_soft_limits: overSoftLimits.map((rule) => shown(rule)) }),
    ...(holds.length > 0 && {
      holds: holds.map((hold) => ({ ...hold, ...(hold.rule !== undefined && { rule: shown(hold.rule) }) })),
    }),
  };
}

function shownEntry({ key, value }: Entry): Entry {
  return { key: shown(key), value: shown(value) };
}

function isCut({ entries, sent = [], moreEntries }: DescriptorRecord): boolean {
  const isLong = ({ key, value }: Entry): boolean =>
    key.length > MAX_CHARACTERS || value.length > MAX_CHARACTERS;
  return moreEntries > 0 || entries.some(isLong) || sent.some(isLong);
}
