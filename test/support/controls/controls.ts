import type { Control, ControlsChange, LiveControl } from '../../../src/limiter/control.js';

let made = 0;

/** Returns a block of a tenant for ten minutes, changed by `fields`. */
export function control(tenant: string, fields: Partial<Control> = {}): Control {
  made++;
  return {
    id: `c${made}`,
    kind: 'block',
    domain: 'open-api',
    identity: [{ key: 'tenant', value: tenant, secret: false }],
    reason: 'a test',
    by: 'loopback',
    durationMicros: 600_000_000,
    ...fields,
  };
}

/** Records the notifications of a ControlBook. */
export class RecordedControls {
  readonly controls = new Map<string, LiveControl>();
  readonly touched: string[] = [];
  readonly changes: ControlsChange[] = [];

  readonly listener = (change: ControlsChange): void => {
    this.changes.push(change);
    if (change.isReset) this.controls.clear();
    for (const one of change.set) this.controls.set(one.id, one);
    for (const id of change.ended) this.controls.delete(id);
    this.touched.push(...change.granted);
  };

  /** Ids of the controls in effect, sorted. */
  get ids(): string[] {
    return [...this.controls.keys()].sort();
  }
}
