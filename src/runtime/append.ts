/**
 * Appends to a list, and returns it. A new list with one element, the most frequent case, allocates no spare capacity.
 */
export function append<T>(list: T[], one: T): T[] {
  if (list.length === 0) return [one];
  list.push(one);
  return list;
}
