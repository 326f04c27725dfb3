import { printableLine } from '../../printable.js';
import { unsortedWarning } from './log-sentences.js';
import { entryOf, entryText, groupNoun, shownName, shownRule } from './names.js';
import { countText, intervalText, lostShare } from './numbers.js';
import type { Affected, GateGroup, GateReport, GateVerdict, Offender, ReplayReport } from './report.js';

/** A bound of `--max-newly-denied` on the requests that a change may newly deny. */
export interface Gate {
  /** The group that the bound applies to; undefined means all requests. */
  readonly group?: GateGroup;
  /** `40` or `0.1%`, as written. */
  readonly bound: string;
  readonly unit: 'requests' | 'share';
  readonly most: number;
}

/** Number of offenders of a gate. */
const NAMED = 5;
/** Remark about a policy in the phase `monitoring`, for example. */
const UNDENIED = 'requests over limits that do not deny are not counted (see --as-active)';
/** Value of a group that means each value. */
export const EACH_VALUE = '*';

/** Numbers of requests, and of those that a change newly denies. */
type Loss = Pick<Affected, 'requests' | 'newlyDenied'>;

/** The numbers of a report that gates check. */
type GatedReport = Pick<ReplayReport, 'partial' | 'log' | 'total' | 'rules' | 'groups'>;

/** The requests by value of an entry key. */
export interface CountedGroups {
  readonly key: string;
  /** Whether all values were counted. */
  readonly isComplete: boolean;
  lossOf(value: string): Loss | undefined;
  losses(): Iterable<readonly [value: string, loss: Loss]>;
}

/** Reads a bound: `0`, `0.1%`, `tenant=acme:0` or `tenant=*:0`. Returns an error message if it is invalid. */
export function parseGate(text: string): Gate | string {
  const [, key, value, bound = text] = /^(?:([^=]+)=(.*):)?([^:]*)$/s.exec(text) ?? [];
  const problem = boundProblem(bound);
  if (problem !== undefined) {
    const place = `--max-newly-denied ${shownName(text)}`;
    return `${place}: ${problem}. Examples: 0, 0.1%, tenant=acme:0`;
  }
  const share = bound.endsWith('%');
  return {
    ...(key !== undefined && value !== undefined && { group: { key, value } }),
    bound,
    unit: share ? 'share' : 'requests',
    most: share ? Number(bound.slice(0, -1)) / 100 : Number(bound),
  };
}

function boundProblem(bound: string): string | undefined {
  const [, number, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(bound) ?? [];
  if (number === undefined) {
    if (bound === '') return 'the bound is missing';
    return `'${shownName(bound)}' is not a number of requests or a percentage`;
  }
  if (percent === '%') return Number(number) > 100 ? `'${bound}' is more than 100%` : undefined;
  if (!Number.isSafeInteger(Number(number))) return `'${bound}' is not a whole number of requests`;
  return undefined;
}

/**
 * Returns which groups must be counted for the gates, by key: the named ones, or all of them (undefined). `by` is the
 * key whose groups are counted in any case.
 */
export function gateGroups(
  gates: readonly Gate[],
  by: string | undefined,
): ReadonlyMap<string, ReadonlySet<string> | undefined> {
  const named = new Map<string, Set<string>>();
  for (const { group } of gates) {
    if (group === undefined) continue;
    const values = named.get(group.key) ?? new Set();
    named.set(group.key, values.add(group.value));
  }
  const all = [...named].map(([key, values]) => [key, values.has(EACH_VALUE) ? undefined : values] as const);
  return new Map([
    ...(by === undefined ? [] : [[by, undefined] as const]),
    ...all.filter(([key]) => key !== by),
  ]);
}

/**
 * Checks the gates against a report. `groups` are the groups of {@link gateGroups}. `doubt`: why the log cannot decide
 * any gate, as a clause.
 */
export function checkGates(
  gates: readonly Gate[],
  report: GatedReport,
  groups: readonly CountedGroups[],
  doubt?: string,
): readonly GateReport[] {
  return gates.map((gate) => {
    const { group, bound } = gate;
    const counted = groups.find(({ key }) => key === group?.key);
    const found = group?.value === EACH_VALUE ? checkEach(gate, counted) : checkOne(gate, report, counted);
    const { verdict } = found;
    const reason = doubt ?? doubtAbout(gate, report, found, counted);
    const hasUndenied = report.rules.some(({ wouldBeThrottled }) => wouldBeThrottled > 0);
    return {
      name: 'max-newly-denied',
      ...(group !== undefined && { group }),
      bound,
      ...found,
      verdict: reason === undefined ? verdict : 'undecided',
      ...(reason !== undefined && { reason }),
      ...(reason === undefined && verdict === 'passed' && hasUndenied && { remark: UNDENIED }),
      offenders: reason === undefined && verdict === 'failed' ? found.offenders : [],
    };
  });
}

/** Returns the worst verdict; `passed` without gates. */
export function worstVerdict(gates: readonly GateReport[]): GateVerdict {
  const verdicts = gates.map(({ verdict }) => verdict);
  return (['failed', 'undecided'] as const).find((verdict) => verdicts.includes(verdict)) ?? 'passed';
}

type Found = Pick<GateReport, 'verdict' | 'requests' | 'newlyDenied' | 'values' | 'offenders'>;

const NO_LOSS: Loss = { requests: 0, newlyDenied: { least: 0, most: 0 } };

function checkOne(gate: Gate, report: GatedReport, counted: CountedGroups | undefined): Found {
  const { group } = gate;
  const loss = (group === undefined ? report.total : counted?.lossOf(group.value)) ?? NO_LOSS;
  const offenders = group === undefined ? offendersOf(report) : [offender({ group }, loss)];
  return { verdict: verdictOn(gate, loss), ...lossOf(loss), offenders };
}

/** Checks the bound for each group on its own. */
function checkEach(gate: Gate, counted: CountedGroups | undefined): Found {
  const group = gate.group ?? { key: '', value: '' };
  const scale = ({ requests }: Loss): number => (gate.unit === 'share' ? requests : 1);
  const worst: { readonly value: string; readonly loss: Loss; readonly size: number }[] = [];
  const exceeding = { least: 0, most: 0 };
  let count = 0;
  for (const [value, loss] of counted?.losses() ?? []) {
    count++;
    const verdict = verdictOn(gate, loss);
    if (verdict === 'failed') exceeding.least++;
    if (verdict !== 'passed') exceeding.most++;
    const { least, most } = loss.newlyDenied;
    // The certain losses decide; the possible ones only order equal groups.
    const size = (least + most / 1e9) / scale(loss);
    if (size <= (worst[NAMED - 1]?.size ?? -1)) continue;
    worst.push({ value, loss, size });
    worst.sort((one, other) => other.size - one.size);
    worst.length = Math.min(worst.length, NAMED);
  }
  return {
    verdict: exceeding.least > 0 ? 'failed' : exceeding.most > 0 ? 'undecided' : 'passed',
    ...lossOf(worst[0]?.loss ?? NO_LOSS),
    values: { count, exceeding },
    offenders: worst
      .filter(({ loss }) => verdictOn(gate, loss) === 'failed')
      .map(({ value, loss }) => offender({ group: { ...group, value } }, loss)),
  };
}

/** Relative error of a product of two numbers, so that 7 of 1,000 requests are not more than 0.7%. */
const ROUNDING = 1e-12;

function verdictOn({ unit, most }: Gate, { newlyDenied, requests }: Loss): GateVerdict {
  const bound = unit === 'share' ? most * requests * (1 + ROUNDING) : most;
  if (newlyDenied.least > bound) return 'failed';
  return newlyDenied.most > bound ? 'undecided' : 'passed';
}

/** Returns why the numbers of the report do not decide a gate; undefined if they do. */
function doubtAbout(
  { unit, group }: Gate,
  { log, partial }: GatedReport,
  { verdict, requests, values }: Found,
  counted: CountedGroups | undefined,
): string | undefined {
  if (requests === 0)
    return `the log has no request ${group === undefined ? '' : 'of this group '}that a limit applies to`;
  if (unsortedWarning(log).length > 0)
    return 'too many requests came too late to be sorted by time (see the warning)';
  if (log.sample !== undefined) return 'the log is only a sample of the requests';
  // The rest of the log cannot reduce a number of requests, but it can reduce their share.
  if (partial !== undefined && !(verdict === 'failed' && unit === 'requests')) {
    return `the report covers only part of the log, because ${printableLine(partial)}`;
  }
  if (values !== undefined && verdict !== 'failed' && counted?.isComplete === false)
    return 'there were too many groups to count all of them';
  return verdict === 'undecided' ? 'the times in the log do not tell in which order they arrived' : undefined;
}

/** Returns the groups that lose most, or the rules without `--by`. */
function offendersOf({ groups, rules }: GatedReport): readonly Offender[] {
  const all =
    groups?.shown.map((each) => offender({ group: { ...entryOf(groups), value: each.value } }, each)) ??
    rules.map((each) => offender({ rule: { domain: each.domain, rule: each.rule } }, each));
  return all.filter(({ newlyDenied }) => newlyDenied.most > 0).slice(0, NAMED);
}

function offender(name: Pick<Offender, 'group' | 'rule'>, loss: Loss): Offender {
  return { ...name, ...lossOf(loss) };
}

function lossOf({ requests, newlyDenied }: Loss): Loss {
  return { requests, newlyDenied };
}

/** Returns a gate as on the command line: `tenant=acme:0`. */
export function gateText({ group, bound }: Pick<GateReport, 'group' | 'bound'>): string {
  return group === undefined ? bound : `${groupText(group)}:${bound}`;
}

/** Returns the result of a gate in words, after its verdict: `2 of 5 requests (40%) would be newly denied`. */
export function gateResultText({
  group,
  requests,
  newlyDenied,
  values,
  reason,
  remark,
  offenders,
}: GateReport): string {
  if (requests === 0 && reason !== undefined) return reason;
  const found =
    values === undefined
      ? `${intervalText(newlyDenied)} of ${countText(requests)} requests (${lostShare({ requests, newlyDenied })})`
      : `more requests of ${intervalText(values.exceeding)} of ${countText(values.count)} ` +
        groupNoun(group ?? { key: '' }, values.count);
  const named = group === undefined || values !== undefined ? offenders.map(offenderText) : [];
  const names = named.length === 0 ? '' : `: ${named.join(', ')}`;
  const more = remark === undefined ? '' : `; ${remark}`;
  return `${found} would be newly denied${reason === undefined ? names : `, but ${reason}`}${more}`;
}

function offenderText({ group, rule, ...loss }: Offender): string {
  const name =
    group === undefined
      ? `rule ${shownRule(rule?.rule ?? '')} in domain ${shownName(rule?.domain ?? '')}`
      : groupText(group);
  return `${name} ${intervalText(loss.newlyDenied)} of ${countText(loss.requests)} (${lostShare(loss)})`;
}

function groupText(group: GateGroup): string {
  return `${entryText(group)}=${shownName(group.value)}`;
}
