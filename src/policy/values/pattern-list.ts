import { EXCEEDED, type MatchWork } from '../match-work.js';
import { AffixTrie } from './affix-trie.js';
import { type FoundText, NO_NUMBER, TextFinder } from './text-finder.js';
import type { Wildcard } from './wildcard.js';

/** Maximum number of patterns that are tested one by one, which is faster for usual values. */
const MAX_SEQUENTIAL_PATTERNS = 8;
/**
 * Maximum cost of searching inner strings one by one, in patterns times characters; beyond it, all are searched at
 * once.
 */
const MAX_SEQUENTIAL_COST = 512;
/** Steps for each pattern that is tested by itself. */
const TRY_STEPS = 6;
/** Number of units of two strings that are compared in a step. */
const UNITS_PER_STEP = 8;

/** A pattern, as its position in the file, and the numbers of its inner strings. */
interface CandidatePattern {
  readonly place: number;
  readonly numbers: readonly number[];
}

/**
 * Value patterns in file order, each with its owner. For patterns with one star, the first match is found from the
 * start and the end of the value. Other patterns also have inner strings, between two stars. One pass over the value
 * finds all inner strings. Patterns with several inner strings, or with an inner string and a prefix or suffix, are
 * then tested one by one if the value contains all of their inner strings.
 */
export class PatternList<Owner> {
  private readonly wildcards: Wildcard[] = [];
  private readonly owners: Owner[] = [];
  /** Patterns without inner strings, by prefix and suffix. */
  private readonly affixes = new AffixTrie<number>();
  /** The first of the others, and the number of their inner strings. */
  private firstInner = NO_NUMBER;
  private innerTexts = 0;
  /** All inner strings, and the numbers of those that are not a complete pattern. */
  private readonly texts: FoundText[] = [];
  private readonly numberOf = new Map<string, number>();
  /** By number of a string: the patterns to test if a value contains it, and the rest of their conditions. */
  private readonly candidates: CandidatePattern[][] = [];
  /** By number of a string: the {@link round} in which a value last contained it. */
  private readonly lastFound: number[] = [];
  private round = 0;
  private finder: TextFinder | undefined;
  private readonly found: number[] = [];

  add(wildcard: Wildcard, owner: Owner): void {
    const place = this.wildcards.push(wildcard) - 1;
    this.owners.push(owner);
    if (wildcard.middle.length === 0) {
      this.affixes.put(wildcard.prefix, wildcard.suffix, () => place);
      return;
    }
    this.firstInner = Math.min(this.firstInner, place);
    this.innerTexts += wildcard.middle.length;
    this.finder = undefined;
    const { prefix, suffix, middle } = wildcard;
    if (middle.length === 1 && prefix === '' && suffix === '') {
      this.texts.push({ text: middle[0] as string, number: place, isWhole: true });
      return;
    }
    const numbers = middle.map((text) => this.numberText(text));
    this.rarest(numbers).push({ place, numbers });
  }

  private numberText(text: string): number {
    const known = this.numberOf.get(text);
    if (known !== undefined) return known;
    const number = this.numberOf.size;
    this.numberOf.set(text, number);
    this.texts.push({ text, number, isWhole: false });
    this.candidates.push([]);
    this.lastFound.push(0);
    return number;
  }

  /** Returns the candidates of the string that has the fewest, because many patterns may share the other strings. */
  private rarest(numbers: readonly number[]): CandidatePattern[] {
    const lists = numbers.map((number) => this.candidates[number] as CandidatePattern[]);
    return lists.reduce((least, list) => (list.length < least.length ? list : least));
  }

  /** Returns the owner of the first pattern that matches the whole value. */
  find(value: string, work: MatchWork): Owner | undefined | typeof EXCEEDED {
    const isLittle =
      this.wildcards.length <= MAX_SEQUENTIAL_PATTERNS &&
      value.length * this.innerTexts <= MAX_SEQUENTIAL_COST;
    const best = isLittle ? this.tryAll(value, work) : this.findAny(value, work);
    return best === EXCEEDED ? EXCEEDED : this.owners[best];
  }

  /**
   * Returns the prepared data as plain data, for {@link setPrepared} of a list with the same patterns in the same
   * order.
   */
  prepared(): Int32Array | undefined {
    if (this.innerTexts === 0) return undefined;
    this.finder ??= TextFinder.build(this.texts);
    return this.finder.words;
  }

  /** Adopts the {@link prepared} data of another list. Without it, the first value that needs it computes it. */
  setPrepared(words: Int32Array): void {
    this.finder = TextFinder.from(words);
  }

  private tryAll(value: string, work: MatchWork): number | typeof EXCEEDED {
    const { wildcards } = this;
    if (!work.spend(TRY_STEPS * wildcards.length + value.length * this.innerTexts)) return EXCEEDED;
    for (let i = 0; i < wildcards.length; i++) {
      if ((wildcards[i] as Wildcard).matches(value)) return i;
    }
    return NO_NUMBER;
  }

  private findAny(value: string, work: MatchWork): number | typeof EXCEEDED {
    const { found } = this;
    found.length = 0;
    if (!work.spend(this.affixes.collect(value, 0, value.length, found))) return EXCEEDED;
    let best = NO_NUMBER;
    for (let i = 0; i < found.length; i++) best = Math.min(best, found[i] as number);
    if (this.firstInner > best || this.innerTexts === 0) return best;
    if (this.finder === undefined) this.prepared();
    found.length = 0;
    const lowest = (this.finder as TextFinder).find(value, best, found, work);
    return lowest === EXCEEDED || found.length === 0 ? lowest : this.tryCandidates(value, lowest, work);
  }

  /** Tests the patterns whose strings were all found. */
  private tryCandidates(value: string, before: number, work: MatchWork): number | typeof EXCEEDED {
    const { found, lastFound } = this;
    let best = before;
    this.round++;
    for (let i = 0; i < found.length; i++) lastFound[found[i] as number] = this.round;
    for (let i = 0; i < found.length; i++) {
      const tried = this.candidates[found[i] as number] as CandidatePattern[];
      for (let j = 0; j < tried.length; j++) {
        const { place, numbers } = tried[j] as CandidatePattern;
        if (place > best) break;
        if (!work.spend(TRY_STEPS)) return EXCEEDED;
        if (!this.areMet(numbers)) continue;
        const matches = this.tryOne(this.wildcards[place] as Wildcard, value, work);
        if (matches === EXCEEDED) return EXCEEDED;
        if (matches) best = place;
      }
    }
    return best;
  }

  private areMet(numbers: readonly number[]): boolean {
    for (let i = 0; i < numbers.length; i++) {
      if (this.lastFound[numbers[i] as number] !== this.round) return false;
    }
    return true;
  }

  private tryOne(wildcard: Wildcard, value: string, work: MatchWork): boolean | typeof EXCEEDED {
    if (!wildcard.mayMatch(value)) return false;
    const { middle, slowUnits } = wildcard;
    if (!work.spend(middle.length * (value.length + TRY_STEPS))) return EXCEEDED;
    if (slowUnits > 0 && !work.spend((value.length * slowUnits) / UNITS_PER_STEP)) return EXCEEDED;
    return wildcard.matches(value);
  }
}
