import { createContext, Script } from 'node:vm';

/*
 * Patterns of mappings and mogrifiers are written for Go, whose engine takes a time that grows with the text alone. JavaScript's tries one
 * way after the other: `(.*)\.(.*)\.(.*)\.(.*)\.x` on the 512 dots that a caller may put in a name takes minutes.
 */

/** Longest that one match may take. */
const PATIENCE_MS = 20;
/** A pattern that took so long in vain is no more tried on texts that may be such ones. */
const PATIENCE_IN_ALL_MS = 1000;
/** On texts of this length a pattern without repetitions in repetitions takes a few milliseconds at most. */
const SHORT = 80;

/** Texts that let most patterns try every way: long ones, of which the last character fits nothing. */
const HARD_TEXTS = ['.', 'a', 'a.', 'a_', '1', '-'].map(
  (part) => `ratelimit.service.rate_limit.${part.repeat(512 / part.length)}\u0000`,
);

interface Guard {
  /** Texts up to this length are matched without a look at the clock. */
  readonly harmless: number;
  spentMs: number;
}

const guards = new WeakMap<RegExp, Guard>();
const sandbox = createContext({ pattern: undefined, text: '' }) as {
  pattern: RegExp | undefined;
  text: string;
};
const match = new Script('pattern.exec(text)');

/** `pattern.exec(text)`; also null when that takes too long. */
export function execInTime(pattern: RegExp, text: string): RegExpExecArray | null {
  let guard = guards.get(pattern);
  if (guard === undefined) {
    guard = { harmless: harmlessLength(pattern), spentMs: 0 };
    guards.set(pattern, guard);
  }
  if (text.length <= guard.harmless) return pattern.exec(text);
  if (guard.spentMs >= PATIENCE_IN_ALL_MS) return null;
  const result = timed(pattern, text);
  if (result !== undefined) return result;
  guard.spentMs += PATIENCE_MS;
  return null;
}

/** Undefined when it takes too long. Costs a tenth of a millisecond beside. */
function timed(pattern: RegExp, text: string): RegExpExecArray | null | undefined {
  sandbox.pattern = pattern;
  sandbox.text = text;
  try {
    return match.runInContext(sandbox, { timeout: PATIENCE_MS }) as RegExpExecArray | null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    return undefined;
  }
}

function harmlessLength(pattern: RegExp): number {
  if (repeatsChoices(pattern.source)) return 0;
  return HARD_TEXTS.every((text) => timed(pattern, text) !== undefined) ? Number.POSITIVE_INFINITY : SHORT;
}

/** Whether a repeated group holds a repetition or alternatives: such a one may take twice as long with each character. */
function repeatsChoices(source: string): boolean {
  // Without what only looks like them: escapes and brackets.
  const bare = source.replaceAll(/\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]/g, 'x');
  const groups: boolean[] = [];
  let hasChoices = false;
  for (let at = 0; at < bare.length; at++) {
    const character = bare[at] as string;
    if (character === '(') {
      groups.push(hasChoices);
      hasChoices = false;
      // The question mark of (?: and the like is no choice.
      if (bare[at + 1] === '?') at++;
    } else if (character === ')') {
      if (hasChoices && /[*+{]/.test(bare[at + 1] ?? '')) return true;
      hasChoices = (groups.pop() ?? false) || hasChoices;
    } else if (/[*+{|?]/.test(character)) hasChoices = true;
  }
  return false;
}
