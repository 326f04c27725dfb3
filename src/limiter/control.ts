import type { StorageError } from './bucket-store.js';

/**
 * An operator's decision about all callers that an identity names: `block` denies their requests, `allow` exempts them.
 */
export type ControlKind = 'block' | 'allow';

/** One entry that a descriptor must contain, after `derive`, to match an identity. */
export interface IdentityPart {
  readonly key: string;
  /** The value, or for a secret key the SHA-256 of the value in hex, so that no secret is stored. */
  readonly value: string;
  readonly secret: boolean;
}

/** A block or an exemption, in the form that is stored and sent to all processes. */
export interface Control {
  /** Unique among the stored controls. Short, letters and digits only. */
  readonly id: string;
  readonly kind: ControlKind;
  readonly domain: string;
  /** At least one part, sorted by key and then by value. */
  readonly identity: readonly IdentityPart[];
  /** Free text for people. Empty if the operator gave no reason. */
  readonly reason: string;
  /** Creator of the control: the name of a token, or `loopback`. */
  readonly by: string;
  /** Lifetime in microseconds, counted from creation. */
  readonly durationMicros: number;
}

/** A {@link Control} that has not expired, as one process knows it. */
export interface LiveControl extends Control {
  /** Expiry time on the monotonic clock of this process, in microseconds. */
  readonly expiresAtMicros: number;
}

/** Changes to the controls since the previous notification. Large changes are split into several notifications. */
export interface ControlsChange {
  /** Whether all earlier notifications are void. */
  readonly isReset: boolean;
  /** New controls, and controls that replace those with the same {@link Control.id}. */
  readonly set: readonly LiveControl[];
  /** Ids of the controls that ended; see {@link Control.id}. */
  readonly ended: readonly string[];
  /**
   * Keys ({@link TakeItem.key}) of buckets that an operator granted tokens to. Caches must drop what they know of them.
   */
  readonly granted: readonly string[];
}

/** Result of a change to the controls. `full`: the maximum number of controls is reached. */
export type ControlResult = 'done' | 'full' | StorageError;

/** Number of active controls that a store has lost, by kind. */
export type LostControls = Readonly<Record<ControlKind, number>>;

/** The first read of the controls. Calls wait for this read before they are decided. */
export interface AwaitedRead {
  /** Resolves when calls no longer have to wait. Undefined if calls do not have to wait now. */
  readonly awaited: Promise<void> | undefined;
}

/** Stores controls for all processes that share the store, at most {@link MAX_CONTROLS}. */
export interface ControlBook {
  /** Whether controls outlive this process. */
  readonly isPersistent: boolean;
  /** Whether this process knows all stored controls. False while the store is unavailable. */
  readonly isCurrent: boolean;
  /** The first read of all stored controls, which are then sent to listeners. */
  readonly firstRead: AwaitedRead;
  /** Stores a control, and replaces those of the same kind, domain and identity. Never rejects. */
  put(control: Control): Promise<ControlResult>;
  /**
   * Ends the controls with these ids, if they exist. `gone`: one of them no longer exists, so another control may have
   * replaced it. Never rejects.
   */
  end(ids: readonly string[]): Promise<ControlResult | 'gone'>;
  /** Tells all processes that an operator granted tokens to these buckets. Never rejects. */
  announceGrants(keys: readonly string[]): Promise<ControlResult>;
  /**
   * Registers a listener. It is called immediately with all active controls, and then for each change, including those
   * of this process. A change arrives within a second while the store is available.
   */
  onChange(listener: (change: ControlsChange) => void): void;
  close(): Promise<void>;
}

/** Maximum number of stored controls. */
export const MAX_CONTROLS = 10_000;
/** Maximum lifetime of a control, in microseconds: one year. */
export const MAX_CONTROL_MICROS = 365 * 24 * 3600 * 1_000_000;
/** Maximum number of entries in an identity. */
export const MAX_IDENTITY_PARTS = 16;
/**
 * Maximum length of a reason, and of a value in an identity, in bytes of UTF-8. Identities with longer values cannot be
 * named.
 */
export const MAX_REASON_BYTES = 200;
export const MAX_IDENTITY_BYTES = 1024;
