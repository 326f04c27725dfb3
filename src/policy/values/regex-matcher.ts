import { RE2JS } from 're2js';
import { assertFound, EXCEEDED, type MatchWork, type Search, unboundedWork } from '../match-work.js';
import { type ReadProgress, RegexSet } from './regex-set.js';

/** Longest pattern, in UTF-16 units. */
export const MAX_REGEX_LENGTH = 1024;
/**
 * Most instructions that a pattern compiles to: counted repetitions are copies, and every value may visit each of them
 * at each character.
 */
export const MAX_INSTRUCTIONS = 500;

/**
 * So many patterns are matched at once, by one automaton. More at once make a usual value cheaper, but the states of a
 * larger automaton are so many, with values made for it, that building them takes longer than all that (bench:
 * matchers).
 */
const PATTERNS_PER_SET = 32;
/** Nor does a set hold more instructions, but for those of one pattern alone: they are compiled at a stretch. */
const INSTRUCTIONS_PER_SET = 1000;
/** Steps (MatchWork) that compiling takes for each instruction. */
const COMPILE_STEPS = 400;
/**
 * Bounds of ranges of characters that take as long to compile as an instruction; fewer where case is folded, which is
 * done for each character.
 */
const BOUNDS_PER_INSTRUCTION = 64;
const FOLDED_BOUNDS_PER_INSTRUCTION = 4;

/** How large a pattern in RE2 syntax is for {@link RegexList.add}, by what it compiles to, or what is wrong with it. */
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
      `this is not a valid RE2 regular expression (${reason}); correct it (RE2 does not support ` +
      'lookaround and backreferences)'
    );
  }
  const size = compiledPattern.programSize();
  if (size <= MAX_INSTRUCTIONS) return size + sizeOfRanges(pattern, compiledPattern.re2());
  return (
    `the pattern compiles to ${size} instructions, more than the maximum of ${MAX_INSTRUCTIONS}; lower ` +
    'its repetitions'
  );
}

/** What classes like `\pL` add to the time that a pattern takes to compile, in instructions. */
function sizeOfRanges(pattern: string, { prog }: { readonly prog: Program }): number {
  let bounds = 0;
  for (let at = 0; at < prog.numInst(); at++) bounds += prog.getInst(at).runes?.length ?? 0;
  const isFolded = /\(\?[a-zA-Z]*i/.test(pattern);
  return Math.floor(bounds / (isFolded ? FOLDED_BOUNDS_PER_INSTRUCTION : BOUNDS_PER_INSTRUCTION));
}

/** What re2js compiles a pattern to. */
interface Program {
  numInst(): number;
  getInst(at: number): { readonly runes?: ArrayLike<number> | null };
}

/** Patterns that are matched in one pass over a value. */
interface PatternSet {
  readonly patterns: string[];
  /** Place of the first of them in the list. */
  readonly first: number;
  /** Of all together, by {@link patternSize}. */
  instructions: number;
  /** Made when it is first needed. */
  set: RegexSet | undefined;
}

/**
 * Regular expressions in order, each with its owner. A value is matched as a whole, in a time that grows with its
 * length alone.
 */
export class RegexList<Owner> {
  private readonly owners: Owner[] = [];
  private readonly sets: PatternSet[] = [];

  /**
   * `patterns` are those that {@link patternSize} finds nothing wrong with, and that nobody owns yet; `sizes` what it
   * gives.
   */
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

  /** How many {@link compile} takes. */
  get setCount(): number {
    return this.sets.length;
  }

  /**
   * Compiles some of the patterns, which takes a millisecond or two. Otherwise the first value that meets them does.
   */
  compile(set: number): void {
    const one = this.sets[set];
    if (one !== undefined) compiled(one);
  }

  /**
   * The owner of the first pattern, in order, that matches the whole value. {@link EXCEEDED} when `work` does not last;
   * the same question with the same `work`, given more, goes on where this one ended.
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

/** How far a value has come on its way through the sets of a list, and what was found at its end. */
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

/** Whether a pattern of so many instructions belongs into the next set. */
function isFull({ patterns, instructions }: PatternSet, size: number): boolean {
  return patterns.length === PATTERNS_PER_SET || instructions + size > INSTRUCTIONS_PER_SET;
}

function compiled(one: PatternSet): RegexSet {
  one.set ??= new RegexSet(one.patterns);
  return one.set;
}

/** The first of the patterns that matches the whole value. */
export function firstMatch(patterns: readonly string[], value: string): string | undefined {
  const list = new RegexList<string>();
  for (const pattern of patterns) list.add([pattern], [], pattern);
  return assertFound(list.find(value, unboundedWork()));
}
