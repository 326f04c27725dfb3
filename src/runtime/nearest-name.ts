/**
 * Maximum length of names that are compared. Longer names are rarely typed by hand, and the work grows with the square
 * of the length.
 */
const MAX_LENGTH = 60;

/**
 * Returns the candidate that a misspelled name most likely means, for "Did you mean", or undefined if no candidate is
 * near enough. A third of the characters, and at least one, may be wrong, missing, additional, or swapped with a
 * neighbor. Upper and lower case, `-`, `_` and spaces are ignored. Among equally near candidates, returns the first.
 *
 * @param maxMistakes lower maximum for the number of wrong characters
 */
export function nearest(
  name: string,
  candidates: Iterable<string>,
  maxMistakes = Number.POSITIVE_INFINITY,
): string | undefined {
  if (name.length > MAX_LENGTH) return undefined;
  const plain = plainForm(name);
  let best: string | undefined;
  // At least one character must be right. Otherwise `a` would count as a misspelled `b`.
  let bestDistance = Math.min(Math.max(1, Math.floor(name.length / 3)), plain.length - 1, maxMistakes) + 1;
  for (const candidate of candidates) {
    if (candidate.length > 2 * MAX_LENGTH) continue;
    const other = plainForm(candidate);
    // The distance is at least the difference of the lengths.
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

/** Returns the Levenshtein distance of two short strings. Two swapped neighbors count as one edit. */
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
