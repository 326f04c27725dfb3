import { RE2JS, RE2Set } from 're2js';
import type { MatchWork } from '../match-work.js';

/** Maximum length of a pattern, in UTF-16 units. */
export const MAX_REGEX_LENGTH = 1024;
/**
 * Maximum number of instructions of a compiled pattern: counted repetitions are copied, and every value may visit each
 * instruction at each character.
 */
const MAX_INSTRUCTIONS = 500;
/**
 * Units ({@link MatchWork}) for each byte, about 12 ns: for a transition of an automaton, or for one instruction of an
 * expression whose automaton is too large.
 */
const UNITS_PER_BYTE = 3;
/** Maximum size of an automaton that is built completely, which takes up to a few milliseconds and 500 KB. */
const MAX_STATES = 128;
const MAX_TRANSITIONS = 4096;

/** A deterministic automaton of re2js. */
interface Automaton {
  readonly numClasses: number;
  /** First characters of all character classes but the first. */
  readonly classBounds: Int32Array;
  start(input: { context(at: number): number }, at: number): object | null;
  /** Returns the state after a character of a class; null if there is no memory for the state. */
  step(state: object, characterClass: number, rune: number, anchor: number): object | null;
}

/** The start of a text: all conditions of re2js hold there. */
const BEGINNING = { context: (): number => 0xff };
const END_OF_TEXT = -1;

/**
 * Builds all states of an expression's automaton, so that matching only follows transitions. Returns false if there are
 * too many: in `.*a.{30}`, each combination of the last 31 characters is a state.
 */
function buildAutomaton(compiled: RE2JS): boolean {
  const { dfa } = compiled.re2() as unknown as { readonly dfa: Automaton };
  const { numClasses, classBounds } = dfa;
  const first = dfa.start(BEGINNING, 0);
  if (first === null) return false;
  const states = new Set([first]);
  let transitions = 0;
  for (const state of states) {
    transitions += numClasses + 1;
    if (transitions > MAX_TRANSITIONS || states.size > MAX_STATES) return false;
    for (let at = 0; at < numClasses; at++) {
      const next = dfa.step(state, at, at === 0 ? 0 : (classBounds[at - 1] as number), RE2Set.ANCHOR_BOTH);
      if (next === null) return false;
      states.add(next);
    }
    if (dfa.step(state, numClasses, END_OF_TEXT, RE2Set.ANCHOR_BOTH) === null) return false;
  }
  return true;
}

/**
 * Returns the units ({@link MatchWork}) that a pattern in RE2 syntax costs for each byte of a value, or what is wrong
 * with the pattern.
 */
export function patternCost(pattern: string): number | string {
  if (pattern.length > MAX_REGEX_LENGTH) {
    return `a regular expression may have at most ${MAX_REGEX_LENGTH} characters, not ${pattern.length}; shorten it`;
  }
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (error) {
    const reason = (error as Error).message.replace(/^error parsing regexp: /, '');
    return (
      `this is not a valid RE2 regular expression (${reason}); correct the expression (RE2 does not ` +
      'support lookaround or backreferences)'
    );
  }
  const size = compiled.programSize();
  if (size > MAX_INSTRUCTIONS) {
    return (
      `the pattern compiles to ${size} instructions, more than the maximum of ${MAX_INSTRUCTIONS}; use ` +
      'smaller repetition counts'
    );
  }
  return buildAutomaton(compiled) ? UNITS_PER_BYTE : UNITS_PER_BYTE * size;
}

/** A regular expression with its owner. */
class Expression<Owner> {
  readonly owner: Owner;
  /** See {@link patternCost}. */
  readonly unitsPerByte: number;
  private readonly pattern: string;
  private compiled: RE2JS | undefined;

  constructor(pattern: string, unitsPerByte: number, owner: Owner) {
    this.pattern = pattern;
    this.unitsPerByte = unitsPerByte;
    this.owner = owner;
  }

  private get hasAutomaton(): boolean {
    return this.unitsPerByte === UNITS_PER_BYTE;
  }

  compile(): RE2JS {
    const compiled = RE2JS.compile(this.pattern);
    if (this.hasAutomaton) buildAutomaton(compiled);
    this.compiled = compiled;
    return compiled;
  }

  /** Returns whether the whole value matches. */
  matches(value: string): boolean {
    const compiled = this.compiled ?? this.compile();
    // The other way visits each instruction at each character at most once, and builds no states.
    return this.hasAutomaton ? compiled.testExact(value) : compiled.matcher(value).matches();
  }
}

/** Regular expressions in order, each with its owner. */
export class RegexList<Owner> {
  private readonly expressions: Expression<Owner>[] = [];

  /** Adds `patterns` that {@link patternCost} accepts; `costs` holds what it returned. */
  add(patterns: readonly string[], costs: readonly number[], owner: Owner): void {
    patterns.forEach((pattern, i) => {
      this.expressions.push(new Expression(pattern, costs[i] as number, owner));
    });
  }

  /**
   * Compiles all expressions, and yields after each, which takes up to a few milliseconds. Otherwise, the first value
   * that needs an expression compiles it.
   */
  *compile(): Generator<void, void> {
    for (const expression of this.expressions) {
      expression.compile();
      yield;
    }
  }

  /** Returns the owner of the first expression that matches the whole value, which has `bytes`. */
  find(value: string, bytes: number, work: MatchWork): Owner | undefined {
    const { expressions } = this;
    if (!work.admitsRegexValue(bytes)) return undefined;
    for (let i = 0; i < expressions.length; i++) {
      const expression = expressions[i] as Expression<Owner>;
      if (!work.chargePattern(bytes * expression.unitsPerByte)) return undefined;
      if (expression.matches(value)) return expression.owner;
    }
    return undefined;
  }
}

/** Returns the first pattern that matches the whole value. */
export function firstMatch(patterns: readonly string[], value: string): string | undefined {
  return patterns.find((pattern) => RE2JS.compile(pattern).testExact(value));
}
