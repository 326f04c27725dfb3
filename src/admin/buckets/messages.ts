import type { Entry } from '../../limiter/entry.js';

export const BUCKET_ACTIONS = ['show', 'reset', 'grant', 'release'] as const;
export type BucketAction = (typeof BUCKET_ACTIONS)[number];

/** Read-only actions, which require only the right `read`. */
export const READING_ACTIONS: ReadonlySet<BucketAction> = new Set(['show']);

/** JSON body of a POST to `/buckets`. */
export interface BucketQuestion {
  readonly action: BucketAction;
  /** May be omitted if the policy has only one domain. */
  readonly domain?: string;
  /** A descriptor or some of its entries, before or after `derive`. */
  readonly entries: readonly Entry[];
  /** For `show`, `reset` and `grant`: also use the bucket of this override, such as `100/minute`. */
  readonly limit?: string;
  /** For `reset`, `grant` and `release`: only use limits of this rule (`Rule.path` or `Rule.name`). */
  readonly rule?: string;
  /** For `grant`: whole number of at least 1. */
  readonly tokens?: number;
  /** For `release`: ID of the hold ({@link ShownHold.id}). */
  readonly hold?: string;
  /** For `release`: all holds. */
  readonly all?: boolean;
  /** Returns the effect of the action without changing anything. */
  readonly dry_run?: boolean;
}

/** False for actions that only read, and for a dry run. */
export function changesSomething({ action, dry_run }: Pick<BucketQuestion, 'action' | 'dry_run'>): boolean {
  return !READING_ACTIONS.has(action) && dry_run !== true;
}

export interface BucketLevel {
  /** Remaining whole tokens, remaining hits of a window, or free slots of a concurrency limit. */
  readonly left: number;
  /** Tokens or hits that charges took below zero; 0 without debt. */
  readonly debt: number;
  /**
   * Seconds until the bucket has one more token, or until the window ends; 0 for a full bucket or an unused window.
   * Null for a concurrency limit, because weir does not know when a request ends, and for a limit of 0.
   */
  readonly next_token_in: number | null;
  /** Like {@link next_token_in}, until the bucket is full or the window ends. */
  readonly full_in: number | null;
  /** Requests in flight; only for a concurrency limit. */
  readonly in_flight?: number;
}

/** A hold: a slot of a request in flight, or a reservation. */
export interface ShownHold {
  readonly id: string;
  /** Slots, or reserved tokens or hits. */
  readonly amount: number;
  /** Seconds since the request began. */
  readonly age: number;
  /** Seconds until the hold expires. */
  readonly ends_in: number;
}

export interface ShownHolds {
  /** The first 100 to expire. */
  readonly list: readonly ShownHold[];
  /** Number of further slots or reservations. */
  readonly more: number;
}

/** A limit of a descriptor, with its bucket. */
export interface ShownBucket {
  /** `Rule.path`, or `override`. */
  readonly rule: string;
  /** `Rule.name`; '' without one. */
  readonly name: string;
  readonly algorithm: 'token_bucket' | 'fixed_window' | 'concurrency';
  /** Capacity of a bucket, or hits of a window. */
  readonly limit: number;
  /** Description of the limit, as in `weir explain`. */
  readonly about: string;
  /** Current effect of the limit: `enforce`, `observe`, `quota`, or `spill`. */
  readonly enforcement: string;
  /** Entries of the bucket, with secrets redacted. */
  readonly entries: readonly Entry[];
  readonly redis_key: string | null;
  readonly redis_slot: number | null;
  /** Absent if a value is unknown, so that the limit has many buckets, or if the store did not answer. */
  readonly now?: BucketLevel;
  /** For changes and dry runs: the level before the change. {@link now} is the level after it. */
  readonly before?: BucketLevel;
  /** Holds of the bucket, for `show`. Only a limit with holds has them. */
  readonly holds?: ShownHolds;
  /** Number of holds that `release` or `reset` ended; for a dry run, the number that it would end. */
  readonly released?: number;
  /** Sentence with the reason for a missing {@link now}, or with further information. */
  readonly note?: string;
}

/** Answer to a {@link BucketQuestion} with status 200. */
export interface BucketAnswer {
  readonly action: BucketAction;
  readonly dry_run: boolean;
  readonly domain: string;
  /** Entries after `derive`, with secrets redacted. */
  readonly entries: readonly Entry[];
  /**
   * `descriptor`: limits apply to the entries as a descriptor. `part`: limits could apply to descriptors with these
   * entries. `nothing`: no limit could apply.
   */
  readonly meets: 'descriptor' | 'part' | 'nothing';
  /** `memory`, or the addresses of Redis. */
  readonly store: string;
  readonly buckets: readonly ShownBucket[];
  /** Number of omitted buckets or rules. */
  readonly more: number;
  /** Sentences about the action and further information. */
  readonly notes: readonly string[];
}

/** Answer with any other status: the error and its remedy. */
export interface BucketFailure {
  readonly error: string;
  /** Whether the action may have succeeded, although its result is unknown. */
  readonly maybe_done?: true;
}

/** JSON body of a POST to `/top`. */
export interface TopQuestion {
  /** Default: denied. */
  readonly by?: 'denied' | 'used';
  /** Default: minute. */
  readonly of?: 'minute' | 'hour';
  readonly domain?: string;
  /** `Rule.path`. */
  readonly rule?: string;
  /** Default: 20, at most 1000. */
  readonly limit?: number;
}

/** A bucket of a {@link TopAnswer}. The numbers are estimates that are too high by at most `error`. */
export interface TopBucket {
  readonly domain: string;
  readonly rule: string;
  /** Entries with secrets redacted and long values shortened. */
  readonly entries: readonly Entry[];
  /** Limit of an override, in the syntax of BucketQuestion's `limit`. */
  readonly limit?: string;
  /** Plan of the customer when weir first counted the bucket, if the limit has values of `plans`. */
  readonly plan?: string;
  /** Denied requests. */
  readonly denied: number;
  readonly denied_error: number;
  /** Allowed hits. */
  readonly used: number;
  readonly used_error: number;
  /** Used fraction of the limit at the last request, 0 to 1, or more. */
  readonly used_ratio: number;
}

/** Answer to a {@link TopQuestion} with status 200. */
export interface TopAnswer {
  /** ID of the server process. It changes with each start, and is the same for all addresses of a server. */
  readonly server?: string;
  readonly of: 'minute' | 'hour';
  readonly by: 'denied' | 'used';
  /** Seconds that the numbers cover: less than a minute or an hour after a start. */
  readonly covers: number;
  /** Maximum error of any estimate, in requests and hits. */
  readonly error: { readonly denied: number; readonly used: number };
  /** Number of decisions per sample in the busiest part; 1 if all were counted. */
  readonly sampled: number;
  readonly top: readonly TopBucket[];
}
