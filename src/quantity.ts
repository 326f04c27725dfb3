/** Returns a count with its noun: `1 rule`, `2 rules`. */
export function quantity(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
