import type { Entry } from '../limiter/entry.js';
import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import type { EXCEEDED, MatchWork } from './match-work.js';
import type { PossibleDenial } from './possible-denial.js';
import type { DeniedResponse, HeaderFamilies, PhaseSchedule, Rule } from './rule.js';

/** What `requests_per_unit` means: so many in each window, or a token bucket that refills at that rate. */
export const ALGORITHMS = ['fixed_window', 'token_bucket'] as const;
export type Algorithm = (typeof ALGORITHMS)[number];
/** Where nobody says. */
export const DEFAULT_ALGORITHM: Algorithm = 'fixed_window';

/**
 * What is said of descriptors that no rule matches (`on_unmatched`): a warning in the log, or nothing, as they are
 * meant to have no limit. Either way they pass.
 */
export const UNMATCHED_MODES = ['warn', 'ignore'] as const;
export type UnmatchedMode = (typeof UNMATCHED_MODES)[number];
/** Where nobody says. */
export const DEFAULT_UNMATCHED_MODE: UnmatchedMode = 'warn';

/** Matching a descriptor took more work than there was: nobody knows which rules apply to it. */
export interface Exceeded {
  /** Of the entry whose value took too much, or that `derive` was about to make. */
  readonly key: string;
  /** The rules that might have applied. */
  readonly denial: PossibleDenial;
  /** Whether `derive` came to its end, so that {@link Match.entries} are what they should be. */
  readonly isDerived: boolean;
}

/** What one descriptor met in the tree. */
export interface Match {
  /**
   * The rules that apply, in file order, a candidate last; none when no node matched, or the node holds none. An
   * unlimited rule stands alone, but for a candidate.
   */
  readonly rules: readonly Rule[];
  /** Bucket of each rule for these entries ({@link TakeItem.key}). */
  readonly keys: readonly string[];
  readonly tagLength: number;
  /** Phase and failure policy in force where the descriptor ended: the node's, else the file's. For limit overrides. */
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  /**
   * The entries after `derive`; the same array when nothing was derived. Never hold a raw API key of a derive table.
   */
  readonly entries: readonly Entry[];
  /** Then there are no rules, though some may apply. */
  readonly exceeded: Exceeded | undefined;
  /** What the node at which the way ended says of that, else the nearest above; undefined where there are rules. */
  readonly onUnmatched: UnmatchedMode | undefined;
  /**
   * {@link Rule.statName} of each rule, with this request's values where they enter it, those of credentials redacted.
   */
  readonly statNames: readonly string[];
}

/** Settings of a domain that its nodes do not carry. */
export interface DomainSettings {
  /** Absent when the file does not say: then the environment's header settings count. */
  readonly responseHeaders: HeaderFamilies | undefined;
  /** The same for the headers that go upstream with the request. */
  readonly requestHeaders: HeaderFamilies | undefined;
  /** What denied callers get; absent: nothing beside the status. */
  readonly deniedResponse: DeniedResponse | undefined;
  /** Whether answers name the rule that decided in their dynamic metadata; absent when the file does not say. */
  readonly decisionMetadata: boolean | undefined;
  /** Whether a limit override, too, is a token bucket: `algorithm` of the file, else the environment's. */
  readonly overrideAlgorithm: Algorithm;
}

/** What deciding a request asks of the policy of a domain. */
export interface DomainPolicy extends DomainSettings {
  readonly domain: string;
  /** The file that holds it, as the user named it; several, separated by commas, when they are merged. */
  readonly file: string;
  /** Phase and failure policy of the file: what holds where no node says otherwise. */
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  /**
   * Entry keys whose values are secrets: to be redacted wherever they are shown. Sources of a `sha256` table, of
   * whatever domain is in force beside this one.
   */
  readonly secretKeys: ReadonlySet<string>;
  /** Every rule of the tree, in file order. */
  readonly rules: readonly Rule[];
  /** All rules of the domain. */
  readonly denial: PossibleDenial;
  /**
   * Runs `derive`, then walks the tree. Never fails, but may cost more than `work` has left ({@link Match.exceeded});
   * then it may be called again with the same entries and more work, and goes on where it ended, as far as regular
   * expressions are concerned. Without `work` it takes what it needs.
   */
  match(entries: readonly Entry[], work?: MatchWork): Match;
  /** What `derive` makes of entries, which need not be a whole descriptor; see {@link Match.entries}. */
  derived(entries: readonly Entry[], work?: MatchWork): readonly Entry[] | typeof EXCEEDED;
}

/**
 * How one domain stands: what `/rlconfig?format=json`, `/healthcheck?detail` and metrics show beside the policies in
 * force.
 */
export interface DomainStatus {
  readonly domain: string;
  /** The files, or xDS resources, that name the domain, sorted. */
  readonly files: readonly string[];
  /**
   * `ok`: as the files say. `kept`: they are bad, and the last good version is in force. `absent`: they are bad, and
   * there was none.
   */
  readonly state: 'ok' | 'kept' | 'absent';
}
