import { quantity } from './quantity.js';

/** Most characters of a text in a line of the log. */
export const MAX_CHARACTERS = 256;

/** The beginning of a text of more than `most` characters, and how much of it is missing. */
export function shown(text: string, most = MAX_CHARACTERS): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most)}… (${quantity(text.length - most, 'more character')})`;
}
