import type { Setting } from './settings-table.js';
import { parseValue } from './settings-values.js';

/**
 * Returns whether an unset variable has the same meaning as in the reference, even if the default is written
 * differently. True for variables that only weir has.
 */
export function hasReferenceDefault({ type, default: here, max, reference }: Setting): boolean {
  if (reference === undefined) return true;
  const [ours, theirs] = [here, reference.default].map((text) => {
    const parsed = text === '' ? undefined : parseValue(type, text, max);
    return parsed?.ok ? JSON.stringify(parsed.value) : text;
  });
  return ours === theirs;
}
