import type { Setting } from './settings-table.js';
import { parseValue } from './settings-values.js';

/**
 * Whether a variable that is unset means the same here as in the reference, however the defaults are written. True for
 * weir's own variables.
 */
export function hasReferenceDefault({ type, default: here, max, reference }: Setting): boolean {
  if (reference === undefined) return true;
  const [ours, theirs] = [here, reference.default].map((text) => {
    const parsed = text === '' ? undefined : parseValue(type, text, max);
    return parsed?.ok ? JSON.stringify(parsed.value) : text;
  });
  return ours === theirs;
}
