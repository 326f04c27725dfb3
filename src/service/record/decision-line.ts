import type { Entry } from '../../limiter/entry.js';
import { redactEntries } from '../../policy/redact.js';
import { tightestOf } from '../answer/denial.js';
import { type ReportedControl, reportedControl } from '../controls/reported-control.js';
import type { Decision } from '../plan.js';
import { codeName } from './decision-record.js';
import type { ReportedRequest } from './record-of.js';

/** Descriptors of one request that are logged. */
export const MAX_LOGGED_DESCRIPTORS = 100;
/** Entries of one descriptor that are logged; a line is for people to read. */
export const MAX_LOGGED_ENTRIES = 32;

/** One line of the log of decisions at level debug; see docs/operate/logs.md. */
export interface DecisionLine {
  /** {@link Caller.requestName}: the same in all lines of one request; '' where nobody named it. */
  readonly request: string;
  readonly domain: string;
  /** The descriptor's entries after `derive`, secrets redacted. */
  readonly entries: readonly Entry[];
  /** How many entries are left out; absent for none. */
  readonly moreEntries?: number;
  /**
   * Of the limit that {@link remaining} is of: `Rule.path`, `override`, the kind of {@link control}, or '' where
   * nothing matched, and where another descriptor is blocked.
   */
  readonly rule: string;
  /** Why nothing matched: no policy has the domain, no rule these entries, or matching took too much work. */
  readonly unmatched: 'domain' | 'entries' | 'work' | undefined;
  readonly code: 'OK' | 'OVER_LIMIT';
  /** Absent where no limit applied. */
  readonly remaining: number | undefined;
  /** What the `candidate` of the node would have answered; absent where there is none. */
  readonly candidate: 'OK' | 'OVER_LIMIT' | undefined;
  /** The block or exemption that decided it; absent where limits did. */
  readonly control?: ReportedControl | undefined;
  /** From the first byte decoded to the answer, the store's time included. */
  readonly micros: number;
}

/** What became of one descriptor, as its line says. */
type LoggedDecision = Pick<
  DecisionLine,
  'rule' | 'unmatched' | 'code' | 'remaining' | 'candidate' | 'control'
>;

/** Returns the line of a descriptor with these entries. */
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

/** What is logged of a descriptor whose domain no policy has. */
export const LOGGED_UNKNOWN_DOMAIN: LoggedDecision = {
  rule: '',
  unmatched: 'domain',
  code: 'OK',
  remaining: undefined,
  candidate: undefined,
};

/** The path of the unlimited rule that decides a descriptor; '' for none. */
export function unlimitedRule({ takes, match }: Decision): string {
  const first = takes.length === 0 ? match.rules[0] : undefined;
  return first === undefined || first.candidate ? '' : first.path;
}

/** What is logged of a descriptor that limits decided. */
export function loggedLimits(decision: Decision, overLimit: boolean): LoggedDecision {
  const { takes, match, candidate } = decision;
  const shown = tightestOf(takes, undefined);
  const rule = shown?.label ?? takes[0]?.label ?? unlimitedRule(decision);
  const candidateOver = candidate?.outcome?.limited;
  return {
    rule,
    unmatched: rule !== '' ? undefined : match.exceeded === undefined ? 'entries' : 'work',
    code: codeName(overLimit),
    remaining: shown?.outcome.remaining,
    candidate: candidateOver === undefined ? undefined : codeName(candidateOver),
  };
}

/** What is logged of a descriptor that a control decided, or that is not decided because another one is blocked. */
export function loggedControl({ control }: Decision): LoggedDecision {
  return {
    rule: control?.kind ?? '',
    unmatched: undefined,
    code: codeName(control?.kind === 'block'),
    remaining: undefined,
    candidate: undefined,
    control: control && reportedControl(control),
  };
}
