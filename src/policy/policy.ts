import type { Entry } from '../limiter/entry.js';
import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import { hasPlanValues } from './plans/plan-rules.js';
import type { PlanTable } from './plans/plan-table.js';
import { canDeny, type DeniedResponse, type HeaderFamilies, type PhaseSchedule, type Rule } from './rule.js';

/**
 * Meanings of `requests_per_unit`: a number of requests in each window, or a token bucket that refills at that rate.
 */
export const ALGORITHMS = ['fixed_window', 'token_bucket'] as const;
export type Algorithm = (typeof ALGORITHMS)[number];
/** Default algorithm. */
export const DEFAULT_ALGORITHM: Algorithm = 'fixed_window';

/** Default key of the entry that contains the token of a request's holds at its end (HOLD_ENTRY). */
export const DEFAULT_HOLD_ENTRY = 'hold';

/**
 * Reports for descriptors that match no rule (`on_unmatched`): a warning in the log, or nothing if this is intended.
 * They are allowed in both cases.
 */
export const UNMATCHED_MODES = ['warn', 'ignore'] as const;
export type UnmatchedMode = (typeof UNMATCHED_MODES)[number];

/** The result of matching one descriptor. */
export interface Match {
  /**
   * The rules that apply, in file order. Empty if no node matched, or the node has no rules. An unlimited rule has no
   * other rule next to it.
   */
  readonly rules: readonly Rule[];
  /** The bucket of each rule for these entries ({@link Take.key}). */
  readonly keys: readonly string[];
  readonly hashTagLength: number;
  /** Phase and failure policy of the node where the descriptor ended, or of the file; used for limit overrides. */
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  /**
   * The entries after `derive`; the same array if nothing was derived. They never contain an API key of a derive table.
   */
  readonly entries: readonly Entry[];
  /** `on_unmatched` of the last node that matched, or of its nearest ancestor; undefined if there are rules. */
  readonly onUnmatched: UnmatchedMode | undefined;
  /**
   * {@link Rule.statName} of each rule, with this request's values where they are part of it. Secret values are
   * redacted.
   */
  readonly statNames: readonly string[];
}

/** Settings of a domain that its nodes do not repeat. */
export interface DomainSettings {
  /** Undefined if the file does not set them; then the settings of the environment apply. */
  readonly responseHeaders: HeaderFamilies | undefined;
  /** The same for headers of the request upstream. */
  readonly requestHeaders: HeaderFamilies | undefined;
  /** Body for denied requests; undefined for none. */
  readonly deniedResponse: DeniedResponse | undefined;
  /** Whether dynamic metadata names the rule that decided; undefined if the file does not set it. */
  readonly decisionMetadata: boolean | undefined;
  /** Algorithm of limit overrides: `algorithm` of the file, or of the environment. */
  readonly overrideAlgorithm: Algorithm;
}

/** State of a domain, as shown in `/rlconfig?format=json`, `/healthcheck?detail` and metrics. */
export interface DomainStatus {
  readonly domain: string;
  /** The files, or xDS resources, that contain the domain, sorted. */
  readonly files: readonly string[];
  /**
   * `ok`: in sync with the files. `kept`: the files are invalid, and the previous version is in effect. `absent`: the
   * files are invalid, and there is no previous version.
   */
  readonly state: 'ok' | 'kept' | 'absent';
}

/** The properties of a node that count. */
interface PossibleNode {
  readonly phase: PhaseSchedule;
  readonly rules: readonly Rule[];
  /** See {@link PolicyNode.hasCustomer}. */
  readonly hasCustomer: boolean;
}

/** The properties of the rows of plans that count. */
type PossibleRows = Pick<PlanTable, 'hasBlocked' | 'hasActive'>;

/** Rules that are active from `activeAtMicros` on, for `percent` of all requests. */
interface Denier {
  readonly activeAtMicros: number;
  readonly percent: number;
}

const ALWAYS = Number.NEGATIVE_INFINITY;

/**
 * Whether any rule of a domain may deny a request that was not matched. Rules that cannot deny do not count, see
 * {@link canDeny}. A row of plans may activate a rule with values from the plan, and if it blocks the customer, soft
 * limits deny, too.
 */
export class PossibleDenial {
  private readonly plans: PossibleRows | undefined;
  /** Rules that no other one dominates: the higher the percentage, the later the start. */
  private deniers: readonly Denier[] = [];
  /** When a node is active for the first time. */
  private nodesActiveAtMicros = Number.POSITIVE_INFINITY;
  private hasRules = false;
  private isEnforced = false;

  constructor(plans: PossibleRows | undefined) {
    this.plans = plans;
  }

  /** Adds a node of the domain. */
  add({ phase, rules, hasCustomer }: PossibleNode): void {
    this.nodesActiveAtMicros = Math.min(this.nodesActiveAtMicros, phase.activeAtMicros);
    const mayBeBlocked = hasCustomer && this.plans?.hasBlocked === true;
    for (const [index, rule] of rules.entries()) {
      const { enforcePercent } = rule;
      this.hasRules = true;
      if (enforcePercent > 0) this.isEnforced = true;
      if (!canDeny(mayBeBlocked ? { ...rule, onOver: undefined } : rule)) continue;
      const mayBeActivated = this.plans?.hasActive === true && hasPlanValues(rules, index);
      const activeAtMicros = mayBeActivated ? ALWAYS : rule.phase.activeAtMicros;
      this.addDenier({ activeAtMicros, percent: enforcePercent });
    }
  }

  private addDenier(denier: Denier): void {
    if (this.deniers.some((other) => dominates(other, denier))) return;
    this.deniers = [...this.deniers.filter((other) => !dominates(denier, other)), denier];
  }

  /**
   * Returns whether a limit override that was not read may deny: whether a node is active, with or without rules, and
   * the domain enforces any of its rules.
   */
  overrideMayDeny(wallMicros: number): boolean {
    // A domain whose rules all have `enforce_percent: 0` only monitors.
    const onlyMonitors = this.hasRules && !this.isEnforced;
    return !onlyMonitors && wallMicros >= this.nodesActiveAtMicros;
  }

  /**
   * Returns whether any rule may deny. `percent` draws the number to compare with `enforce_percent`, and is called only
   * if needed.
   */
  mayDeny(wallMicros: number, percent: () => number): boolean {
    for (const denier of this.deniers) {
      if (wallMicros < denier.activeAtMicros) continue;
      if (denier.percent === 100 || percent() < denier.percent) return true;
    }
    return false;
  }
}

function dominates(one: Denier, other: Denier): boolean {
  return one.percent >= other.percent && one.activeAtMicros <= other.activeAtMicros;
}
