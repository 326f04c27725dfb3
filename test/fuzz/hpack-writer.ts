import { createRequire } from 'node:module';
import { STATIC_NAMES, STATIC_TABLE_LENGTH, STATIC_VALUES } from '../../src/h2/hpack/static-table.js';
import type { Pair } from '../support/h2/hpack.js';
import type { Random } from './random.js';

/** Length in bits and code of each symbol, from the package hpack.js. */
const HUFFMAN = (
  createRequire(__filename)('hpack.js') as { huffman: { encode: readonly (readonly [number, number])[] } }
).huffman.encode;

/**
 * Writes header blocks in random forms of RFC 7541. It has its own dynamic table, so that the fields of a block are
 * known without a decoder.
 */
export class HpackWriter {
  private readonly random: Random;
  private readonly largestTable: number;
  /** The dynamic table, newest entry first. */
  private table: Pair[] = [];
  private tableBytes = 4096;
  private bytes: number[] = [];

  /** `largestTable`: the decoder's SETTINGS_HEADER_TABLE_SIZE. */
  constructor(random: Random, largestTable: number) {
    this.random = random;
    this.largestTable = largestTable;
  }

  /** Encodes a block with `fields`. */
  write(fields: readonly Pair[]): Buffer {
    const { random } = this;
    this.bytes = [];
    while (random.oneIn(20)) {
      this.tableBytes = random.oneIn(2) ? this.largestTable : random.below(this.largestTable + 1);
      this.integer(0x20, 0x1f, this.tableBytes);
      this.evict();
    }
    for (const field of fields) this.field(field);
    return Buffer.from(this.bytes);
  }

  /** Returns a random entry of the tables, so that blocks use it. */
  anyEntry(): Pair {
    const index = this.random.below(STATIC_TABLE_LENGTH + this.table.length);
    return this.table[index - STATIC_TABLE_LENGTH] ?? entryAt(index + 1);
  }

  private field(field: Pair): void {
    const { random } = this;
    const [name, value] = field;
    if (!random.oneIn(8)) {
      const index = this.find((entry) => entry[0] === name && entry[1] === value);
      if (index > 0) {
        this.integer(0x80, 0x7f, index);
        return;
      }
    }
    const nameIndex = random.oneIn(8) ? 0 : this.find((entry) => entry[0] === name);
    const indexing = random.oneIn(2);
    if (indexing) this.integer(0x40, 0x3f, nameIndex);
    else this.integer(random.oneIn(2) ? 0x10 : 0, 0x0f, nameIndex);
    if (nameIndex === 0) this.string(name);
    this.string(value);
    if (indexing) {
      this.table.unshift(field);
      this.evict();
    }
  }

  private find(matches: (entry: Pair) => boolean): number {
    const inTable = this.table.findIndex(matches);
    if (inTable >= 0) return STATIC_TABLE_LENGTH + 1 + inTable;
    for (let index = 1; index <= STATIC_TABLE_LENGTH; index++) if (matches(entryAt(index))) return index;
    return 0;
  }

  private evict(): void {
    let size = 0;
    let kept = 0;
    for (const [name, value] of this.table) {
      size += name.length + value.length + 32;
      if (size > this.tableBytes) break;
      kept += 1;
    }
    this.table.length = kept;
  }

  private string(text: string): void {
    if (this.random.oneIn(2)) {
      this.integer(0, 0x7f, text.length);
      for (let i = 0; i < text.length; i++) this.bytes.push(text.charCodeAt(i));
      return;
    }
    const coded: number[] = [];
    let bits = 0;
    let pending = 0;
    for (let i = 0; i < text.length; i++) {
      const [length, code] = HUFFMAN[text.charCodeAt(i)] as readonly [number, number];
      for (let bit = length - 1; bit >= 0; bit--) {
        pending = (pending << 1) | ((code >>> bit) & 1);
        bits += 1;
        if (bits % 8 === 0) {
          coded.push(pending);
          pending = 0;
        }
      }
    }
    const padding = (8 - (bits % 8)) % 8;
    if (padding > 0) coded.push((pending << padding) | ((1 << padding) - 1));
    this.integer(0x80, 0x7f, coded.length);
    this.bytes.push(...coded);
  }

  private integer(form: number, mask: number, value: number): void {
    if (value < mask) {
      this.bytes.push(form | value);
      return;
    }
    this.bytes.push(form | mask);
    let rest = value - mask;
    for (; rest >= 0x80; rest >>>= 7) this.bytes.push((rest & 0x7f) | 0x80);
    this.bytes.push(rest);
  }
}

function entryAt(index: number): Pair {
  return [STATIC_NAMES[index] as string, STATIC_VALUES[index] as string];
}
