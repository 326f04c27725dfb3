import type { Entry } from '../limiter/entry.js';
import type { LoggedCall } from './log-request.js';

/** Numbers of requests of one row of the report. `before` + `newlyDenied` - `newlyAllowed` = `after`. */
export class Row {
  requests = 0;
  /** Denied according to the log, or by the policy to compare with. */
  before = 0;
  after = 0;
  newlyDenied = 0;
  newlyAllowed = 0;

  add(isBefore: boolean, isAfter: boolean): void {
    this.requests++;
    if (isBefore) this.before++;
    if (isAfter) this.after++;
    if (isAfter && !isBefore) this.newlyDenied++;
    if (isBefore && !isAfter) this.newlyAllowed++;
  }
}

/** The row of a rule. It counts a request if this rule denied it. */
export class RuleRow extends Row {
  readonly domain: string;
  readonly label: string;
  /** Requests over the limit that the phase, shadow mode or `enforce_percent` allowed. */
  over = 0;
  /** Number of the latest request that met the rule, and what the rule did with it. */
  seen = 0;
  latest = { before: false, after: false, over: false };

  constructor(domain: string, label: string) {
    super();
    this.domain = domain;
    this.label = label;
  }
}

/** The row of a caller. */
export class CallerRow extends Row {
  /** The rules that newly denied its requests; undefined before the first one. */
  newlyDeniedBy: Set<RuleRow> | undefined;
}

/** A limit that a request met. */
export interface LimitUse {
  readonly row: RuleRow;
  denied: boolean;
  /** Whether the hits did not fit, but the phase, shadow mode or `enforce_percent` allowed them. */
  over: boolean;
}

/** How one policy decided the latest call. */
export class Verdict {
  denied = false;
  /** Why the call got no decision: it was refused, or given up because of a bound. */
  undecided = '';
  /** The domain of the call if it has no policy. */
  unknownDomain: string | undefined;
  readonly uses: LimitUse[] = [];
  /** Entries of a descriptor after `derive`; undefined if no limit applied. */
  entries: readonly Entry[] | undefined;
}

/** Maximum number of callers with rows of their own. */
export const MAX_CALLERS = 100_000;

/** Adds up requests by rule, and by caller. */
export class Tally {
  readonly all = new Row();
  /** Requests that met no rule. */
  readonly unmatched = new Row();
  readonly rules = new Map<string, RuleRow>();
  readonly callers = new Map<string, CallerRow>();
  /** Callers beyond {@link MAX_CALLERS}. */
  readonly otherCallers = new CallerRow();
  /** Requests without the key of the callers. */
  readonly withoutCaller = new CallerRow();
  /** Requests over a limit that does not deny, by any rule. */
  over = 0;
  /** Requests that the log says were denied, that met several rules, and of which the log does not name the rule. */
  ambiguous = 0;
  /** Requests without a decision of the new policy, by reason. */
  readonly undecided = new Map<string, number>();
  /** Requests to domains without a policy. */
  readonly unknownDomains = new Map<string, number>();
  readonly #by: string | undefined;
  #touched: RuleRow[] = [];

  /** `by`: key of the entries whose values are the callers. */
  constructor(by: string | undefined) {
    this.#by = by;
  }

  readonly rowOf = (domain: string, label: string): RuleRow => {
    const name = `${domain}\0${label}`;
    let row = this.rules.get(name);
    if (row === undefined) {
      row = new RuleRow(domain, label);
      this.rules.set(name, row);
    }
    return row;
  };

  /** Adds a request. `before`: the verdict of the policy to compare with; undefined if the log says what happened. */
  add(call: LoggedCall, before: Verdict | undefined, after: Verdict): void {
    const isBefore = before === undefined ? call.denied : before.denied;
    this.all.add(isBefore, after.denied);
    this.#addToRules(call, before, after);
    if (this.#by !== undefined) this.#addToCaller(this.#rowOfCaller(call, this.#by, after), isBefore, after);
    if (after.undecided !== '') increment(this.undecided, after.undecided);
    if (after.unknownDomain !== undefined) increment(this.unknownDomains, after.unknownDomain);
  }

  #addToRules(call: LoggedCall, before: Verdict | undefined, after: Verdict): void {
    this.#touched = [];
    let isOver = false;
    let isDenied = false;
    for (const { row, denied, over } of after.uses) {
      const use = this.#touch(row);
      use.after ||= denied;
      isDenied ||= denied;
      if (!over || use.over) continue;
      isOver = true;
      use.over = true;
      row.over++;
    }
    if (isOver) this.over++;
    if (before !== undefined) this.#addUsesBefore(before.uses);
    else if (call.denied) this.#addLogged(call, isDenied);
    if (this.#touched.length === 0) this.unmatched.add(before?.denied ?? call.denied, after.denied);
    for (const row of this.#touched) row.add(row.latest.before, row.latest.after);
  }

  #addToCaller(caller: CallerRow, isBefore: boolean, { denied }: Verdict): void {
    caller.add(isBefore, denied);
    if (isBefore || !denied) return;
    caller.newlyDeniedBy ??= new Set();
    for (const row of this.#touched) if (row.latest.after) caller.newlyDeniedBy.add(row);
  }

  #addUsesBefore(uses: readonly LimitUse[]): void {
    for (const { row, denied } of uses) this.#touch(row).before ||= denied;
  }

  /** Finds the rules that denied a request before: those in the log and those that deny it now, else all. */
  #addLogged({ deniedBy, request }: LoggedCall, isDenied: boolean): void {
    if (deniedBy.length > 0) {
      for (const label of deniedBy) this.#touch(this.rowOf(request.domain, label)).before = true;
      // A line names one limit of each descriptor. Others that deny the request now do not deny it newly.
      for (const { latest } of this.#touched) latest.before ||= latest.after;
      return;
    }
    if (this.#touched.length > 1) this.ambiguous++;
    for (const { latest } of this.#touched) latest.before = latest.after || !isDenied;
  }

  #touch(row: RuleRow): RuleRow['latest'] {
    if (row.seen !== this.all.requests) {
      row.seen = this.all.requests;
      row.latest = { before: false, after: false, over: false };
      this.#touched.push(row);
    }
    return row.latest;
  }

  #rowOfCaller({ request }: LoggedCall, by: string, { entries }: Verdict): CallerRow {
    let caller = entries && valueIn(entries, by);
    for (let at = 0; caller === undefined && at < request.descriptors.length; at++) {
      caller = valueIn(request.descriptors[at]?.entries ?? [], by);
    }
    if (caller === undefined) return this.withoutCaller;
    const known = this.callers.get(caller);
    if (known !== undefined) return known;
    if (this.callers.size >= MAX_CALLERS) return this.otherCallers;
    const row = new CallerRow();
    this.callers.set(caller, row);
    return row;
  }
}

function valueIn(entries: readonly Entry[], key: string): string | undefined {
  for (let at = 0; at < entries.length; at++) if (entries[at]?.key === key) return entries[at]?.value;
  return undefined;
}

/** Adds one to a number in a map. */
export function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
