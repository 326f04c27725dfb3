import { throttledLog } from '../runtime/throttled-log.js';
import type { DecisionWarnings } from '../service/decision-observer.js';
import type { DecisionLine } from '../service/record/decision-line.js';
import { shown } from '../shown-text.js';
import type { Logger } from '../telemetry/logger.js';
import { ChargeWarnings } from './policies/charge-warnings.js';
import type { UnmatchedWarnings } from './unmatched-warnings.js';

/** Most limits that the log names, until the server ends, for requests that can never pass. */
const MAX_NAMED_LIMITS = 1000;
/** Most characters that say why nothing matched. */
const MAX_REASON_CHARACTERS = 500;

/** What a line of the decision log holds beside what it was told. */
type ShownLine = Omit<DecisionLine, 'unmatched'> & { readonly why?: string };

const WORK_EXCEEDED = 'matching took more work than a request may cause';

/** A line of the decision log with its long texts cut: bounded, whatever was asked. */
function shownLine(
  { unmatched, ...line }: DecisionLine,
  warnings: Pick<UnmatchedWarnings, 'why'>,
): ShownLine {
  const { domain, rule, request, control } = line;
  const entries = line.entries.map(({ key, value }) => ({ key: shown(key), value: shown(value) }));
  const all = { ...line, request: shown(request), domain: shown(domain), rule: shown(rule), entries };
  if (control?.reason !== undefined) all.control = { ...control, reason: shown(control.reason) };
  if (unmatched === undefined) return all;
  if (unmatched === 'work') return { ...all, why: WORK_EXCEEDED };
  // Of more entries than are shown no rule is near.
  const keys = unmatched === 'domain' ? undefined : line.entries.map(({ key }) => key);
  return { ...all, why: shown(warnings.why(domain, keys), MAX_REASON_CHARACTERS) };
}

/** Warns of what an operator should know of, and logs each decision at level debug. */
export class LoggedWarnings implements DecisionWarnings {
  readonly unlimited: UnmatchedWarnings;
  readonly charges: ChargeWarnings;
  readonly #log: Logger;
  /** The level is a setting: it never changes. */
  readonly #logsDecisions: boolean;
  readonly #shouldLogWork: () => boolean;
  readonly #shouldLogRules: () => boolean;
  /** Rules that the log has named for requests that can never pass. */
  readonly #warnedRules = new WeakSet();
  /** The same rules by name and limit: a reload makes each rule anew. */
  readonly #warnedLimits = new Set<string>();

  constructor(log: Logger, unlimited: UnmatchedWarnings, nowMs: () => number = () => performance.now()) {
    this.unlimited = unlimited;
    this.charges = new ChargeWarnings(log, nowMs);
    this.#log = log;
    this.#logsDecisions = log.isLevelEnabled('debug');
    this.#shouldLogWork = throttledLog(nowMs);
    this.#shouldLogRules = throttledLog(nowMs);
  }

  matchExceeded(domain: string, key: string, denied: boolean): void {
    const text = 'a value takes more work to match than a request may cause';
    if (this.#shouldLogWork()) this.#log.warn({ domain, key: shown(key), denied }, text);
  }

  neverPasses(domain: string, rule: string, hits: number, limit: number, about: object): void {
    // A limit of 0 is there to deny everything.
    if (limit === 0 || this.#warnedRules.has(about)) return;
    const name = `${domain} ${rule} ${limit}`;
    if (this.#warnedLimits.has(name) || this.#warnedLimits.size >= MAX_NAMED_LIMITS) {
      this.#warnedRules.add(about);
      return;
    }
    if (!this.#shouldLogRules()) return;
    this.#warnedRules.add(about);
    this.#warnedLimits.add(name);
    const text =
      'a request asks for more hits at once than this limit ever allows (descriptors that fall on one bucket ' +
      'count together): where the limit is enforced it is denied however long its caller waits; send fewer ' +
      'hits in one request, or raise the limit';
    this.#log.warn({ domain, rule: shown(rule), hits, limit }, text);
  }

  givenUp(domain: string, why: 'late' | 'full', denied: boolean): void {
    const text =
      'requests that take long wait for each other, and some had to be answered before they were looked at';
    if (this.#shouldLogWork()) this.#log.warn({ domain, why, denied }, text);
  }

  logsDecisions(): boolean {
    return this.#logsDecisions;
  }

  logDecision(line: DecisionLine): void {
    this.#log.debug(shownLine(line, this.unlimited), 'decision');
  }
}
