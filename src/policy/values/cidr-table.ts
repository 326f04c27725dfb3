import { assertFound, EXCEEDED, type MatchWork, unboundedWork } from '../match-work.js';
import {
  addressText,
  type CidrBlock,
  MAX_BLOCK_LENGTH,
  networkOf,
  parseBlock,
  readAddress,
  wordsOf,
} from './cidr.js';

/** Nothing holds the addresses of an interval. */
const NONE = -1;

/** Steps (MatchWork) that it takes to read a network, and to look for one block that could hold it. */
const NETWORK_STEPS = 600;
const PREFIX_STEPS = 120;
const WORD_BITS = 32;

/** The address that is being looked for. */
const words = new Uint32Array(4);

/**
 * Finds what belongs to the longest block that holds an address. All blocks together cut the addresses into intervals,
 * each with one owner: a lookup is a binary search over their first addresses, whatever the blocks.
 */
export class CidrTable<Owner> {
  private readonly owners: Owner[] = [];
  /** Blocks by their canonical texts. */
  private readonly ownerOf = new Map<string, number>();
  private intervals: CidrIntervals | undefined;
  /** Lengths of prefixes that blocks have, the longest first. */
  private readonly prefixes: Readonly<Record<4 | 6, number[]>> = { 4: [], 6: [] };

  /** `blocks` are canonical texts that nobody owns yet. */
  add(blocks: readonly string[], owner: Owner): void {
    const index = this.owners.push(owner) - 1;
    for (const block of blocks) {
      this.ownerOf.set(block, index);
      this.addPrefix(block.includes(':') ? 6 : 4, Number(block.slice(block.indexOf('/') + 1)));
    }
    this.intervals = undefined;
  }

  private addPrefix(family: 4 | 6, prefix: number): void {
    const prefixes = this.prefixes[family];
    if (prefixes.includes(prefix)) return;
    prefixes.push(prefix);
    prefixes.sort((one, other) => other - one);
  }

  /**
   * What the blocks make of all addresses: plain data, for a table with the same blocks and owners in the same order.
   */
  prepared(): CidrIntervals {
    if (this.intervals !== undefined) return this.intervals;
    const blocks: OwnedBlock[] = [];
    for (const [text, owner] of this.ownerOf) {
      const block = parseBlock(text);
      if (typeof block === 'string') throw new Error(`"${text}" was a block: ${block}`);
      blocks.push({ owner, ...block });
    }
    this.intervals = { ipv4: intervalsOf(blocks, 4), ipv6: intervalsOf(blocks, 6) };
    return this.intervals;
  }

  /**
   * Takes what another table has {@link prepared}, which takes many milliseconds for many blocks. Otherwise the first
   * lookup does it.
   */
  setPrepared(intervals: CidrIntervals): void {
    this.intervals = intervals;
  }

  /**
   * Undefined for what is neither an address nor a network, and for those that no block holds as a whole.
   * {@link EXCEEDED} when `work` does not last for a network.
   */
  find(value: string, work: MatchWork = unboundedWork()): Owner | undefined | typeof EXCEEDED {
    if (value.length > MAX_BLOCK_LENGTH) return undefined;
    const family = readAddress(value, words);
    if (family === 0) return this.findNetwork(value, work);
    const { ipv4, ipv6 } = this.intervals ?? this.prepared();
    const found = family === 4 ? findIpv4(ipv4, words[0] as number) : findIpv6(ipv6);
    return found === NONE ? undefined : this.owners[found];
  }

  /** Intervals know addresses only: of a network, each block that could hold it is looked for, at most 129. */
  private findNetwork(value: string, work: MatchWork): Owner | undefined | typeof EXCEEDED {
    // Most that is no address is no network, either.
    if (value.indexOf('/') <= 0) return undefined;
    if (!work.spend(NETWORK_STEPS)) return EXCEEDED;
    const network = networkOf(value);
    if (network === undefined) return undefined;
    const { family } = network;
    const prefixes = this.prefixes[family];
    if (!work.spend(PREFIX_STEPS * prefixes.length)) return EXCEEDED;
    const masked = wordsOf(family, network.first);
    for (let i = 0; i < prefixes.length; i++) {
      const prefix = prefixes[i] as number;
      if (prefix > network.prefix) continue;
      clearBehind(masked, prefix);
      const owner = this.ownerOf.get(`${addressText(family, masked)}/${prefix}`);
      if (owner !== undefined) return this.owners[owner];
    }
    return undefined;
  }
}

/** Clears the bits behind a prefix. Those that belong to no address of the family are 0 anyway. */
function clearBehind(address: Uint32Array, prefix: number): void {
  for (let i = 0; i < address.length; i++) {
    const bits = prefix - i * WORD_BITS;
    if (bits >= WORD_BITS) continue;
    address[i] = bits <= 0 ? 0 : (address[i] as number) & -(2 ** (WORD_BITS - bits));
  }
}

/** Of canonical blocks the longest that holds an address. */
export function longestBlock(blocks: readonly string[], address: string): string | undefined {
  const table = new CidrTable<string>();
  for (const block of blocks) table.add([block], block);
  return assertFound(table.find(address));
}

interface OwnedBlock extends CidrBlock {
  readonly owner: number;
}

/** See {@link CidrTable.prepared}. */
export interface CidrIntervals {
  readonly ipv4: Intervals;
  readonly ipv6: Intervals;
}

/** In order; an interval ends where the next begins. */
interface Intervals {
  /** First addresses: a word each for IPv4, four for IPv6. */
  readonly starts: Uint32Array;
  readonly owners: Int32Array;
}

/** The last interval that begins at or before the address. */
function findIpv4({ starts, owners }: Intervals, address: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] as number) <= address) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? NONE : (owners[low - 1] as number);
}

function findIpv6({ starts, owners }: Intervals): number {
  let low = 0;
  let high = owners.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (beginsAfter(starts, middle * 4)) high = middle;
    else low = middle + 1;
  }
  return low === 0 ? NONE : (owners[low - 1] as number);
}

function beginsAfter(starts: Uint32Array, at: number): boolean {
  for (let i = 0; i < 4; i++) {
    const start = starts[at + i] as number;
    const word = words[i] as number;
    if (start !== word) return start > word;
  }
  return false;
}

/**
 * Blocks either hold one another or have nothing in common: those that are open at an address lie in one another, the
 * longest last.
 */
function intervalsOf(all: readonly OwnedBlock[], family: 4 | 6): Intervals {
  const bits = BigInt(family === 4 ? 32 : 128);
  const blocks = all
    .filter((block) => block.family === family)
    .sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : a.prefix - b.prefix));
  const starts: bigint[] = [];
  const owners: number[] = [];
  const begin = (start: bigint, owner: number): void => {
    if (starts.at(-1) === start) {
      owners[owners.length - 1] = owner;
      return;
    }
    starts.push(start);
    owners.push(owner);
  };
  const open: { readonly end: bigint; readonly owner: number }[] = [];
  const closeBefore = (start: bigint): void => {
    for (let last = open.at(-1); last !== undefined && last.end <= start; last = open.at(-1)) {
      open.pop();
      begin(last.end, open.at(-1)?.owner ?? NONE);
    }
  };
  for (const { first, prefix, owner } of blocks) {
    closeBefore(first);
    open.push({ end: first + (1n << (bits - BigInt(prefix))), owner });
    begin(first, owner);
  }
  // What would begin behind the last address is left out.
  closeBefore((1n << bits) - 1n);
  const words = starts.flatMap((start) => {
    const parts = wordsOf(family, start);
    return family === 4 ? [parts[0] as number] : [...parts];
  });
  return { starts: Uint32Array.from(words), owners: Int32Array.from(owners) };
}
