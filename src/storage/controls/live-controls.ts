import { createHash } from 'node:crypto';
import { timerMs } from '../../limiter/clock.js';
import type { Control, ControlsChange, LiveControl } from '../../limiter/control.js';

/** Most controls, ids and keys of one {@link ControlsChange}, each: who listens does its work for them at once. */
export const MAX_CHANGES_PER_NOTICE = 100;
/** Controls that have ended are looked for no sooner than this after the last time. Milliseconds. */
const SWEEP_MS = 100;

type Listener = (change: ControlsChange) => void;

interface Notice {
  readonly change: ControlsChange | (() => void);
  /** Undefined: all of them. */
  readonly only: Listener | undefined;
}

/** What {@link LiveControls.apply} is told; unlike {@link ControlsChange} of any size. */
export interface ControlsApplied<C extends LiveControl> {
  /** By {@link controlName}. */
  readonly set?: ReadonlyMap<string, C>;
  /** By {@link Control.id}. */
  readonly ended?: readonly string[];
  /** Names of buckets. */
  readonly touched?: readonly string[];
}

/** What controls that take each other's place have in common: kind, domain and identity, in 32 characters. */
export function controlName({ kind, domain, identity }: Control): string {
  const pairs = identity.map(({ key, value, secret }) => [key, value, secret]);
  const text = JSON.stringify([kind, domain, pairs]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 32);
}

/**
 * The controls that this process knows of, by {@link controlName}, and those who are told of them: in pieces of {@link
 * MAX_CHANGES_PER_NOTICE}, with a turn of the event loop between two. What has ended is told within a tenth of a second
 * or two: who decides looks at {@link LiveControl.expiresAtMicros}.
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

  /** The name of a control; undefined where it is not kept any more. */
  nameOf(id: string): string | undefined {
    return this.#names.get(id);
  }

  get(name: string): C | undefined {
    return this.#byName.get(name);
  }

  /** By name. */
  get all(): ReadonlyMap<string, C> {
    return this.#byName;
  }

  /** See {@link ControlBook.onChange}. */
  onChange(listener: Listener): void {
    this.#sweep();
    this.#listeners.push(listener);
    this.#notify([...this.#byName.values()], [], [], listener);
  }

  /** Runs `told` once everybody was told of all that is known now. */
  whenNotified(told: () => void): void {
    this.#queue.push({ change: told, only: undefined });
    if (!this.#isNotifying) this.#notifyNext();
  }

  /** Sets controls, each in the place of the one of its name; ends others. What is over already is left out. */
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
    this.#wakeAt(soonest);
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
    const most = Math.max(set.length, ended.length, touched.length, 1);
    for (let from = 0; from < most; from += MAX_CHANGES_PER_NOTICE) {
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
    const told = this.#queue.shift();
    this.#isNotifying = told !== undefined;
    if (told === undefined) return;
    const { change, only } = told;
    if (typeof change === 'function') change();
    else for (const listener of only === undefined ? [...this.#listeners] : [only]) listener(change);
    if (this.#queue.length > 0) setImmediate(() => this.#notifyNext());
    else this.#isNotifying = false;
  }

  #wakeAt(micros: number): void {
    if (this.#closed || micros >= this.#timerAtMicros) return;
    this.#timerAtMicros = micros;
    clearTimeout(this.#timer);
    const waitMs = timerMs(micros - this.#monotonicMicros());
    this.#timer = setTimeout(() => this.#sweep(), Math.max(SWEEP_MS, Math.ceil(waitMs))).unref();
  }

  /** Ends what is over. Looks at all of them, which takes a tenth of a millisecond for as many as may be. */
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
    this.#wakeAt(soonest);
  }
}
