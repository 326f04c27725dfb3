import { printableLine } from '../../printable.js';
import type { HideValue } from './hide-values.js';
import { shownName, shownPath } from './names.js';
import { countText, intervalText, lostShare } from './numbers.js';
import type { Affected, ReplayReport } from './report.js';

/** A bound of `--max-newly-denied` on the requests that a change may newly deny. */
export interface Gate {
  /** The group that the bound applies to; undefined means all requests. */
  readonly group?: { readonly key: string; readonly value: string };
  /** `40` or `0.1%`, as written. */
  readonly bound: string;
  readonly unit: 'requests' | 'share';
  readonly most: number;
}

/** The result of a gate. `undecided` means that the log does not tell whether the bound is kept. */
export type Verdict = 'passed' | 'undecided' | 'failed';

/** The result of all gates, with one sentence for each. */
export interface GateResult {
  readonly verdict: Verdict;
  readonly lines: readonly string[];
}

/** Number of offenders that a sentence names. */
const NAMED = 5;

/** Reads a bound: `0`, `0.1%` or `tenant=acme:0`. Returns an error message if it is invalid. */
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

/** Returns an error message if a gate names a key other than that of `--by`. */
export function gateProblem(gates: readonly Gate[], by: string | undefined): string | undefined {
  const other = gates.find(({ group }) => group !== undefined && group.key !== by)?.group?.key;
  if (other === undefined) return undefined;
  const key = shownName(other);
  const now = by === undefined ? '' : ` instead of --by ${shownName(by)}`;
  return `--max-newly-denied ${key}=…: the report has no groups by ${key}. Set --by ${key}${now}`;
}

/**
 * Checks the gates against a report from {@link hideValues} with the same `hide`. The report must show each group that
 * a gate names and that the log contains.
 */
export function checkGates(gates: readonly Gate[], report: ReplayReport, hide: HideValue): GateResult {
  const results = gates.map((gate) => checkGate(gate, report, hide));
  const verdicts = results.map(({ verdict }) => verdict);
  const worst = (['failed', 'undecided'] as const).find((verdict) => verdicts.includes(verdict));
  return { verdict: worst ?? 'passed', lines: results.map(({ line }) => line) };
}

interface Checked {
  readonly verdict: Verdict;
  readonly line: string;
}

function checkGate(gate: Gate, report: ReplayReport, hide: HideValue): Checked {
  const { group } = gate;
  const value = group && hide(group.key, group.value);
  const subject = group === undefined ? '' : `${shownName(group.key)}=${shownName(value ?? '')}`;
  const name = `--max-newly-denied ${subject === '' ? '' : `${subject}:`}${gate.bound}`;
  const affected = group === undefined ? report.total : shownGroup(report, value);
  const said = (verdict: Verdict, text: string): Checked => ({
    verdict,
    line: `${name}: ${verdict}: ${text}`,
  });
  if (affected === undefined || affected.requests === 0) {
    return said(
      'undecided',
      `the log has no request${subject === '' ? '' : ` of ${subject}`} that a limit applies to`,
    );
  }
  const { newlyDenied, requests } = affected;
  const share = `${intervalText(newlyDenied)} of ${countText(requests)} requests (${lostShare(affected)})`;
  const found = `${share} would be newly denied`;
  const verdict = verdictOn(gate, affected);
  const doubt = doubtAbout(gate, report, verdict);
  if (doubt !== undefined) return said('undecided', `${found}, but ${doubt}`);
  const offenders = verdict === 'failed' && group === undefined ? offendersText(report) : '';
  return said(verdict, `${found}${offenders}`);
}

function shownGroup({ groups }: ReplayReport, value: string | undefined): Affected | undefined {
  return groups?.shown.find((group) => group.value === value);
}

function verdictOn({ unit, most }: Gate, { newlyDenied, requests }: Affected): Verdict {
  const scale = unit === 'share' ? requests : 1;
  if (newlyDenied.least > most * scale) return 'failed';
  return newlyDenied.most > most * scale ? 'undecided' : 'passed';
}

/** Returns why the numbers of the report do not decide a gate; undefined if they do. */
function doubtAbout({ unit }: Gate, { log, partial }: ReplayReport, verdict: Verdict): string | undefined {
  if (log.sample !== undefined) return 'the log is only a sample of the requests';
  // The rest of the log cannot reduce a number of requests, but it can reduce their share.
  if (partial !== undefined && !(verdict === 'failed' && unit === 'requests')) {
    return `the report covers only part of the log, because ${printableLine(partial)}`;
  }
  return verdict === 'undecided' ? 'the times in the log do not tell in which order they arrived' : undefined;
}

/** Names the groups that lose most, or the rules without `--by`. */
function offendersText({ groups, rules }: ReplayReport): string {
  const named =
    groups?.shown.map((group) => ({ ...group, name: `${shownName(groups.by)}=${shownName(group.value)}` })) ??
    rules.map((rule) => ({
      ...rule,
      name: `rule ${shownPath(rule.rule)} in domain ${shownName(rule.domain)}`,
    }));
  const offenders = named.filter(({ newlyDenied }) => newlyDenied.most > 0).slice(0, NAMED);
  if (offenders.length === 0) return '';
  const texts = offenders.map(
    (one) => `${one.name} ${intervalText(one.newlyDenied)} of ${countText(one.requests)} (${lostShare(one)})`,
  );
  return `: ${texts.join(', ')}`;
}
