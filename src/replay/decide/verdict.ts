import type { Rate } from '../../limiter/rate.js';
import type { TakeOutcome } from '../../limiter/take-outcome.js';
import type { DenialRun } from '../tally/denial-run.js';
import { OpenVerdicts } from './open-verdicts.js';

/**
 * Whether something was denied. The times of a log are not exact, so the log may leave it open: the same requests in
 * another order may have another verdict.
 */
export class Verdict {
  denied = false;
  /** Set if another order of the requests, which the times in the log allow, has the opposite verdict. */
  open: OpenVerdicts | undefined;

  /** Whether it was denied in every order. */
  get isDenied(): boolean {
    return this.denied && this.open === undefined;
  }

  /** Whether it was denied in some order. */
  get mayBeDenied(): boolean {
    return this.denied || this.open !== undefined;
  }

  /** Determines whether the verdict is open, once later requests cannot change that. */
  settle(): void {}
}

/** The fields of a take in {@link MetLimit}. */
export type MetTake = Pick<
  MetLimit,
  'key' | 'domain' | 'label' | 'rate' | 'hits' | 'refund' | 'outcome' | 'isEnforced'
>;

/** The bucket of a limit. */
export interface LimitBucket {
  readonly denialRun: DenialRun;
  /** Returns where to add a verdict that is open. */
  openVerdicts(): OpenVerdicts;
  /** Records that a take may have been made or not, because another limit of its request is open. */
  disturb(limit: MetLimit): void;
}

/** A limit that a request met, and whether the limit denied it. */
export class MetLimit extends Verdict {
  /** Name of the bucket. */
  readonly key: string;
  readonly domain: string;
  /** `Rule.path`, or `override`. */
  readonly label: string;
  readonly rate: Rate;
  readonly hits: number;
  readonly refund: boolean;
  readonly outcome: TakeOutcome;
  /** Whether the limit may deny: not in phase `monitoring`, for example. */
  readonly isEnforced: boolean;
  /** Whether the hits exceeded the limit, but did not deny the request. */
  wouldBeThrottled = false;
  /** Undefined if there are too many buckets to track. */
  bucket: LimitBucket | undefined;
  /** The capacity that would have allowed the hits if all earlier ones had been allowed; 0 if it is unknown. */
  wantedCapacity = 0;
  /** The verdict of the whole request. */
  request: RequestVerdict | undefined;

  constructor(take: MetTake) {
    super();
    this.key = take.key;
    this.domain = take.domain;
    this.label = take.label;
    this.rate = take.rate;
    this.hits = take.hits;
    this.refund = take.refund;
    this.outcome = take.outcome;
    this.isEnforced = take.isEnforced;
  }

  /** Marks this verdict as open. Then it is also unknown what the request took from its other buckets. */
  markOpen(): void {
    if (this.open !== undefined || !this.isEnforced || this.bucket === undefined) return;
    this.open = this.bucket.openVerdicts();
    this.open.add(this.denied);
    for (const other of this.request?.limits ?? []) if (other !== this) other.bucket?.disturb(other);
  }
}

/** The decision of a policy on one request. */
export class RequestVerdict extends Verdict {
  readonly limits: MetLimit[] = [];

  override settle(): void {
    const deciding = this.limits.filter((limit) => limit.isEnforced && (limit.denied || !this.denied));
    const open = deciding.filter((limit) => limit.open !== undefined);
    const isOpen = this.denied ? open.length > 0 && open.length === deciding.length : open.length > 0;
    if (isOpen) this.open = open.length === 1 ? open[0]?.open : singleOpen(this.denied);
  }
}

/** Returns an open verdict that depends on several buckets, so that nothing is known about its denial. */
function singleOpen(isDenied: boolean): OpenVerdicts {
  const open = new OpenVerdicts();
  open.add(isDenied);
  open.widen(1);
  open.close();
  return open;
}
