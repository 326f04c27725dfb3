import { createHash } from 'node:crypto';
import { timerMs } from '../../limiter/clock.js';
import type { Control, ControlsChange, LiveControl } from '../../limiter/control.js';

/**
 * Maximum number of controls, of ids and of keys in one {@link ControlsChange}, because listeners process it in one
 * turn.
 */
export const MAX_CHANGES_PER_NOTICE = 100;
/** Minimum time between two sweeps for ended controls, in milliseconds. */
const SWEEP_MS = 100;

type Listener = (change: ControlsChange) => void;

interface Notice {
  readonly change: ControlsChange | (() => void);
  /** The listener to notify; undefined for all of them. */
  readonly only: Listener | undefined;
}

/** A change for {@link LiveControls.apply}. Unlike {@link ControlsChange}, it has no maximum size. */
export interface ControlsApplied<C extends LiveControl> {
  /** Controls to set, by {@link controlName}. */
  readonly set?: ReadonlyMap<string, C>;
  /** Controls to end, by {@link Control.id}. */
  readonly ended?: readonly string[];
  /** Names of buckets that operators refilled. */
  readonly touched?: readonly string[];
}

/**
 * Returns the name that controls with the same kind, domain and identity share, 32 characters long. A new control
 * replaces the one with its name.
 */
export function controlName({ kind, domain, identity }: Control): string {
  const pairs = identity.map(({ key, value, secret }) => [key, value, secret]);
  const text = JSON.stringify([kind, domain, pairs]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 32);
}

/**
 * The controls that this process knows, by {@link controlName}. Listeners receive changes in groups of
 * {@link MAX_CHANGES_PER_NOTICE}, one group in each turn of the event loop. They are notified of ended controls within
 * 0.2 s, so decisions check {@link LiveControl.endsMicros}.
 */
export class LiveControls<C extends LiveControl = LiveControl> {
  readonly #monotonicMicros: () => number;
  readonly #byName = new Map<string, C>();
  readonly #names = new Map<string, string>();
  readonly #listeners: Listener[] = [];
  readonly #queue: Notice[] = [];
  #isNotifying = false;
  #timer: NodeJS.Timeout | undefined;
  #timerAtMicros = Infinity;
  #closed = false;

  constructor(monotonicMicros: () => number) {
    this.#monotonicMicros = monotonicMicros;
  }

  get size(): number {
    return this.#byName.size;
  }

  /** Returns the name of a control; undefined if it has been removed. */
  nameOf(id: string): string | undefined {
    return this.#names.get(id);
  }

  get(name: string): C | undefined {
    return this.#byName.get(name);
  }

  /** The controls by name. */
  get all(): ReadonlyMap<string, C> {
    return this.#byName;
  }

  /** Adds a listener, see {@link ControlBook.onChange}. */
  onChange(listener: Listener): void {
    this.#sweep();
    this.#listeners.push(listener);
    this.#notify([...this.#byName.values()], [], [], listener);
  }

  /** Runs `notified` after all listeners have received everything that is known now. */
  whenNotified(notified: () => void): void {
    this.#queue.push({ change: notified, only: undefined });
    if (!this.#isNotifying) this.#notifyNext();
  }

  /**
   * Sets the controls of `set`, which replace controls with the same names, and ends the controls of `ended`. Expired
   * controls are skipped.
   */
  apply({ set, ended = [], touched = [] }: ControlsApplied<C>): void {
    const now = this.#monotonicMicros();
    const fresh: C[] = [];
    const over: string[] = [];
    let soonest = Infinity;
    for (const [name, control] of set ?? []) {
      const before = this.#byName.get(name);
      const isLive = control.expiresAtMicros > now;
      if (before !== undefined && (before.id !== control.id || !isLive)) {
        this.#forget(name, before.id);
        over.push(before.id);
      }
      if (!isLive) continue;
      this.#byName.set(name, control);
      this.#names.set(control.id, name);
      fresh.push(control);
      soonest = Math.min(soonest, control.expiresAtMicros);
    }
    for (const id of ended) {
      const name = this.#names.get(id);
      if (name === undefined) continue;
      this.#forget(name, id);
      over.push(id);
    }
    if (fresh.length + over.length + touched.length > 0) this.#notify(fresh, over, touched);
    this.#scheduleSweep(soonest);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#queue.length = 0;
  }

  #forget(name: string, id: string): void {
    this.#byName.delete(name);
    this.#names.delete(id);
  }

  #notify(set: readonly C[], ended: readonly string[], touched: readonly string[], only?: Listener): void {
    const maxLength = Math.max(set.length, ended.length, touched.length, 1);
    for (let from = 0; from < maxLength; from += MAX_CHANGES_PER_NOTICE) {
      const to = from + MAX_CHANGES_PER_NOTICE;
      const change = {
        isReset: only !== undefined && from === 0,
        set: set.slice(from, to),
        ended: ended.slice(from, to),
        granted: touched.slice(from, to),
      };
      this.#queue.push({ change, only });
    }
    if (!this.#isNotifying) this.#notifyNext();
  }

  #notifyNext(): void {
    const notice = this.#queue.shift();
    this.#isNotifying = notice !== undefined;
    if (notice === undefined) return;
    const { change, only } = notice;
    if (typeof change === 'function') change();
    else for (const listener of only === undefined ? [...this.#listeners] : [only]) listener(change);
    if (this.#queue.length > 0) setImmediate(() => this.#notifyNext());
    else this.#isNotifying = false;
  }

  #scheduleSweep(micros: number): void {
    if (this.#closed || micros >= this.#timerAtMicros) return;
    this.#timerAtMicros = micros;
    clearTimeout(this.#timer);
    const waitMs = timerMs(micros - this.#monotonicMicros());
    this.#timer = setTimeout(() => this.#sweep(), Math.max(SWEEP_MS, Math.ceil(waitMs))).unref();
  }

  /** Ends expired controls. Checks all controls, which takes 0.1 ms for the maximum number. */
  #sweep(): void {
    const now = this.#monotonicMicros();
    const over: string[] = [];
    let soonest = Infinity;
    for (const { id, expiresAtMicros } of this.#byName.values()) {
      if (expiresAtMicros <= now) over.push(id);
      else soonest = Math.min(soonest, expiresAtMicros);
    }
    this.#timerAtMicros = Infinity;
    this.apply({ ended: over });
    this.#scheduleSweep(soonest);
  }
}
