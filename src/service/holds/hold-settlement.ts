import type { Take } from '../../limiter/bucket-store.js';
import type { HoldId, HoldValues } from '../../limiter/holds/hold.js';
import { correctionOf } from '../../limiter/holds/settlement.js';
import type { Rate } from '../../limiter/rate.js';
import type { FairCapacity } from '../../runtime/fair-capacity.js';
import type { HoldRecord } from '../record/decision-record.js';
import type { HeldRule } from './held-rules.js';
import { copyOf, type TokenHold } from './hold-token.js';

export interface SettlementSource {
  /**
   * Returns whether weir itself has caused the settlement, or whether its token was created by a process with the same
   * key.
   */
  isAuthentic(): boolean;
}

export const AUTHENTIC: SettlementSource = { isAuthentic: () => true };
export const NOT_AUTHENTIC: SettlementSource = { isAuthentic: () => false };

/**
 * Why weir ends a hold. `request`: the request has ended. `reset`: the caller has reset the call. `abandoned`: no
 * caller receives the token. `unanswered`: like `abandoned`, but the store did not answer when the hold was placed, so
 * the hold may not exist.
 */
type EndCause = 'request' | 'reset' | 'abandoned' | 'unanswered';

/** The properties of a settlement, except those of its hold. */
export interface EndProperties {
  readonly domain: string;
  readonly held: HeldRule;
  readonly cause: EndCause;
  readonly source: SettlementSource;
  /** Identifies the connection of the call that reported the settlement. */
  readonly connection: unknown;
  /** The use in hits; undefined if the use is unknown. */
  readonly used: number | undefined;
  /** Receives the first result, for logs and traces. */
  readonly records?: HoldRecord[];
}

/**
 * A hold to settle. If it has no id, it is the oldest hold in its bucket, and only the store knows its other values.
 */
type EndedHold = Omit<TokenHold, 'id' | 'suffix' | 'rule'> & { readonly id: HoldId | undefined };

/** Returns a hold that stands for the oldest one in a bucket. */
export function oldestHold({ key, hashTagLength }: Pick<Take, 'key' | 'hashTagLength'>): EndedHold {
  const unknown = { amount: 0, lifetimeMillis: 0, fullAtMicros: 0, freesUnknown: false, isLocal: false };
  return { key, hashTagLength, id: undefined, ...unknown };
}

/**
 * The end of one hold, which weir sends to a store as a settlement. Very many settlements may wait for a store, so all
 * values are fields of one object without closures. The item for the store is created only when it is sent.
 */
export class HoldSettlement {
  readonly domain: string;
  readonly held: HeldRule;
  readonly cause: EndCause;
  source: SettlementSource;
  /** Undefined if the memory of the settlement does not count towards the share of the connection. */
  connection: unknown;
  /** For a limit on concurrent requests, the slots of the hold. */
  readonly used: number | undefined;
  records: HoldRecord[] | undefined;
  key: string;
  readonly hashTagLength: number;
  /** Undefined if the settlement settles the oldest hold of its bucket. Such a settlement must not be sent twice. */
  id: HoldId | undefined;
  readonly amount: number;
  readonly lifetimeMillis: number;
  readonly fullAtMicros: number;
  readonly refillMicros: number | undefined;
  readonly freesUnknown: boolean;
  readonly isLocal: boolean;
  /** State of {@link SettlementQueue}: the budget that the memory of the settlement is charged to. */
  room: FairCapacity | undefined;
  hasWaited = false;
  addedMicros = 0;

  constructor(hold: EndedHold, properties: EndProperties) {
    const { domain, held, cause, source, connection, used, records } = properties;
    this.domain = domain;
    this.held = held;
    this.cause = cause;
    this.source = source;
    this.connection = connection;
    this.records = records;
    this.key = hold.key;
    this.hashTagLength = hold.hashTagLength;
    this.id = hold.id;
    this.used = this.isSlot ? hold.amount : used;
    this.amount = hold.amount;
    this.lifetimeMillis = hold.lifetimeMillis;
    this.fullAtMicros = hold.fullAtMicros;
    this.refillMicros = hold.refillMicros;
    this.freesUnknown = hold.freesUnknown;
    this.isLocal = hold.isLocal;
  }

  /** Whether the hold occupies slots of a limit on concurrent requests. */
  private get isSlot(): boolean {
    return this.id !== undefined && this.held.rate.kind === 'concurrency';
  }

  /** Work for a store: the number of slots or reservations that it removes. */
  get work(): number {
    return this.isSlot ? this.amount : 1;
  }

  /**
   * Copies the texts of the settlement, which may be slices of its token, so that the token does not stay in memory.
   */
  dropToken(): void {
    this.source = this.source.isAuthentic() ? AUTHENTIC : NOT_AUTHENTIC;
    this.key = copyOf(this.key);
    if (this.id !== undefined) this.id = copyOf(this.id);
  }

  item(): Take {
    const { key, hashTagLength, used, id, amount, lifetimeMillis, fullAtMicros, refillMicros, freesUnknown } =
      this;
    const { rate } = this.held;
    if (id !== undefined) {
      const hold = { id, amount, lifetimeMillis, fullAtMicros, refillMicros, freesUnknown };
      return settlementTake(this, rate, hold, used);
    }
    const change = { hits: used ?? 0, refund: false, enforcement: 'observe' } as const;
    return { key, hashTagLength, rate, ...change, settles: 'oldest' };
  }
}

/**
 * Returns the item that settles a hold. If the use is unknown, `used` is undefined, and the hold determines whether the
 * store keeps the hits or returns them. The slots of a concurrency limit are freed in any case.
 */
export function settlementTake(
  { key, hashTagLength }: Pick<Take, 'key' | 'hashTagLength'>,
  rate: Rate,
  hold: HoldValues,
  used: number | undefined,
): Take {
  const kept = hold.freesUnknown === true ? 0 : hold.amount;
  const final = rate.kind === 'concurrency' ? 0 : (used ?? kept);
  const { hits, refund } = correctionOf(final, hold.amount);
  return { key, hashTagLength, rate, hits, refund, enforcement: 'observe', settles: hold };
}
