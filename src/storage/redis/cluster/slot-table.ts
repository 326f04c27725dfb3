import { expectState } from '../../../invariant.js';
import type { TakeItem } from '../../../limiter/bucket-store.js';
import { quantity } from '../../../quantity.js';
import type { Partition } from '../../sharded/shard.js';
import { SLOTS } from './cluster-view.js';
import type { BucketSlots } from './slot-keys.js';

/**
 * How long after the last sign of it a slot counts as being moved from one node to another: nodes tell of it only when
 * they are asked for keys. Microseconds.
 */
const MOVING_MICROS = 1_000_000;

/** Which node serves which slot, as far as is known. */
export class SlotTable<Node> {
  readonly #slots: BucketSlots;
  readonly #monotonicMicros: () => number;
  readonly #owners: (Node | undefined)[] = new Array<Node | undefined>(SLOTS).fill(undefined);
  /** Slots that are being moved, and until when they count as such. */
  readonly #moving = new Map<number, number>();

  constructor(slots: BucketSlots, monotonicMicros: () => number) {
    this.#slots = slots;
    this.#monotonicMicros = monotonicMicros;
  }

  /**
   * The slot of a bucket; while that is being moved, when some keys are here and some there, so that no node has all
   * of a tenant's, the slot and the key.
   */
  partOf(item: TakeItem): Partition {
    const slot = this.#slots.of(item);
    return this.#moving.size > 0 && this.#isMoving(slot) ? `${slot} ${item.key}` : slot;
  }

  ownerOf(slot: number): Node | undefined {
    return this.#owners[slot];
  }

  setOwner(slot: number, node: Node): void {
    expectState(slot >= 0 && slot < SLOTS, 'a slot is one of those of a cluster');
    this.#owners[slot] = node;
  }

  /** Whether a node serves any. */
  has(node: Node): boolean {
    return this.#owners.includes(node);
  }

  /** Keys of it were here and there just now. */
  noteMoving(slot: number): void {
    this.#moving.set(slot, this.#monotonicMicros() + MOVING_MICROS);
  }

  /** Forgets all owners. */
  clear(): void {
    this.#owners.fill(undefined);
  }

  #isMoving(slot: number): boolean {
    const untilMicros = this.#moving.get(slot);
    if (untilMicros === undefined) return false;
    if (this.#monotonicMicros() < untilMicros) return true;
    this.#moving.delete(slot);
    return false;
  }
}

/** The slot of a part. */
export function slotOf(partition: Partition): number {
  return typeof partition === 'number' ? partition : Number.parseInt(partition, 10);
}

/** Slots that have no owner, as `0-99, 200`; of many the first few. Empty where there are none. */
export function formatUnassignedSlots(ownerOf: (slot: number) => unknown): string {
  const ranges: string[] = [];
  for (let first = 0; first < SLOTS; first++) {
    if (ownerOf(first) !== undefined) continue;
    let last = first;
    while (last + 1 < SLOTS && ownerOf(last + 1) === undefined) last++;
    ranges.push(first === last ? `${first}` : `${first}-${last}`);
    first = last;
  }
  const more = ranges.length - MAX_RANGES;
  return `${ranges.slice(0, MAX_RANGES).join(', ')}${more > 0 ? ` and ${quantity(more, 'more range')}` : ''}`;
}

const MAX_RANGES = 5;
