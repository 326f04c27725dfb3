import { RE2JS, RE2Set } from 're2js';

/** Values of more UTF-16 units match no regular expression: what a match costs grows with the value. */
export const MAX_VALUE_LENGTH = 4096;
/** Longest pattern, in UTF-16 units. */
export const MAX_PATTERN_LENGTH = 1024;
/** Most instructions that a pattern compiles to: counted repetitions are copies, and every value may visit each of them at each character. */
export const MAX_INSTRUCTIONS = 500;

/**
 * So many patterns are matched at once, by one automaton. More at once make a usual value cheaper, but the states of a larger automaton are
 * so many, with values made for it, that building them takes longer than all that (bench: matchers).
 */
const PATTERNS_PER_SET = 32;
/** Nor does a set hold more instructions, but for those of one pattern alone: they are compiled at a stretch. */
const INSTRUCTIONS_PER_SET = 1000;
/** What the states of an automaton may take for each of its patterns, in bytes; without room for more they are built anew, and at last done without. */
const MEMORY_PER_PATTERN = 8192;
const LEAST_MEMORY = 65_536;

/** How many instructions a pattern in RE2 syntax compiles to, or what is wrong with it. */
export function patternSize(pattern: string): number | string {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    return `a regular expression has at most ${MAX_PATTERN_LENGTH} characters, this one ${pattern.length}; shorten it`;
  }
  let size: number;
  try {
    size = RE2JS.compile(pattern).programSize();
  } catch (error) {
    return `this is no regular expression of RE2: ${(error as Error).message}`;
  }
  if (size <= MAX_INSTRUCTIONS) return size;
  return `the regular expression compiles to ${size} instructions, the most is ${MAX_INSTRUCTIONS}; repeat less`;
}

/** Patterns that are matched in one pass over a value. */
interface PatternSet {
  readonly patterns: string[];
  /** Place of the first of them in the list. */
  readonly first: number;
  instructions: number;
  /** Made when it is first needed. */
  set: RE2Set | undefined;
}

/** Regular expressions in order, each with its owner. A value is matched as a whole, in a time that grows with its length alone. */
export class RegexList<Owner> {
  private readonly owners: Owner[] = [];
  private readonly sets: PatternSet[] = [];
  private readonly ownerOf = new Map<string, Owner>();

  /** The owner of this very pattern. */
  holderOf(pattern: string): Owner | undefined {
    return this.ownerOf.get(pattern);
  }

  /** `patterns` are those that {@link patternSize} finds nothing wrong with, and that nobody owns yet; `sizes` what it gives. */
  add(patterns: readonly string[], sizes: readonly number[], owner: Owner): void {
    patterns.forEach((pattern, i) => {
      const size = sizes[i] ?? 0;
      this.ownerOf.set(pattern, owner);
      const place = this.owners.push(owner) - 1;
      const last = this.sets.at(-1);
      if (last === undefined || isFull(last, size)) {
        this.sets.push({ patterns: [pattern], first: place, instructions: size, set: undefined });
      } else {
        last.patterns.push(pattern);
        last.instructions += size;
        last.set = undefined;
      }
    });
  }

  /** How many {@link compile} takes. */
  get setCount(): number {
    return this.sets.length;
  }

  /** Compiles some of the patterns, which takes a millisecond or two. Otherwise the first value that meets them does. */
  compile(set: number): void {
    const one = this.sets[set];
    if (one !== undefined) compiled(one);
  }

  /** What {@link find} costs at most, in characters times patterns: some 5 ns each for values that are made to cost much. */
  costOf(value: string): number {
    return value.length > MAX_VALUE_LENGTH ? 0 : value.length * this.owners.length;
  }

  /** The owner of the first pattern, in order, that matches the whole value. */
  find(value: string): Owner | undefined {
    if (value.length > MAX_VALUE_LENGTH) return undefined;
    for (let i = 0; i < this.sets.length; i++) {
      // Ascending.
      const set = this.sets[i] as PatternSet;
      const matched = compiled(set).match(value)[0];
      if (matched !== undefined) return this.owners[set.first + matched];
    }
    return undefined;
  }
}

/** Whether a pattern of so many instructions belongs into the next set. */
function isFull({ patterns, instructions }: PatternSet, size: number): boolean {
  return patterns.length === PATTERNS_PER_SET || instructions + size > INSTRUCTIONS_PER_SET;
}

function compiled(one: PatternSet): RE2Set {
  one.set ??= compileSet(one.patterns);
  return one.set;
}

function compileSet(patterns: readonly string[]): RE2Set {
  const memory = Math.max(LEAST_MEMORY, patterns.length * MEMORY_PER_PATTERN);
  const set = new RE2Set(RE2Set.ANCHOR_BOTH, 0, memory);
  for (const pattern of patterns) set.add(pattern);
  set.compile();
  return set;
}

/** The first of the patterns that matches the whole value. */
export function firstMatch(patterns: readonly string[], value: string): string | undefined {
  const list = new RegexList<string>();
  for (const pattern of patterns) list.add([pattern], [], pattern);
  return list.find(value);
}
