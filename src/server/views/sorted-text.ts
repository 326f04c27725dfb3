/** So many are sorted, or merged, in one go. */
const RUN = 128;

/** Sorts by code units as Array.prototype.sort does, in slices, in place of `items`. '' is a pause. */
export function* sortedByName<Item extends readonly [name: string, ...unknown[]]>(
  items: readonly Item[],
): Generator<'', readonly Item[]> {
  let from: Item[] = [];
  for (let start = 0; start < items.length; start += RUN) {
    const run = items.slice(start, start + RUN).sort(([one], [other]) => (one < other ? -1 : +(one > other)));
    for (const item of run) from.push(item);
    yield '';
  }
  let to = new Array<Item>(0);
  for (let width = RUN; width < items.length; width *= 2) {
    for (let start = 0; start < items.length; start += 2 * width) {
      yield* merge(from, start, Math.min(start + width, items.length), start + 2 * width, to);
    }
    const merged = to;
    to = [];
    from = merged;
  }
  return from;
}

/** Appends what stands in `from` from `start` to `middle` and from there to `end`, each part sorted, to `to`. */
function* merge<Item extends readonly [name: string, ...unknown[]]>(
  from: readonly Item[],
  start: number,
  middle: number,
  end: number,
  to: Item[],
): Generator<'', void> {
  let left = start;
  let right = middle;
  const stop = Math.min(end, from.length);
  while (left < middle || right < stop) {
    const takesLeft = right >= stop || (left < middle && (from[left] as Item)[0] <= (from[right] as Item)[0]);
    to.push((takesLeft ? from[left++] : from[right++]) as Item);
    if (to.length % RUN === 0) yield '';
  }
}
