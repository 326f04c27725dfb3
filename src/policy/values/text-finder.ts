import { EXCEEDED, type MatchWork } from '../match-work.js';

/** A string to search, with a number from 0. */
export interface FoundText {
  readonly text: string;
  /** Unique among strings that are not whole patterns. */
  readonly number: number;
  /** Whether only the lowest number of all found strings is needed; otherwise each is reported. */
  readonly isWhole: boolean;
}

/** Greater than every number. */
export const NO_NUMBER = 0x7fff_ffff;

/** Rounds are stored in 32-bit words. */
const MAX_ROUND = 0x7fff_ffff;

/** Number of units of a value that are read at once; short values are read one by one. */
const CHUNK_UNITS = 16_384;
const SHORT_UNITS = 128;
const bytes = Buffer.alloc(CHUNK_UNITS * 2);
const units = new Uint16Array(bytes.buffer, bytes.byteOffset, CHUNK_UNITS);

/** Number of units whose transitions from the first state are in a direct table. */
const DIRECT_UNITS = 256;
/** Number of words for each state; see {@link TextFinder}. */
const FIELDS = 6;
/** Number of words before the states. */
const HEADER = 1;

/**
 * Finds which of many strings a value contains, in one pass (Aho and Corasick, "Efficient string matching", 1975). The
 * states form the trie of all strings. Each state has a failure link to the longest other state that is a suffix of its
 * string. Everything is in one array of words, about 40 bytes for each UTF-16 unit of the strings, so that another
 * thread can build it.
 */
export class TextFinder {
  /** All data; for {@link TextFinder.from}. */
  readonly words: Int32Array;
  private readonly mask: number;
  /** Hash table of all states except the first one, 0, by the previous state and the unit. */
  private readonly table: Int32Array;
  private readonly before: Int32Array;
  private readonly unit: Int32Array;
  /** Failure links. */
  private readonly fail: Int32Array;
  /** The lowest number of a whole pattern that ends here. */
  private readonly whole: Int32Array;
  /**
   * The nearest state, this one or one of its suffixes, where a string that is not a whole pattern ends, and its
   * number.
   */
  private readonly part: Int32Array;
  private readonly number: Int32Array;
  /** Transitions of the first state for units below 256. */
  private readonly direct = new Int32Array(DIRECT_UNITS);
  /** The {@link round} in which each state was last visited. */
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

  /** Returns a finder with the {@link words} of another one with the same strings. */
  static from(words: Int32Array): TextFinder {
    const finder = new TextFinder(words);
    finder.fillDirect();
    return finder;
  }

  /** Builds a finder, which takes about 100 ns for each unit of the strings. No string may be empty. */
  static build(texts: readonly FoundText[]): TextFinder {
    let maxStates = 1;
    for (const { text } of texts) maxStates += text.length;
    const words = new Int32Array(HEADER + maxStates * FIELDS + tableSize(maxStates));
    words[0] = maxStates;
    const finder = new TextFinder(words);
    finder.link(finder.insertAll(texts));
    finder.fillDirect();
    return finder;
  }

  /**
   * Returns the lowest number below `best` of a whole pattern that the value contains, or `best`. Appends the numbers
   * of other strings that it contains to `parts`, each once, in no order.
   */
  find(value: string, best: number, parts: number[], work: MatchWork): number | typeof EXCEEDED {
    // There are at most two table lookups per unit in total.
    if (!work.spend(value.length * 2)) return EXCEEDED;
    const { whole, part, fail, direct } = this;
    this.visited ??= new Int32Array(this.before.length);
    if (this.round === MAX_ROUND) {
      this.visited.fill(0);
      this.round = 0;
    }
    this.round++;
    let lowest = best;
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
        if (found < lowest) lowest = found;
        if (part[state] !== 0 && !this.collect(state, parts, work)) return EXCEEDED;
      }
    }
    return lowest;
  }

  /** Collects the strings that end at a state, up to the first that was visited before. */
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

  /** Returns the state after a unit, or 0 if no state follows. */
  private step(state: number, unit: number): number {
    const { table, before, mask } = this;
    const known = this.unit;
    // The states of one text usually have consecutive numbers.
    const likely = state + 1;
    if (known[likely] === unit && before[likely] === state) return likely;
    for (let slot = slotOf(state, unit) & mask; ; slot = (slot + 1) & mask) {
      const next = table[slot] as number;
      if (next === 0 || (known[next] === unit && before[next] === state)) return next;
    }
  }

  /** Returns the number of states. */
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

  /** Computes the failure links, starting with the shortest strings, because longer ones need those of shorter ones. */
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

/** Copies units of a value, starting at `from`, into {@link units}, where reading is faster. Returns their number. */
function readUnits(value: string, from: number): number {
  const length = Math.min(value.length - from, CHUNK_UNITS);
  if (length > SHORT_UNITS) {
    bytes.write(value.slice(from, from + length), 'utf16le');
    return length;
  }
  for (let i = 0; i < length; i++) units[i] = value.charCodeAt(from + i);
  return length;
}

/** Returns a table size of at least twice the number of states, which keeps collisions rare. */
function tableSize(states: number): number {
  return 2 ** Math.ceil(Math.log2(states * 2));
}

function slotOf(state: number, unit: number): number {
  const mixed = Math.imul(Math.imul(state, 0x9e37_79b1) ^ unit, 0x85eb_ca6b);
  return mixed ^ (mixed >>> 15);
}

/** Returns all states except the first one, sorted by depth. A state always comes after its parent. */
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
