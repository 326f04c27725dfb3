import type { Rate } from '../limiter/rate.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { describeLimit, describeMicros } from '../policy/describe.js';
import { loweredBy } from '../policy/leases.js';
import type { Rule } from '../policy/rule.js';
import { plural } from '../runtime/texts.js';
import type { NoLimit } from './limits-needed.js';
import { type LineFault, NO_REQUEST, UNREADABLE } from './log-request.js';
import { JUMP_MICROS, type ReplayOptions, type ReplayResult } from './replay.js';
import type { LogMap } from './replay-map.js';
import { type CallerRow, MAX_CALLERS, type Row, type RuleRow } from './tally.js';

/** A bound of the newly denied requests (`--max-newly-denied`). */
export interface Bound {
  /** As it was given: `0`, `0.1%`. */
  readonly text: string;
  readonly max: number;
  readonly isPercent: boolean;
}

/** What the report is about. */
export interface ReportInput extends Pick<ReplayOptions, 'policy' | 'map' | 'by' | 'logs'> {
  readonly result: ReplayResult;
  readonly policyName: string;
  readonly againstName: string | undefined;
  readonly bound: Bound | undefined;
}

/** The report, as `--json` writes it. */
export type Report = ReturnType<typeof reportOf>;

/** Part of the lines that may be unreadable for a gate to have a result. */
const MAX_UNREADABLE = 0.001;

/** Maximum number of rules that a note names. */
const MAX_PATHS = 5;

/** Creates the report of a replay. */
export function reportOf(input: ReportInput) {
  const { result, by } = input;
  const { tally, firstMicros, lastMicros } = result;
  const rules = [...tally.rules].sort(byEffect).flatMap(([, row]) => (row.requests > 0 ? [row] : []));
  const callers = [...tally.callers].sort(byEffect);
  return {
    policy: input.policyName,
    /** The policy to compare with; null: what the log says. */
    against: input.againstName ?? null,
    logs: input.logs,
    /** Whether the replay was stopped before the end of the logs. */
    partial: result.isPartial,
    from: timeText(firstMicros),
    to: timeText(Number.isNaN(firstMicros) ? firstMicros : lastMicros),
    lines: result.lines,
    total: countsOf(tally.all),
    /** Requests over limits that do not deny because of the phase, shadow mode or `enforce_percent`. */
    over: tally.over,
    rules: rules.map((row) => ({ domain: row.domain, rule: row.label, ...countsOf(row), over: row.over })),
    /** Requests that met no rule. */
    withoutRule: countsOf(tally.unmatched),
    limits: limitsOf(input, rules),
    callers:
      by === undefined
        ? null
        : {
            key: by,
            rows: callers.map(([caller, row]) => ({ caller, ...callerCountsOf(row) })),
            others: callerCountsOf(tally.otherCallers),
            without: callerCountsOf(tally.withoutCaller),
          },
    unreadable: linesOf(result, UNREADABLE),
    noRequests: linesOf(result, NO_REQUEST),
    notes: notesOf(input),
    /** Why the numbers are not reliable; null if they are. */
    doubt: doubtOf(result) ?? null,
    gate: gateOf(input),
  };
}

function callerCountsOf(row: CallerRow) {
  const newlyDeniedBy = [...(row.newlyDeniedBy ?? [])].map(({ domain, label }) => ({ domain, rule: label }));
  return { ...countsOf(row), newlyDeniedBy };
}

function countsOf({ requests, before, after, newlyDenied, newlyAllowed }: Row): Omit<Row, 'add'> {
  return { requests, before, after, newlyDenied, newlyAllowed };
}

/** Orders rows by their newly denied requests, then by their requests, then by name. */
function byEffect([a, rowA]: readonly [string, Row], [b, rowB]: readonly [string, Row]): number {
  return rowB.newlyDenied - rowA.newlyDenied || rowB.requests - rowA.requests || (a < b ? -1 : 1);
}

function timeText(micros: number): string | null {
  return Number.isNaN(micros) ? null : new Date(micros / 1000).toISOString();
}

/** Returns the limits of rules that would have denied nobody, at most 0.1%, and at most 1% of their requests. */
function limitsOf({ result, policy }: ReportInput, rows: readonly RuleRow[]) {
  return [...policy.domains.values()].flatMap(({ domain, rules }) =>
    rules.flatMap((rule) => {
      const { path, plan } = rule;
      const needed = result.needed.get(rule);
      const hasRequests = rows.some((row) => row.domain === domain && row.label === path);
      if (!hasRequests || (needed === undefined && plan === undefined)) return [];
      const why =
        needed === undefined
          ? 'the numbers come from the rows of the table of plans'
          : whyText(needed.why, rule);
      const [nobody = null, tenth = null, percent = null] = needed?.limits ?? [];
      const limits = { deniesNobody: nobody, deniesTenthPercent: tenth, deniesOnePercent: percent };
      // `why`: why a limit is null.
      const lowered = loweredBy(rule);
      const limit = describeLimit(rule) + (lowered === 0 ? '' : `, and ${lowered} for leases`);
      return [{ domain, rule: path, limit, ...limits, why }];
    }),
  );
}

function whyText(why: NoLimit | undefined, { rate }: Rule): string | null {
  if (why === undefined) return null;
  if (why.kind === 'short_log')
    return 'the log is shorter than one window of this limit; replay a log that contains a whole window';
  if (why.kind === 'debt') return 'with allow_debt, a window takes its excess from the next window';
  const callers = plural(why.callers, 'caller');
  const sends = why.callers === 1 ? 'sends' : 'send';
  return (
    `${callers} ${sends} more than the limit refills during the whole log, by up to ${percentText(why.excess)}; ` +
    `a larger max_tokens only delays their denials, so raise the refill${refillText(rate, why.excess)}`
  );
}

/** Returns the refill with which nobody would send more than it. */
function refillText(rate: Rate | undefined, excess: number): string {
  if (rate?.kind !== 'token_bucket') return '';
  // Sums of microseconds are not exact.
  const tokens = Math.ceil(rate.tokensPerFill * (1 + excess) * (1 - 1e-9));
  return ` to ${countText(tokens)} every ${describeMicros(rate.fillIntervalMicros)}`;
}

function linesOf({ faults }: ReplayResult, reasons: Partial<Record<LineFault, string>>) {
  return [...faults].flatMap(([fault, { count, first, remedy = null }]) => {
    const reason = reasons[fault];
    return reason === undefined ? [] : [{ reason, lines: count, first, remedy }];
  });
}

function unreadableLines(result: ReplayResult): number {
  const lines = linesOf(result, UNREADABLE).reduce((sum, one) => sum + one.lines, 0);
  return lines + result.facts.badDurations;
}

function gateOf({ result, bound }: ReportInput) {
  if (bound === undefined) return null;
  const { requests, newlyDenied } = result.tally.all;
  const max = bound.isPercent ? (requests * bound.max) / 100 : bound.max;
  const isExceeded = newlyDenied > max;
  const part = result.isPartial && !isExceeded ? 'only a part of the logs was read' : undefined;
  const doubt = doubtOf(result) ?? part;
  const found = `${countText(newlyDenied)} of ${quantityText(requests, 'request')} would be newly denied`;
  const outcome = doubt !== undefined ? 'undecided' : isExceeded ? 'exceeded' : 'kept';
  return { maxNewlyDenied: bound.text, result: outcome, why: doubt ?? found } as const;
}

/** Returns why the numbers do not support a verdict. */
function doubtOf(result: ReplayResult): string | undefined {
  const { tally, lines, late, facts, holdsWithoutEnd } = result;
  const { requests } = tally.all;
  const bad = unreadableLines(result);
  if (bad > lines * MAX_UNREADABLE) return `${countText(bad)} of ${countText(lines)} lines cannot be read`;
  if (requests === 0) return 'the logs have no requests';
  if (tally.unmatched.requests === requests) return 'no request matches a rule of the policy';
  if (late > requests * MAX_UNREADABLE)
    return `${quantityText(late, 'request')} came too late to be sorted by time`;
  if (facts.sample < 1) return 'the log is only a sample of the requests';
  if (holdsWithoutEnd + facts.holdsWithoutId > requests * MAX_UNREADABLE)
    return 'the log does not tell when requests end, which limits with holds need';
  return undefined;
}

function notesOf(input: ReportInput): readonly string[] {
  const { result, map, by, againstName, policyName } = input;
  const { tally, facts, late, holdsWithoutEnd, evictions } = result;
  const notes: string[] = [];
  const add = (count: number, sentence: (text: string) => string, what = 'request'): void => {
    if (count > 0) notes.push(sentence(quantityText(count, what)));
  };
  if (map !== undefined && againstName === undefined)
    notes.push(...sourceNotes(map, facts.explained, tally.all.requests));
  if (map !== undefined && againstName === undefined && tally.all.newlyAllowed > 0)
    notes.push(
      'BEFORE comes from the log, whose times are a little earlier than the decisions. Even the policy that wrote ' +
        'the log would change a few requests. Compare two policies with --against.',
    );
  const named = map?.start.descriptors.flatMap((entries) => entries.flatMap(({ from }) => from?.text ?? []));
  const isRead = tally.all.requests > 0 || result.faults.has('no_values');
  for (const member of new Set(isRead ? named : []))
    if (!facts.members.has(member))
      notes.push(`No request has a value of "${member}", which the map names; check its name.`);
  const seconds = JUMP_MICROS / 1e6;
  add(
    late,
    (text) =>
      `${text} came more than ${seconds} seconds after later ones, and were decided on arrival: a file probably ` +
      'contains several logs one after the other. Pass each log as a file of its own; weir merges them by time.',
  );
  if (facts.badDurations > 0) {
    const example = String(JSON.stringify(facts.badDuration));
    const unit = map?.durationUnitMicros === undefined ? '; plain numbers need duration_unit in the map' : '';
    notes.push(
      `${quantityText(facts.badDurations, 'request')} had no readable duration, such as ${example}${unit}. Their ` +
        'holds expire.',
    );
  }
  add(
    holdsWithoutEnd,
    (text) =>
      `${text} placed holds whose end the log does not tell, and ended at once. Limits on concurrent requests and ` +
      'reservations need "duration" in the map, or the decision log of a server with the same limits.',
  );
  add(
    facts.holdsWithoutId,
    (text) =>
      `${text} of the decision log with holds came from a version of weir that logs no ids of holds. Their ends were ` +
      'left out.',
    'line',
  );
  if (facts.sample < 1) {
    notes.push(
      `The log is a sample of the requests (down to ${percentText(facts.sample)}), so all numbers are too low, and ` +
        'fewer requests are denied than in production. Set DECISION_LOG_SAMPLE to 1.',
    );
  }
  add(
    facts.cut,
    (text) => `${text} of the decision log are shortened, and were decided with what they contain.`,
    'line',
  );
  for (const [domain, count] of tally.unknownDomains)
    add(
      count,
      (text) =>
        `${policyName} has no policy for the domain "${domain}", which ${text} named: they are allowed.`,
    );
  for (const [why, count] of tally.undecided) add(count, (text) => `${text} could not be decided: ${why}.`);
  add(
    tally.ambiguous,
    (text) =>
      `${text} met several rules and were denied according to the log, which does not name the rule. BEFORE counts ` +
      'them for the rules that deny them now, else for all of their rules.',
  );
  add(
    tally.otherCallers.requests,
    (text) => `${text} of callers after the first ${countText(MAX_CALLERS)} are added up in (other).`,
  );
  if (map !== undefined && tally.all.requests > 0 && tally.unmatched.requests === tally.all.requests)
    notes.push(noRuleNote(map, input.policy, policyName));
  if (by !== undefined && tally.all.requests > 0 && tally.withoutCaller.requests === tally.all.requests)
    notes.push(
      `No request has an entry "${by}"; specify a key of the descriptors, or one that "derive" sets.`,
    );
  add(
    evictions,
    (text) => `${text} were dropped because there were too many. Their callers began with full ones again.`,
    'bucket',
  );
  if (tally.all.requests === 0) return notes;
  notes.push(
    'Callers do not react in a replay: denied requests are not repeated, and retries in the log are still sent.',
  );
  return notes;
}

/** Compares the descriptors of a map with a policy that has no rule for them. */
function noRuleNote({ start, domain, file }: LogMap, { domains }: PolicySet, policyName: string): string {
  const sent = start.descriptors.map((entries) => entries.map(({ key }) => key).join(', '));
  const paths = (domains.get(domain)?.rules ?? []).map(({ path }) => path);
  const more = paths.length > MAX_PATHS ? ', …' : '';
  return (
    `No request matches a rule of ${policyName}. Compare the keys of the descriptors in ${file} (` +
    `${sent.join('; ')}) with the rules of the policy: ${paths.slice(0, MAX_PATHS).join('; ')}${more}.`
  );
}

function sourceNotes(
  { flags, details, status, file }: LogMap,
  explained: number,
  requests: number,
): readonly string[] {
  if (flags === undefined && details === undefined) {
    if (status === undefined)
      return [`${file} names no "flags", "details" or "status", so BEFORE counts no denials.`];
    return [
      `BEFORE counts all responses with status 429, also those of upstreams: ${file} names no "flags" or "details".`,
    ];
  }
  if (explained > 0 || requests === 0) return [];
  const names = [flags?.text, details?.text].filter((name) => name !== undefined).join(' or ');
  return [`No line has a value of ${names}, so BEFORE counts no denials; check the names in ${file}.`];
}

/** Formats a number with separators: `1,204`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** Formats a number with its noun: `1,204 requests`. */
export function quantityText(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Formats a share: `0.12%`, `29%`. */
export function percentText(share: number): string {
  const percent = share * 100;
  if (percent === 0 || percent >= 10) return `${countText(Math.round(percent))}%`;
  return `${Number(percent.toPrecision(2))}%`;
}
