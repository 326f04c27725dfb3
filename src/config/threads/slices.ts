import { deserialize, serialize } from 'node:v8';

/**
 * So many items at most go into one slice: opening it and putting its items in their places takes well below a
 * millisecond, or a few while the code is cold, which decisions may wait (bench: policy-load).
 */
const ITEMS_PER_SLICE = 64;

/**
 * Cuts plain data into slices that go to another thread or process as bytes, to be opened there one at a time. What
 * `takesLong` names ends its slice.
 */
export function* cutSlices<T>(
  items: Iterable<T>,
  takesLong: (item: T) => boolean = () => false,
): Generator<Uint8Array> {
  let slice: T[] = [];
  for (const item of items) {
    slice.push(item);
    if (slice.length < ITEMS_PER_SLICE && !takesLong(item)) continue;
    yield serialize(slice);
    slice = [];
  }
  if (slice.length > 0) yield serialize(slice);
}

/** What one slice holds. The caller knows what was put in. */
export function openSlice<T>(slice: Uint8Array): readonly T[] {
  return deserialize(slice) as readonly T[];
}
