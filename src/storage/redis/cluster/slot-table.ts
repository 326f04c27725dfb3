import { expectState } from '../../../invariant.js';
import type { TakeItem } from '../../../limiter/bucket-store.js';
import { quantity } from '../../../quantity.js';
import type { Partition } from '../../sharded/shard.js';
import { SLOTS } from './cluster-view.js';
import type { BucketSlots } from './slot-keys.js';

/**
 * Time for which a slot counts as migrating after the latest sign of a migration, in microseconds. Nodes report a
 * migration only when they receive keys of the slot.
 */
const MOVING_MICROS = 1_000_000;

/** Maps slots to nodes. */
export class SlotTable<Node> {
  readonly #slots: BucketSlots;
  readonly #monotonicMicros: () => number;
  readonly #owners: (Node | undefined)[] = new Array<Node | undefined>(SLOTS).fill(undefined);
  /** Migrating slots, each with the time until which it counts as migrating. */
  readonly #moving = new Map<number, number>();

  constructor(slots: BucketSlots, monotonicMicros: () => number) {
    this.#slots = slots;
    this.#monotonicMicros = monotonicMicros;
  }

  /**
   * Returns the partition of a bucket: its slot. While the slot is migrating, the partition is the slot with the key,
   * because no node then has all buckets of a tenant.
   */
  partitionOf(item: TakeItem): Partition {
    const slot = this.#slots.of(item);
    return this.#moving.size > 0 && this.#isMoving(slot) ? `${slot} ${item.key}` : slot;
  }

  ownerOf(slot: number): Node | undefined {
    return this.#owners[slot];
  }

  setOwner(slot: number, node: Node): void {
    expectState(slot >= 0 && slot < SLOTS, 'a slot number is from 0 to 16383');
    this.#owners[slot] = node;
  }

  /** Returns whether a node serves any slot. */
  has(node: Node): boolean {
    return this.#owners.includes(node);
  }

  /** Records that keys of a slot were found on two nodes. */
  noteMoving(slot: number): void {
    this.#moving.set(slot, this.#monotonicMicros() + MOVING_MICROS);
  }

  /** Removes all owners. */
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

/** Returns the slot of a partition. */
export function slotOf(partition: Partition): number {
  return typeof partition === 'number' ? partition : Number.parseInt(partition, 10);
}

/** Formats the slots without an owner, such as `0-99, 200`, up to a maximum length; empty if all slots have owners. */
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
