import { quantity } from './quantity.js';

/** Maximum number of characters of a string in a log line. */
export const MAX_CHARACTERS = 256;

/** Returns the beginning of a string with more than `most` characters, and the number of missing characters. */
export function shown(text: string, most = MAX_CHARACTERS): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most)}… (${quantity(text.length - most, 'more character')})`;
}
