/** Returns a count with its noun: `1 rule`, `2 rules`. */
export function quantity(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Returns the first names for a message, and the number of the others: `a, b, and 3 more`. `show` quotes a name. */
export function firstNames(names: readonly string[], max: number, show = (name: string) => name): string {
  const more = names.length - max;
  return names.slice(0, max).map(show).join(', ') + (more > 0 ? `, and ${more} more` : '');
}
