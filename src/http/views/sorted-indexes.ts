/** Number of items that are sorted or merged without a pause. */
const RUN = 128;

/**
 * Returns the indexes of `names` in the order of their code units, as Array.prototype.sort does; the sort is stable.
 * Yields '' for a pause. Sorting indexes instead of names leaves almost no garbage.
 */
export function* sortedIndexes(names: readonly string[]): Generator<'', Uint32Array> {
  const { length } = names;
  const compare = (one: number, other: number): number => {
    const first = names[one] as string;
    const second = names[other] as string;
    return first < second ? -1 : +(first > second);
  };
  let from = new Uint32Array(length);
  for (let start = 0; start < length; start += RUN) {
    const stop = Math.min(start + RUN, length);
    for (let at = start; at < stop; at++) from[at] = at;
    from.subarray(start, stop).sort(compare);
    yield '';
  }
  let to = new Uint32Array(length);
  for (let width = RUN; width < length; width *= 2) {
    for (let start = 0; start < length; start += 2 * width) {
      yield* merge(
        names,
        from,
        start,
        Math.min(start + width, length),
        Math.min(start + 2 * width, length),
        to,
      );
    }
    [from, to] = [to, from];
  }
  return from;
}

/** Merges two sorted ranges of `from`, `start` to `middle` and `middle` to `end`, into the same range of `to`. */
function* merge(
  names: readonly string[],
  from: Uint32Array,
  start: number,
  middle: number,
  end: number,
  to: Uint32Array,
): Generator<'', void> {
  let left = start;
  let right = middle;
  for (let at = start; at < end; at++) {
    const takesLeft =
      right >= end ||
      (left < middle && (names[from[left] as number] as string) <= (names[from[right] as number] as string));
    to[at] = (takesLeft ? from[left++] : from[right++]) as number;
    if (at % RUN === 0) yield '';
  }
}
