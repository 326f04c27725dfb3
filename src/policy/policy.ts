import type { Entry } from '../limiter/entry.js';
import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import type { MatchWork } from './match-work.js';
import type { PlanTable } from './plans/plan-table.js';
import type { PossibleDenial } from './possible-denial.js';
import type { DeniedResponse, HeaderFamilies, PhaseSchedule, Rule } from './rule.js';

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
  /** The bucket of each rule for these entries ({@link TakeItem.key}). */
  readonly keys: readonly string[];
  readonly tagLength: number;
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

/** The part of a domain's policy that decisions need. */
export interface DomainPolicy extends DomainSettings {
  readonly domain: string;
  /** The policy file, with the name that the user gave; if several are merged, separated by commas. */
  readonly file: string;
  /** Phase and failure policy of the file, which apply to nodes without their own. */
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  /**
   * Entry keys with secret values, which are redacted wherever they are shown: the sources of `sha256` tables of all
   * loaded domains.
   */
  readonly secretKeys: ReadonlySet<string>;
  /** Whether any rule has `hold`. */
  readonly hasHolds: boolean;
  /** Whether a rule has `on_over`. */
  readonly hasSoftLimits: boolean;
  /** Whether a rule has `then`. */
  readonly hasSpills: boolean;
  /** The rows of `plans`; undefined without it. */
  readonly plans: PlanTable | undefined;
  /** All rules of the tree, in file order. */
  readonly rules: readonly Rule[];
  /** The rules of the whole domain that may deny. */
  readonly denial: PossibleDenial;
  /**
   * Runs `derive`, then walks the tree. Never fails, but the result means nothing if {@link MatchWork.exceeded} is set
   * afterwards. Without `work` there are no bounds. The entries must not change afterwards, because the result for the
   * same object is used again.
   */
  match(entries: readonly Entry[], work?: MatchWork): Match;
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
