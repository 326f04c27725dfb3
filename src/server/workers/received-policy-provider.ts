import { deserialize } from 'node:v8';
import type { PolicyProvider } from '../../config/policy-provider.js';
import { MinorCollector } from '../../config/threads/minor-collector.js';
import { buildBatches, type PolicyItem } from '../../config/threads/policy-transfer.js';
import { CALENDARS } from '../../limiter/calendar.js';
import { systemClock } from '../../limiter/clock.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { Signal } from '../../runtime/signal.js';
import { runInTurns, runToCompletion } from '../../runtime/turns.js';
import type { PolicySlice, SlicedPolicies } from './messages.js';

/** Policies that the primary process sends to a worker, slice by slice. */
export class ReceivedPolicyProvider implements PolicyProvider {
  #current: PolicySet | undefined;
  /** The slices of the running transfer; undefined if none is running. */
  #slices: Uint8Array[] | undefined;
  readonly #loaded = new Signal<boolean>();
  readonly onReload = this.#loaded.add;
  /** Puts received policies into effect, one set after the other. */
  #installing = Promise.resolve();

  constructor(initial: SlicedPolicies | undefined) {
    if (initial === undefined) return;
    const domains = runToCompletion(buildBatches(batchesOf(initial.slices), { compiles: true }));
    // No request waits yet.
    runToCompletion(CALENDARS.prepare(systemClock.wallMicros()));
    this.#current = { domains, version: initial.version };
  }

  current(): PolicySet | undefined {
    return this.#current;
  }

  begin(): void {
    this.#slices = [];
  }

  add(slice: Uint8Array): void {
    this.#slices?.push(slice);
  }

  end(version: string): void {
    const slices = this.#slices;
    if (slices === undefined) return;
    this.#slices = undefined;
    this.#installing = this.#installing.then(() => this.#install(slices, version));
  }

  async #install(slices: readonly Uint8Array[], version: string): Promise<void> {
    const options = { inEffect: this.#current, compiles: true };
    const domains = await runInTurns(buildBatches(batchesOf(slices), options));
    await runInTurns(CALENDARS.prepare(systemClock.wallMicros()));
    this.#current = { domains, version };
    this.#loaded.emit(true);
  }
}

/** Yields the batches of policies in slices. The tables of plans are received first. */
function* batchesOf(slices: readonly Uint8Array[]): Generator<readonly PolicyItem[]> {
  const garbage = new MinorCollector();
  const tables = new Map<string, PlanTable>();
  for (const bytes of slices) {
    const slice = deserialize(bytes) as PolicySlice;
    if (slice.kind === 'items') {
      yield slice.items.map((item) =>
        item.kind === 'domain' ? { ...item, plans: tables.get(item.head.domain) } : item,
      );
    } else if (slice.kind === 'plans') tables.set(slice.domain, emptyTable(slice));
    else {
      const part = tables.get(slice.domain)?.[slice.part];
      if (part !== undefined) new Uint8Array(part.buffer).set(slice.bytes, slice.at);
    }
    garbage.slice();
  }
}

/** Returns a table whose parts have their length, and no content yet. */
function emptyTable({ head, lengths, isByte }: Extract<PolicySlice, { kind: 'plans' }>): PlanTable {
  return {
    ...head,
    slots: new Uint32Array(lengths.slots),
    keys: isByte ? new Uint8Array(lengths.keys) : new Uint16Array(lengths.keys),
    values: new Float64Array(lengths.values),
  };
}
