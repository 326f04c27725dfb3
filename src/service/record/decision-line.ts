import type { Entry } from '../../limiter/entry.js';
import { redactEntries } from '../../policy/redact.js';
import type { Rule } from '../../policy/rule.js';
import { tightestOf } from '../answer/denial.js';
import type { DescriptorState } from '../request-context.js';
import { codeName } from './decision-record.js';
import type { ReportedRequest } from './record-of.js';

/** Maximum number of logged descriptors per request. */
export const MAX_LOGGED_DESCRIPTORS = 100;
/** Maximum number of logged entries per descriptor, so that people can read a line. */
export const MAX_LOGGED_ENTRIES = 32;

/** A line of the decision log at level debug; see docs/operate/logs.md. */
export interface DecisionLine {
  /** {@link Caller.requestName}: the same in all lines of one request; '' if it has no name. */
  readonly request: string;
  readonly domain: string;
  /** The descriptor's entries after `derive`, with secrets redacted. */
  readonly entries: readonly Entry[];
  /** Number of omitted entries; absent for none. */
  readonly moreEntries?: number;
  /** The limit that {@link remaining} describes: `Rule.path`, or `override`. It is '' if nothing matched. */
  readonly rule: string;
  /** Why nothing matched: the domain has no policy, or no rule matches the entries. */
  readonly unmatched: 'domain' | 'entries' | undefined;
  readonly code: 'OK' | 'OVER_LIMIT';
  /** Absent if no limit applied. */
  readonly remaining: number | undefined;
  /** Microseconds from the first decoded byte to the answer, including the store. */
  readonly micros: number;
}

/** The part of a line that describes the decision. */
type LoggedDecision = Pick<DecisionLine, 'rule' | 'unmatched' | 'code' | 'remaining'>;

export function decisionLine(
  { caller, policy }: ReportedRequest,
  entries: readonly Entry[],
  decided: LoggedDecision,
  micros: number,
): DecisionLine {
  const more = entries.length - MAX_LOGGED_ENTRIES;
  const logged = more > 0 ? entries.slice(0, MAX_LOGGED_ENTRIES) : entries;
  return {
    request: caller.requestName ?? '',
    domain: policy.domain,
    entries: redactEntries(logged, policy.secretKeys),
    ...(more > 0 && { moreEntries: more }),
    ...decided,
    micros,
  };
}

/** The decision for a descriptor whose domain has no policy. */
export const LOGGED_UNKNOWN_DOMAIN: LoggedDecision = {
  rule: '',
  unmatched: 'domain',
  code: 'OK',
  remaining: undefined,
};

export function unlimitedRule({ takes, match }: DescriptorState): Rule | undefined {
  return takes.length === 0 ? match.rules[0] : undefined;
}

export function loggedLimits(state: DescriptorState, overLimit: boolean): LoggedDecision {
  const { takes } = state;
  const shown = tightestOf(takes, undefined);
  const rule = shown?.rulePath ?? takes[0]?.rulePath ?? unlimitedRule(state)?.path ?? '';
  return {
    rule,
    unmatched: rule !== '' || state.onlySettles ? undefined : 'entries',
    code: codeName(overLimit),
    remaining: shown?.outcome.remaining,
  };
}
