import { WINDOW_UNITS, type WindowUnit } from '../../../limiter/window-unit.js';

/** Returns the unit with this name, in upper or lower case as in envoyproxy/ratelimit. */
export function unitOf(text: string): WindowUnit | undefined {
  return WINDOW_UNITS.find((candidate) => candidate === text.toLowerCase());
}
