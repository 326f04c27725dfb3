import { runToCompletion } from '../../runtime/turns.js';
import { MatchWork } from '../match-work.js';
import {
  addressText,
  type CidrBlock,
  MAX_BLOCK_LENGTH,
  networkOf,
  parseBlock,
  readAddress,
  wordsOf,
} from './cidr.js';

/** No block contains the addresses of the interval. */
const NONE = -1;

/** Units (MatchWork) for parsing a network, and for the lookup of each block that could contain it. */
const NETWORK_UNITS = 800;
const PREFIX_UNITS = 160;
const WORD_BITS = 32;
/** Number of blocks that are parsed at once. */
const BLOCKS_AT_ONCE = 1000;

/** The address of the current lookup. */
const words = new Uint32Array(4);

/**
 * Finds the owner of the longest block that contains an address. The blocks divide the addresses into intervals with
 * one owner each, so a lookup is a binary search.
 */
export class CidrTable<Owner> {
  private readonly owners: Owner[] = [];
  /** Owners by canonical block. */
  private readonly ownerOf = new Map<string, number>();
  private intervals: CidrIntervals | undefined;
  /** Prefix lengths of the blocks, longest first. */
  private readonly prefixes: Readonly<Record<4 | 6, number[]>> = { 4: [], 6: [] };

  /** Adds `blocks`, canonical strings without an owner so far. */
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
   * Computes the intervals, which takes many milliseconds if there are many blocks, and yields after every few blocks.
   * Otherwise, the first lookup computes them.
   */
  *compile(): Generator<void, CidrIntervals> {
    if (this.intervals !== undefined) return this.intervals;
    const blocks: OwnedBlock[] = [];
    for (const [text, owner] of this.ownerOf) {
      if (blocks.length % BLOCKS_AT_ONCE === BLOCKS_AT_ONCE - 1) yield;
      const block = parseBlock(text);
      if (typeof block === 'string') throw new Error(`"${text}" is no longer a valid CIDR block: ${block}`);
      blocks.push({ owner, ...block });
    }
    this.intervals = { ipv4: intervalsOf(blocks, 4), ipv6: intervalsOf(blocks, 6) };
    return this.intervals;
  }

  /**
   * Returns the owner of an address or network; undefined for other strings, and if no block contains all of it. An
   * address costs no work, because it is short and all blocks are searched together.
   */
  find(value: string, work: MatchWork): Owner | undefined {
    if (value.length > MAX_BLOCK_LENGTH) return undefined;
    const family = readAddress(value, words);
    if (family === 0) return this.findNetwork(value, work);
    const { ipv4, ipv6 } = this.intervals ?? runToCompletion(this.compile());
    const found = family === 4 ? findIpv4(ipv4, words[0] as number) : findIpv6(ipv6);
    return found === NONE ? undefined : this.owners[found];
  }

  /**
   * Finds a network by looking up each block that could contain it, at most 129, because intervals only contain
   * addresses.
   */
  private findNetwork(value: string, work: MatchWork): Owner | undefined {
    // Most strings that are not addresses are not networks, either.
    if (value.indexOf('/') <= 0) return undefined;
    if (!work.charge(NETWORK_UNITS)) return undefined;
    const network = networkOf(value);
    if (network === undefined) return undefined;
    const { family } = network;
    const prefixes = this.prefixes[family];
    if (!work.charge(PREFIX_UNITS * prefixes.length)) return undefined;
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

/** Clears the bits after a prefix. Bits that the address family does not have are 0 already. */
function clearBehind(address: Uint32Array, prefix: number): void {
  for (let i = 0; i < address.length; i++) {
    const bits = prefix - i * WORD_BITS;
    if (bits >= WORD_BITS) continue;
    address[i] = bits <= 0 ? 0 : (address[i] as number) & -(2 ** (WORD_BITS - bits));
  }
}

/** Returns the longest of some canonical blocks that contains an address. */
export function longestBlock(blocks: readonly string[], address: string): string | undefined {
  const table = new CidrTable<string>();
  for (const block of blocks) table.add([block], block);
  return table.find(address, new MatchWork());
}

interface OwnedBlock extends CidrBlock {
  readonly owner: number;
}

/** The intervals of all blocks. */
interface CidrIntervals {
  readonly ipv4: Intervals;
  readonly ipv6: Intervals;
}

/** In ascending order; an interval ends where the next one begins. */
interface Intervals {
  /** First addresses: one word each for IPv4, four for IPv6. */
  readonly starts: Uint32Array;
  readonly owners: Int32Array;
}

/** Returns the last interval that starts at or before the address. */
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
 * Builds the intervals. Blocks are either nested or disjoint, so the blocks that are open at an address are nested, the
 * longest prefix last.
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
  // An interval that would start after the last address is omitted.
  closeBefore((1n << bits) - 1n);
  const words = starts.flatMap((start) => {
    const parts = wordsOf(family, start);
    return family === 4 ? [parts[0] as number] : [...parts];
  });
  return { starts: Uint32Array.from(words), owners: Int32Array.from(owners) };
}
