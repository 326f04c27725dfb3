import { AffixTrie } from './affix-trie.js';
import { EXCEEDED, type MatchWork } from './match-work.js';
import { type FoundText, NO_NUMBER, TextFinder } from './text-finder.js';
import type { Wildcard } from './wildcard.js';

/** So few patterns are tried one by one, as that is quicker for usual values. */
const FEW = 4;
/** Looking one by one for what stands between stars takes patterns times characters; beyond this many all are looked for at once. */
const FEW_CHARACTERS = 512;
/** Steps for each pattern that is tried by itself. */
const TRY_STEPS = 6;

/**
 * Value patterns in file order, each with its owner: the first that matches is found in a walk over the beginning and the end of a value, and one pass
 * over it if patterns have texts between their stars, however many there are. Patterns with several such texts, or such a text beside a beginning or
 * an end, are then tried by themselves where the value holds the longest of them.
 */
export class PatternList<Owner> {
  private readonly wildcards: Wildcard[] = [];
  private readonly owners: Owner[] = [];
  /** Patterns with nothing between stars, by their beginnings and ends. */
  private readonly affixes = new AffixTrie<number>();
  /** The others, ascending. */
  private readonly inner: number[] = [];
  private innerTexts = 0;
  private finder: TextFinder | undefined;
  private readonly found: number[] = [];

  add(wildcard: Wildcard, owner: Owner): void {
    const place = this.wildcards.push(wildcard) - 1;
    this.owners.push(owner);
    if (wildcard.middle.length === 0) {
      this.affixes.put(wildcard.prefix, wildcard.suffix, () => place);
      return;
    }
    this.inner.push(place);
    this.innerTexts += wildcard.middle.length;
    this.finder = undefined;
  }

  /** The owner of the first pattern that matches the whole value. */
  find(value: string, work: MatchWork): Owner | undefined | typeof EXCEEDED {
    let best: number | typeof EXCEEDED = NO_NUMBER;
    if (this.wildcards.length <= FEW) {
      best =
        value.length * this.innerTexts <= FEW_CHARACTERS
          ? this.tryAll(value, work)
          : this.findAny(value, work);
    } else {
      best = this.findAny(value, work);
    }
    return best === EXCEEDED ? EXCEEDED : this.owners[best];
  }

  /** What takes long to be made, made: plain data for {@link take} of a list with the same patterns in the same order. */
  prepared(): Int32Array | undefined {
    if (this.inner.length === 0) return undefined;
    this.finder ??= TextFinder.build(
      this.inner.map((place) => keyText(this.wildcards[place] as Wildcard, place)),
    );
    return this.finder.words;
  }

  /** Takes what another list has {@link prepared}. Otherwise the first value that needs it makes it. */
  take(words: Int32Array): void {
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
    const [first] = this.inner;
    if (first === undefined || first > best) return best;
    if (this.finder === undefined) this.prepared();
    found.length = 0;
    const least = (this.finder as TextFinder).find(value, best, found, work);
    return least === EXCEEDED || found.length === 0 ? least : this.tryFound(value, least, work);
  }

  /** Tries what the value may match. */
  private tryFound(value: string, before: number, work: MatchWork): number | typeof EXCEEDED {
    const { found } = this;
    let best = before;
    for (let i = 0; i < found.length; i++) {
      const place = found[i] as number;
      if (place > best) continue;
      if (!work.spend(TRY_STEPS)) return EXCEEDED;
      const wildcard = this.wildcards[place] as Wildcard;
      if (!wildcard.mayMatch(value)) continue;
      if (!work.spend(wildcard.middle.length * (value.length + TRY_STEPS))) return EXCEEDED;
      if (wildcard.matches(value)) best = place;
    }
    return best;
  }
}

/** Of what stands between stars the longest; the whole pattern if there is nothing else to it. */
function keyText({ prefix, suffix, middle }: Wildcard, number: number): FoundText {
  let text = '';
  for (const part of middle) if (part.length > text.length) text = part;
  return { text, number, isWhole: middle.length === 1 && prefix === '' && suffix === '' };
}
