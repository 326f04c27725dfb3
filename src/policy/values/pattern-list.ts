import { EXCEEDED, type MatchWork } from '../match-work.js';
import { AffixTrie } from './affix-trie.js';
import { type FoundText, NO_NUMBER, TextFinder } from './text-finder.js';
import type { Wildcard } from './wildcard.js';

/** So few patterns are tried one by one, as that is quicker for usual values. */
const MAX_SEQUENTIAL_PATTERNS = 8;
/**
 * Looking one by one for what stands between stars takes patterns times characters; beyond this many all are looked for
 * at once.
 */
const MAX_SEQUENTIAL_COST = 512;
/** Steps for each pattern that is tried by itself. */
const TRY_STEPS = 6;
/** Units of two texts that are compared in a step. */
const UNITS_PER_STEP = 8;

/** A pattern, by its place in the file, and the numbers of what stands between its stars. */
interface CandidatePattern {
  readonly place: number;
  readonly numbers: readonly number[];
}

/**
 * Value patterns in file order, each with its owner: the first that matches is found in a walk over the beginning and
 * the end of a value, and one pass over it if patterns have texts between their stars, however many there are. Patterns
 * with several such texts, or such a text beside a beginning or an end, are then tried by themselves where the value
 * holds all of them.
 */
export class PatternList<Owner> {
  private readonly wildcards: Wildcard[] = [];
  private readonly owners: Owner[] = [];
  /** Patterns with nothing between stars, by their beginnings and ends. */
  private readonly affixes = new AffixTrie<number>();
  /** The first of the others, and how many texts stand between the stars of all of them. */
  private firstInner = NO_NUMBER;
  private innerTexts = 0;
  /** All that stands between stars, and the numbers of those that are no whole pattern. */
  private readonly texts: FoundText[] = [];
  private readonly numberOf = new Map<string, number>();
  /** By number: patterns that are tried where a value holds the text, and the rest of what they ask for. */
  private readonly candidates: CandidatePattern[][] = [];
  /** By number: when a value last held the text, by {@link round}. */
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

  /** Of some texts the one that the fewest patterns wait for so far: many patterns may have the others in common. */
  private rarest(numbers: readonly number[]): CandidatePattern[] {
    const lists = numbers.map((number) => this.candidates[number] as CandidatePattern[]);
    return lists.reduce((least, list) => (list.length < least.length ? list : least));
  }

  /** The owner of the first pattern that matches the whole value. */
  find(value: string, work: MatchWork): Owner | undefined | typeof EXCEEDED {
    const isLittle =
      this.wildcards.length <= MAX_SEQUENTIAL_PATTERNS &&
      value.length * this.innerTexts <= MAX_SEQUENTIAL_COST;
    const best = isLittle ? this.tryAll(value, work) : this.findAny(value, work);
    return best === EXCEEDED ? EXCEEDED : this.owners[best];
  }

  /**
   * What takes long to be made, made: plain data for {@link setPrepared} of a list with the same patterns in the same
   * order.
   */
  prepared(): Int32Array | undefined {
    if (this.innerTexts === 0) return undefined;
    this.finder ??= TextFinder.build(this.texts);
    return this.finder.words;
  }

  /** Takes what another list has {@link prepared}. Otherwise the first value that needs it makes it. */
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
    const least = (this.finder as TextFinder).find(value, best, found, work);
    return least === EXCEEDED || found.length === 0 ? least : this.tryCandidates(value, least, work);
  }

  /** Tries the patterns all of whose texts were found. */
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
