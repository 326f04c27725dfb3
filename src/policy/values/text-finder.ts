import { EXCEEDED, type MatchWork } from '../match-work.js';

/** A text that is looked for, with a number from 0. */
export interface FoundText {
  readonly text: string;
  /** Of texts that are not whole, each has another one. */
  readonly number: number;
  /** Whether only the least number of all that are found is asked for; else each is. */
  readonly isWhole: boolean;
}

/** Behind every number. */
export const NO_NUMBER = 0x7fff_ffff;

/** Rounds are words. */
const MAX_ROUND = 0x7fff_ffff;

/** So many units of a value are read at once; short ones one by one. */
const CHUNK_UNITS = 16_384;
const SHORT_UNITS = 128;
const bytes = Buffer.alloc(CHUNK_UNITS * 2);
const units = new Uint16Array(bytes.buffer, bytes.byteOffset, CHUNK_UNITS);

/** Units of which the first state knows the next by itself. */
const DIRECT_UNITS = 256;
/** What a state is made of, as many words each; see {@link TextFinder}. */
const FIELDS = 6;
/** Words before the states. */
const HEADER = 1;

/**
 * Finds which of many texts a value holds, in one pass over it (Aho and Corasick, "Efficient string matching", 1975). A
 * state is what could still become a text: states form the trie of all texts, and each knows the longest other state
 * that its text ends with, where it goes when a unit leads no further. All of it is one array of words, which another
 * thread can make: about 40 bytes for each UTF-16 unit of the texts.
 */
export class TextFinder {
  /** Everything; plain data for {@link TextFinder.from}. */
  readonly words: Int32Array;
  private readonly mask: number;
  /** Hash table of all states but the first, which is 0, by the state before and the unit that leads to them. */
  private readonly table: Int32Array;
  private readonly before: Int32Array;
  private readonly unit: Int32Array;
  /** Where to go when a unit leads no further. */
  private readonly fail: Int32Array;
  /** The least number of a whole text that ends here. */
  private readonly whole: Int32Array;
  /**
   * Where another text ends that ends here, too: this state, or the nearest that its text ends with; and what its
   * number is.
   */
  private readonly part: Int32Array;
  private readonly number: Int32Array;
  /** What the units below 256 lead to from the first state. */
  private readonly direct = new Int32Array(DIRECT_UNITS);
  /** When each state was last visited for its parts, by {@link round}. */
  private visited: Int32Array | undefined;
  private round = 0;

  private constructor(words: Int32Array) {
    const states = words[0] as number;
    let at = HEADER;
    const section = (length: number): Int32Array => {
      at += length;
      return words.subarray(at - length, at);
    };
    this.words = words;
    this.before = section(states);
    this.unit = section(states);
    this.fail = section(states);
    this.whole = section(states);
    this.part = section(states);
    this.number = section(states);
    this.table = section(tableSize(states));
    this.mask = this.table.length - 1;
  }

  /** Of a finder with the same texts, its {@link words}. */
  static from(words: Int32Array): TextFinder {
    const finder = new TextFinder(words);
    finder.fillDirect();
    return finder;
  }

  /** Takes some 100 ns for each unit of the texts, none of which is empty. */
  static build(texts: readonly FoundText[]): TextFinder {
    let most = 1;
    for (const { text } of texts) most += text.length;
    const words = new Int32Array(HEADER + most * FIELDS + tableSize(most));
    words[0] = most;
    const finder = new TextFinder(words);
    finder.link(finder.insertAll(texts));
    finder.fillDirect();
    return finder;
  }

  /**
   * The least number of a whole text below `best` that the value holds; `best` if there is none. Numbers of other texts
   * that it holds are added to `parts`, each once, in no order.
   */
  find(value: string, best: number, parts: number[], work: MatchWork): number | typeof EXCEEDED {
    // On the whole there are two looks at the table for each unit, at most.
    if (!work.spend(value.length * 2)) return EXCEEDED;
    const { whole, part, fail, direct } = this;
    this.visited ??= new Int32Array(this.before.length);
    if (this.round === MAX_ROUND) {
      this.visited.fill(0);
      this.round = 0;
    }
    this.round++;
    let least = best;
    let state = 0;
    for (let from = 0; from < value.length; from += CHUNK_UNITS) {
      const length = readUnits(value, from);
      for (let i = 0; i < length; i++) {
        const unit = units[i] as number;
        let next = 0;
        while (state !== 0) {
          next = this.step(state, unit);
          if (next !== 0) break;
          state = fail[state] as number;
        }
        if (next === 0) {
          next = unit < DIRECT_UNITS ? (direct[unit] as number) : this.step(0, unit);
          if (next === 0) continue;
        }
        state = next;
        const found = whole[state] as number;
        if (found < least) least = found;
        if (part[state] !== 0 && !this.collect(state, parts, work)) return EXCEEDED;
      }
    }
    return least;
  }

  /** Adds what ends at a state, as far as it was not met before. */
  private collect(state: number, parts: number[], work: MatchWork): boolean {
    const visited = this.visited as Int32Array;
    for (let at = this.part[state] as number; at !== 0 && visited[at] !== this.round; ) {
      visited[at] = this.round;
      if (!work.spend(2)) return false;
      parts.push(this.number[at] as number);
      at = this.part[this.fail[at] as number] as number;
    }
    return true;
  }

  /** The state that a unit leads to, 0 for none. */
  private step(state: number, unit: number): number {
    const { table, before, mask } = this;
    const known = this.unit;
    // States of one text mostly have numbers in a row.
    const likely = state + 1;
    if (known[likely] === unit && before[likely] === state) return likely;
    for (let slot = slotOf(state, unit) & mask; ; slot = (slot + 1) & mask) {
      const next = table[slot] as number;
      if (next === 0 || (known[next] === unit && before[next] === state)) return next;
    }
  }

  /** Returns how many states there are. */
  private insertAll(texts: readonly FoundText[]): number {
    const { table, before, mask } = this;
    const known = this.unit;
    this.whole.fill(NO_NUMBER);
    let count = 1;
    for (const { text, number, isWhole } of texts) {
      let state = 0;
      for (let j = 0; j < text.length; j++) {
        const unit = text.charCodeAt(j);
        let next = this.step(state, unit);
        if (next === 0) {
          next = count++;
          before[next] = state;
          known[next] = unit;
          let slot = slotOf(state, unit) & mask;
          while (table[slot] !== 0) slot = (slot + 1) & mask;
          table[slot] = next;
        }
        state = next;
      }
      if (isWhole) {
        this.whole[state] = Math.min(this.whole[state] as number, number);
      } else {
        this.number[state] = number;
        this.part[state] = state;
      }
    }
    return count;
  }

  /**
   * Finds where each state goes when a unit leads no further: from the shortest texts on, as it needs those of shorter
   * ones.
   */
  private link(count: number): void {
    const { before, unit, fail, whole, part } = this;
    for (const state of byDepth(before, count)) {
      const above = before[state] as number;
      let back = 0;
      if (above !== 0) {
        let from = fail[above] as number;
        back = this.step(from, unit[state] as number);
        while (back === 0 && from !== 0) {
          from = fail[from] as number;
          back = this.step(from, unit[state] as number);
        }
      }
      fail[state] = back;
      whole[state] = Math.min(whole[state] as number, whole[back] as number);
      if (part[state] === 0) part[state] = part[back] as number;
    }
  }

  private fillDirect(): void {
    for (let unit = 0; unit < DIRECT_UNITS; unit++) this.direct[unit] = this.step(0, unit);
  }
}

/**
 * Brings some of a value's units, from the `from`-th on, into {@link units}, where they are read faster. Returns how
 * many.
 */
function readUnits(value: string, from: number): number {
  const length = Math.min(value.length - from, CHUNK_UNITS);
  if (length > SHORT_UNITS) {
    bytes.write(value.slice(from, from + length), 'utf16le');
    return length;
  }
  for (let i = 0; i < length; i++) units[i] = value.charCodeAt(from + i);
  return length;
}

/** Twice as many slots as states, at least, so that a look at the table meets few others. */
function tableSize(states: number): number {
  return 2 ** Math.ceil(Math.log2(states * 2));
}

function slotOf(state: number, unit: number): number {
  const mixed = Math.imul(Math.imul(state, 0x9e37_79b1) ^ unit, 0x85eb_ca6b);
  return mixed ^ (mixed >>> 15);
}

/** All states but the first, those with short texts first. A state comes after the one before it in any case. */
function byDepth(before: Int32Array, count: number): Int32Array {
  const depth = new Int32Array(count);
  let deepest = 0;
  for (let state = 1; state < count; state++) {
    depth[state] = (depth[before[state] as number] as number) + 1;
    deepest = Math.max(deepest, depth[state] as number);
  }
  const start = new Int32Array(deepest + 2);
  for (let state = 1; state < count; state++) {
    const after = (depth[state] as number) + 1;
    start[after] = (start[after] as number) + 1;
  }
  for (let i = 1; i < start.length; i++) start[i] = (start[i] as number) + (start[i - 1] as number);
  const order = new Int32Array(count - 1);
  for (let state = 1; state < count; state++) {
    const at = depth[state] as number;
    order[start[at] as number] = state;
    start[at] = (start[at] as number) + 1;
  }
  return order;
}
