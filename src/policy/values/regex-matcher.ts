import { RE2JS } from 're2js';
import { assertFound, EXCEEDED, type MatchWork, type Search, unboundedWork } from '../match-work.js';
import { type ReadProgress, RegexSet } from './regex-set.js';

/** Maximum length of a pattern, in UTF-16 units. */
export const MAX_REGEX_LENGTH = 1024;
/**
 * Maximum number of instructions of a compiled pattern: counted repetitions are copied, and every value may visit each
 * instruction at each character.
 */
const MAX_INSTRUCTIONS = 500;

/**
 * Number of patterns that one automaton matches. A larger automaton is faster for usual values, but crafted values can
 * make it build so many states that this takes longer than the gain (bench: matchers).
 */
const PATTERNS_PER_SET = 32;
/** Maximum number of instructions in a set, unless one pattern has more, because a set is compiled in one step. */
const INSTRUCTIONS_PER_SET = 1000;
/** Steps (MatchWork) for compiling each instruction. */
const COMPILE_STEPS = 400;
/**
 * Number of bounds of character ranges that take as long to compile as one instruction; fewer with case folding, which
 * processes each character.
 */
const BOUNDS_PER_INSTRUCTION = 64;
const FOLDED_BOUNDS_PER_INSTRUCTION = 4;

/** Returns the size of a pattern in RE2 syntax, as needed by {@link RegexList.add}, or what is wrong with it. */
export function patternSize(pattern: string): number | string {
  if (pattern.length > MAX_REGEX_LENGTH) {
    return `a regular expression may have at most ${MAX_REGEX_LENGTH} characters, not ${pattern.length}; shorten it`;
  }
  let compiledPattern: RE2JS;
  try {
    compiledPattern = RE2JS.compile(pattern);
  } catch (error) {
    const reason = (error as Error).message.replace(/^error parsing regexp: /, '');
    return (
      `this is not a valid RE2 regular expression (${reason}); correct the expression (RE2 does not ` +
      'support lookaround or backreferences)'
    );
  }
  const size = compiledPattern.programSize();
  if (size <= MAX_INSTRUCTIONS) return size + sizeOfRanges(pattern, compiledPattern.re2());
  return (
    `the pattern compiles to ${size} instructions, more than the maximum of ${MAX_INSTRUCTIONS}; use ` +
    'smaller repetition counts'
  );
}

/** Returns the additional compile time of classes such as `\pL`, in instructions. */
function sizeOfRanges(pattern: string, { prog }: { readonly prog: Program }): number {
  let bounds = 0;
  for (let at = 0; at < prog.numInst(); at++) bounds += prog.getInst(at).runes?.length ?? 0;
  const isFolded = /\(\?[a-zA-Z]*i/.test(pattern);
  return Math.floor(bounds / (isFolded ? FOLDED_BOUNDS_PER_INSTRUCTION : BOUNDS_PER_INSTRUCTION));
}

/** A pattern compiled by re2js. */
interface Program {
  numInst(): number;
  getInst(at: number): { readonly runes?: ArrayLike<number> | null };
}

/** Patterns that are matched in one pass over a value. */
interface PatternSet {
  readonly patterns: string[];
  /** Position of the first one in the list. */
  readonly first: number;
  /** Total of {@link patternSize}. */
  instructions: number;
  /** Created when it is first needed. */
  set: RegexSet | undefined;
}

/** Regular expressions in order, each with its owner. The time to match a whole value depends only on its length. */
export class RegexList<Owner> {
  private readonly owners: Owner[] = [];
  private readonly sets: PatternSet[] = [];

  /** Adds `patterns` that {@link patternSize} accepts and that have no owner yet; `sizes` holds what it returned. */
  add(patterns: readonly string[], sizes: readonly number[], owner: Owner): void {
    patterns.forEach((pattern, i) => {
      const size = sizes[i] ?? 0;
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

  /** Number of {@link compile} steps. */
  get setCount(): number {
    return this.sets.length;
  }

  /** Compiles one set of patterns, which takes 1 or 2 ms. Otherwise, the first value that needs it does. */
  compile(set: number): void {
    const one = this.sets[set];
    if (one !== undefined) compiled(one);
  }

  /**
   * Returns the owner of the first pattern that matches the whole value. Returns {@link EXCEEDED} if `work` is
   * exhausted; a call with the same `work`, refilled, continues the search.
   */
  find(value: string, work: MatchWork): Owner | undefined | typeof EXCEEDED {
    const search = work.searchOf(this, value) as RegexSearch<Owner> | undefined;
    if (search?.isDone) return search.found;
    const reading: ReadProgress = search?.reading ?? { at: 0, state: undefined };
    for (let i = search?.set ?? 0; i < this.sets.length; i++) {
      const one = this.sets[i] as PatternSet;
      const fresh = one.set === undefined;
      const set = compiled(one);
      if (fresh) work.spendOnce(one.instructions * COMPILE_STEPS);
      const first = set.first(value, work, reading);
      if (first === EXCEEDED) {
        this.note(value, work, search, i, reading);
        return EXCEEDED;
      }
      reading.at = 0;
      reading.state = undefined;
      if (first === undefined) continue;
      const found = this.owners[one.first + first];
      if (search !== undefined) search.end(found);
      return found;
    }
    if (search !== undefined) search.end(undefined);
    return undefined;
  }

  private note(
    value: string,
    work: MatchWork,
    known: RegexSearch<Owner> | undefined,
    set: number,
    reading: ReadProgress,
  ): void {
    const search = known ?? new RegexSearch<Owner>(this, value, reading);
    search.progress = set * (value.length + 1) + reading.at;
    search.set = set;
    if (known === undefined) work.searches.push(search);
  }
}

/** The progress of a value through the sets of a list, and its result. */
class RegexSearch<Owner> implements Search {
  readonly list: object;
  readonly value: string;
  readonly reading: ReadProgress;
  progress = 0;
  set = 0;
  isDone = false;
  found: Owner | undefined;

  constructor(list: object, value: string, reading: ReadProgress) {
    this.list = list;
    this.value = value;
    this.reading = reading;
  }

  end(found: Owner | undefined): void {
    this.isDone = true;
    this.found = found;
  }
}

/** Returns whether a pattern of `size` instructions needs a new set. */
function isFull({ patterns, instructions }: PatternSet, size: number): boolean {
  return patterns.length === PATTERNS_PER_SET || instructions + size > INSTRUCTIONS_PER_SET;
}

function compiled(one: PatternSet): RegexSet {
  one.set ??= new RegexSet(one.patterns);
  return one.set;
}

/** Returns the first pattern that matches the whole value. */
export function firstMatch(patterns: readonly string[], value: string): string | undefined {
  const list = new RegexList<string>();
  for (const pattern of patterns) list.add([pattern], [], pattern);
  return assertFound(list.find(value, unboundedWork()));
}
