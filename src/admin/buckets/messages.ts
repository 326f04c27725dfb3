import type { Entry } from '../../limiter/entry.js';

/** What `/buckets` can do. */
export const BUCKET_ACTIONS = [
  'show',
  'reset',
  'grant',
  'block',
  'unblock',
  'allow',
  'disallow',
  'blocks',
] as const;
export type BucketAction = (typeof BUCKET_ACTIONS)[number];

/** The actions that change nothing, and need the right `read` only. */
export const READING_ACTIONS: ReadonlySet<BucketAction> = new Set(['show', 'blocks']);

/** The body of a POST to `/buckets`, JSON. */
export interface BucketQuestion {
  readonly action: BucketAction;
  /** May be left out where the policy has one domain only, and for `blocks`. */
  readonly domain?: string;
  /**
   * A descriptor, or some of its entries: before or after `derive`. None for `blocks`, and where `id` names a control.
   */
  readonly entries?: readonly Entry[];
  /** For `show`, `reset` and `grant`: the bucket of a limit override beside, such as `100/minute`. */
  readonly limit?: string;
  /** For `reset` and `grant`: only the limits of this rule (`Rule.path` or `Rule.name`). */
  readonly rule?: string;
  /** For `grant`: a whole number from 1 on. */
  readonly tokens?: number;
  /** For `grant`: also past full. */
  readonly over?: boolean;
  /** For `block` and `allow`: how long, as Go writes durations (`10m`, `1h30m`). */
  readonly for?: string;
  readonly reason?: string;
  /** For `unblock` and `disallow`: the control itself. */
  readonly id?: string;
  /** What would be done, and to what; nothing is changed. */
  readonly dry_run?: boolean;
}

/** Whether a question changes something. */
export function changesSomething({ action, dry_run }: Pick<BucketQuestion, 'action' | 'dry_run'>): boolean {
  return !READING_ACTIONS.has(action) && dry_run !== true;
}

/** What is there of a bucket. */
export interface BucketLevel {
  /** Whole tokens, or hits left in the window; more than the limit where more was granted. */
  readonly left: number;
  /** Tokens, or hits, that charges took beyond; 0 for none. */
  readonly debt: number;
  /** Until one token more is there, or the window ends, seconds; 0 for a full bucket. */
  readonly next_token_in: number;
  /** Until it is full, or the window ends, seconds; 0 for a full bucket. */
  readonly full_in: number;
}

/** One limit that a descriptor meets, and its bucket. */
export interface ShownBucket {
  /** `Rule.path`, or `override`. */
  readonly rule: string;
  /** `Rule.name`; '' without one. */
  readonly name: string;
  readonly algorithm: 'token_bucket' | 'fixed_window';
  /** Capacity of a bucket, hits of a window. */
  readonly limit: number;
  /** The limit in words, as `weir explain` has them. */
  readonly about: string;
  /** What it does to answers now: `enforce`, `observe`, `quota`, or `candidate`. */
  readonly enforcement: string;
  /** The entries that it is the bucket of, secrets redacted. */
  readonly entries: readonly Entry[];
  readonly redis_key: string | null;
  readonly redis_slot: number | null;
  /** Absent where a value is not known, so that there is no one bucket, and where it could not be asked. */
  readonly now?: BucketLevel;
  /** For changes, dry or not: before them; {@link now} is what was there, or would be, afterwards. */
  readonly before?: BucketLevel;
  /** Why there is no {@link now}, or what else must be known, a sentence. */
  readonly note?: string;
}

/** A block or an exemption, for people. */
export interface ShownControl {
  readonly id: string;
  readonly kind: 'block' | 'allow';
  readonly domain: string;
  /** Secrets redacted. */
  readonly identity: readonly Entry[];
  readonly reason: string;
  readonly by: string;
  /** Until it ends, seconds. */
  readonly ends_in: number;
}

/** The answer to a {@link BucketQuestion} with status 200. */
export interface BucketAnswer {
  readonly action: BucketAction;
  readonly dry_run: boolean;
  readonly domain: string | null;
  /** Secrets redacted, after `derive`. */
  readonly entries: readonly Entry[];
  /**
   * `descriptor`: the entries are a descriptor that limits apply to; `part`: limits could apply to descriptors that
   * have them; `nothing`: no limit could; `none`: nothing was asked about.
   */
  readonly meets: 'descriptor' | 'part' | 'nothing' | 'none';
  /** `memory`, or Redis and its address. */
  readonly store: string;
  readonly buckets: readonly ShownBucket[];
  /** Buckets, or rules, that are left out. */
  readonly more: number;
  /** Controls that name these entries, made or ended by the action, or asked for. */
  readonly controls: readonly ShownControl[];
  readonly more_controls: number;
  /** Whole sentences for people: what was done, and what else to know. */
  readonly notes: readonly string[];
}

/** The answer with any other status: what is wrong, and what to do. */
export interface BucketFailure {
  readonly error: string;
  /** Whether what was asked for may have been done nonetheless: nobody knows. */
  readonly maybe_done?: true;
}

/** The body of a POST to `/top`, JSON. */
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

/** One bucket of a {@link TopAnswer}. Numbers are estimates: at most `error` above what is true. */
export interface TopBucket {
  readonly domain: string;
  readonly rule: string;
  /** Secrets redacted, long values cut. */
  readonly entries: readonly Entry[];
  /** Of a limit that requests bring themselves (`override`): the limit, as the `limit` of a BucketQuestion has it. */
  readonly limit?: string;
  /** Requests denied. */
  readonly denied: number;
  readonly denied_error: number;
  /** Hits that were allowed. */
  readonly used: number;
  readonly used_error: number;
  /** How much of the limit was used when it was last seen, 0 to 1, or more. */
  readonly used_ratio: number;
}

/** The answer to a {@link TopQuestion} with status 200. */
export interface TopAnswer {
  /** Of one server, and another one with each start of it: two addresses may lead to one server. */
  readonly server?: string;
  readonly of: 'minute' | 'hour';
  readonly by: 'denied' | 'used';
  /** How long the numbers cover, seconds: less than a minute or an hour after a start. */
  readonly covers: number;
  /** Most that any estimate is too high, in requests and hits. */
  readonly error: { readonly denied: number; readonly used: number };
  /** One decision in so many was counted, that many times, in the busiest part; 1: all. */
  readonly sampled: number;
  readonly top: readonly TopBucket[];
}
