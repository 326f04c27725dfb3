import type { StorageError } from './bucket-store.js';

/** What an operator has decided about all whom an identity names: `block` denies them, `allow` exempts them. */
export type ControlKind = 'block' | 'allow';

/** One pair that a descriptor must have, after `derive`, for an identity to name it. */
export interface IdentityPart {
  readonly key: string;
  /** Of a secret key the SHA-256 of the value in hex, so that no secret is kept. */
  readonly value: string;
  readonly secret: boolean;
}

/** A block or an exemption, as it is kept and told to all processes. */
export interface Control {
  /** Unique among those that are kept; short, of letters and digits. */
  readonly id: string;
  readonly kind: ControlKind;
  readonly domain: string;
  /** At least one part, sorted by key, and by value where a key comes twice. */
  readonly identity: readonly IdentityPart[];
  /** For people; '' where nobody gave one. */
  readonly reason: string;
  /** Who made it: the name of a token, or `loopback`. */
  readonly by: string;
  /** How long it lasts from when it is made, microseconds. */
  readonly durationMicros: number;
}

/** A {@link Control} in force, as one process knows it. */
export interface LiveControl extends Control {
  /** When it ends, on the monotonic clock of this process. */
  readonly expiresAtMicros: number;
}

/** What became of the controls since the last time; told in pieces of bounded size. */
export interface ControlsChange {
  /** Whether all that was told before is void. */
  readonly isReset: boolean;
  /** New ones, and those that others of the same {@link Control.id} take the place of. */
  readonly set: readonly LiveControl[];
  /** By {@link Control.id}. */
  readonly ended: readonly string[];
  /** Buckets ({@link TakeItem.key}) that an operator gave tokens to: what caches know of them is void. */
  readonly granted: readonly string[];
}

/** `full`: as many are kept as may be. */
export type ControlResult = 'done' | 'full' | StorageError;

/** How many controls that were in force a store has lost. */
export type LostControls = Readonly<Record<ControlKind, number>>;

/** What calls wait for, as it decides them. */
export interface AwaitedRead {
  /** Resolves when nobody has to wait any more; undefined while nobody has to. */
  readonly awaited: Promise<void> | undefined;
}

/** Where controls are kept, for all processes that share it. Bounded: see MAX_CONTROLS. */
export interface ControlBook {
  /** Whether what is kept outlives this process. */
  readonly isPersistent: boolean;
  /** Whether this process knows all that is kept, as far as it can tell: false while the store cannot be asked. */
  readonly isCurrent: boolean;
  /** The first time that all which is kept is read, and told to listeners. */
  readonly firstRead: AwaitedRead;
  /** Keeps a control, in the place of those of the same kind, domain and identity. Never rejects. */
  put(control: Control): Promise<ControlResult>;
  /**
   * Ends controls by their ids, as far as they are kept. `gone`: one of them is not kept any more, so that another one
   * may be in its place. Never rejects.
   */
  end(ids: readonly string[]): Promise<ControlResult | 'gone'>;
  /** Tells all processes that these buckets were given tokens. Never rejects. */
  announceGrants(keys: readonly string[]): Promise<ControlResult>;
  /**
   * `listener` runs whenever this process learns of a change, its own included, and at once with all that is in force.
   * Within a second of the change, while the store answers.
   */
  onChange(listener: (change: ControlsChange) => void): void;
  close(): Promise<void>;
}

/** Most controls that are kept. */
export const MAX_CONTROLS = 10_000;
/** Longest that one lasts, microseconds: a year. */
export const MAX_CONTROL_MICROS = 365 * 24 * 3600 * 1_000_000;
/** Most pairs of an identity. */
export const MAX_IDENTITY_PARTS = 16;
/** Most bytes of UTF-8 of a reason, and of a value of an identity; longer values are not named. */
export const MAX_REASON_BYTES = 200;
export const MAX_IDENTITY_BYTES = 1024;
