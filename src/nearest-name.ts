/** Longer names are not compared: nobody mistypes one, and the work of comparing grows with its square. */
const MAX_LENGTH = 60;

/**
 * The candidate that a typing mistake may have meant, for "did you mean": undefined where none is near enough. A third
 * of the characters may be wrong, missing, too many, or exchanged with their neighbours, and one at least; upper and
 * lower case, `-`, `_` and spaces make no difference. Of candidates that are equally near the first is given.
 *
 * @param mostMistakes a smaller bound for the characters that may be wrong
 */
export function nearest(
  name: string,
  candidates: Iterable<string>,
  mostMistakes = Number.POSITIVE_INFINITY,
): string | undefined {
  if (name.length > MAX_LENGTH) return undefined;
  const plain = plainForm(name);
  let best: string | undefined;
  // Something of the name must be right, or `a` would be a misspelt `b`.
  let bestDistance = Math.min(Math.max(1, Math.floor(name.length / 3)), plain.length - 1, mostMistakes) + 1;
  for (const candidate of candidates) {
    if (candidate.length > 2 * MAX_LENGTH) continue;
    const other = plainForm(candidate);
    // The distance is no less than the difference of the lengths.
    if (Math.abs(other.length - plain.length) >= bestDistance) continue;
    const distance = editDistance(plain, other);
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

function plainForm(text: string): string {
  return text.toLowerCase().replaceAll(/[-_ ]/g, '');
}

/** Levenshtein distance of two short texts, in which two neighbours that changed places count once. */
function editDistance(a: string, b: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, (last[j] as number) + 1, (row[j - 1] as number) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (beforeLast[j - 2] as number) + 1);
      row.push(least);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] as number;
}
