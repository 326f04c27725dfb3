import { printableLine } from '../../printable.js';
import { entryOf, groupNoun, ruleText, shownName } from './names.js';
import { countText, intervalText, lostShare } from './numbers.js';
import type { GroupReport, Interval, ReplayReport } from './report.js';

/** Number of groups, and of rules, that the headline names. */
const NAMED = 3;

/**
 * Returns the effect of the change as sentences: `12 of 240 tenants would lose requests: acme 1,204 of 9,000
 * (13%), …`.
 */
export function headline(report: ReplayReport): readonly string[] {
  const { total, partial } = report;
  const loss = total.requests === 0 ? nothingSentence(report) : lossSentence(report);
  return [
    ...partialSentence(partial),
    loss,
    ...gainSentence(total.newlyAllowed),
    ...undeniedSentence(report),
  ];
}

/** Returns a sentence if the report does not cover the whole log. */
export function partialSentence(partial: string | undefined): readonly string[] {
  return partial === undefined
    ? []
    : [`This report covers only part of the log, because ${printableLine(partial)}.`];
}

/** Returns the only finding of a report without requests. */
export function nothingSentence({ after, before }: ReplayReport): string {
  const policies = before.kind === 'policy' ? `${before.name} or ${after.name}` : after.name;
  return `The log has no request that a limit of ${printableLine(policies)} applies to.`;
}

function lossSentence(report: ReplayReport): string {
  const { named, more } = mostAffected(report);
  const names = [...named.map(({ name, loss }) => `${name} ${loss}`), ...(more === '' ? [] : [more])];
  return `${lossClause(report)}${names.length === 0 ? '' : `: ${names.join(', ')}`}.`;
}

/** The groups that would lose most: `acme`, `1,204 of 9,000 (13%)`; and `and 9 more`, or ''. */
export interface MostAffected {
  readonly named: readonly { readonly name: string; readonly loss: string }[];
  readonly more: string;
}

/** Returns the groups that the headline names. */
export function mostAffected({ groups }: ReplayReport): MostAffected {
  const named = (groups?.shown ?? []).filter(isHit).slice(0, NAMED).map(nameAndLoss);
  const more = (groups?.affected.most ?? 0) - named.length;
  return { named, more: named.length > 0 && more > 0 ? `and ${countText(more)} more` : '' };
}

/** Returns how much the change would deny, without names and a period: `12 of 240 tenants would lose requests`. */
export function lossClause({ total, groups, after }: ReplayReport): string {
  if (groups !== undefined) {
    const { count, affected } = groups;
    const who = `${countText(count)} ${groupNoun(entryOf(groups), count)}`;
    return `${affected.most === 0 ? 'None' : intervalText(affected)} of ${who} would lose requests`;
  }
  const name = printableLine(after.name);
  const { newlyDenied, requests } = total;
  if (newlyDenied.most === 0) return `${name} would not deny any request that was allowed`;
  const share = `${intervalText(newlyDenied)} of ${countText(requests)} requests (${lostShare(total)})`;
  return `${name} would deny ${share} that were allowed`;
}

function isHit({ newlyDenied }: GroupReport): boolean {
  return newlyDenied.most > 0;
}

function nameAndLoss(group: GroupReport): MostAffected['named'][number] {
  const { value, newlyDenied, requests } = group;
  const loss = `${intervalText(newlyDenied)} of ${countText(requests)} (${lostShare(group)})`;
  return { name: shownName(value), loss };
}

/** Returns a sentence if requests would be newly allowed. */
export function gainSentence(newlyAllowed: Interval): readonly string[] {
  if (newlyAllowed.most === 0) return [];
  const are = newlyAllowed.most === 1 ? 'request that was denied' : 'requests that were denied';
  return [`${intervalText(newlyAllowed)} ${are} would be allowed.`];
}

/** Returns a sentence if requests are over limits that do not deny. */
export function undeniedSentence({ rules }: Pick<ReplayReport, 'rules'>): readonly string[] {
  const undenied = rules
    .filter(({ wouldBeThrottled }) => wouldBeThrottled > 0)
    .toSorted((one, other) => other.wouldBeThrottled - one.wouldBeThrottled);
  if (undenied.length === 0) return [];
  const named = undenied
    .slice(0, NAMED)
    .map(
      (rule) => `${ruleText(rule, rules)} ${countText(rule.wouldBeThrottled)} of ${countText(rule.requests)}`,
    );
  const more = undenied.length - named.length;
  const names = more > 0 ? [...named, `and ${countText(more)} more`] : named;
  return [
    'Requests over a limit that did not deny them, because of its phase (see --as-active), shadow mode, percentage ' +
      `or on_over: ${names.join(', ')}.`,
  ];
}
