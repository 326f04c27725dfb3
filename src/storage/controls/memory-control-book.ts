import type { StorageError } from '../../limiter/bucket-store.js';
import {
  type Control,
  type ControlBook,
  type ControlResult,
  type ControlsChange,
  MAX_CONTROLS,
} from '../../limiter/control.js';
import { controlName, LiveControls } from './live-controls.js';

/** The controls of a single process, which are lost when it exits. */
export class MemoryControlBook implements ControlBook {
  readonly isPersistent = false;
  readonly isCurrent = true;
  readonly firstRead = { awaited: undefined };
  readonly #monotonicMicros: () => number;
  readonly #maxControls: number;
  readonly #live: LiveControls;

  /** `maxControls`: for tests. */
  constructor(monotonicMicros: () => number, maxControls = MAX_CONTROLS) {
    this.#monotonicMicros = monotonicMicros;
    this.#maxControls = maxControls;
    this.#live = new LiveControls(monotonicMicros);
  }

  async put(control: Control): Promise<Exclude<ControlResult, StorageError>> {
    const name = controlName(control);
    if (this.#live.get(name) === undefined && this.#live.size >= this.#maxControls) return 'full';
    const expiresAtMicros = this.#monotonicMicros() + control.durationMicros;
    this.#live.apply({ set: new Map([[name, { expiresAtMicros, ...control }]]) });
    return 'done';
  }

  async end(ids: readonly string[]): Promise<'done'> {
    this.#live.apply({ ended: ids });
    return 'done';
  }

  async announceGrants(keys: readonly string[]): Promise<'done'> {
    this.#live.apply({ touched: keys });
    return 'done';
  }

  onChange(listener: (change: ControlsChange) => void): void {
    this.#live.onChange(listener);
  }

  async close(): Promise<void> {
    this.#live.close();
  }
}
