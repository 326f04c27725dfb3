import { deserialize, serialize } from 'node:v8';

/**
 * Maximum number of items per slice. Opening a slice and adding its items takes well below a millisecond, or a few
 * while the code is cold (bench: policy-load). Decisions can wait that long.
 */
const ITEMS_PER_SLICE = 64;

/**
 * Cuts plain data into slices of bytes, which another thread or process opens one at a time. An item for which
 * `needsOwnSlice` is true ends its slice.
 */
export function* cutSlices<T>(
  items: Iterable<T>,
  needsOwnSlice: (item: T) => boolean = () => false,
): Generator<Uint8Array> {
  let slice: T[] = [];
  for (const item of items) {
    slice.push(item);
    if (slice.length < ITEMS_PER_SLICE && !needsOwnSlice(item)) continue;
    yield serialize(slice);
    slice = [];
  }
  if (slice.length > 0) yield serialize(slice);
}

/** Returns the items of a slice. The caller knows their type. */
export function openSlice<T>(slice: Uint8Array): readonly T[] {
  return deserialize(slice) as readonly T[];
}
