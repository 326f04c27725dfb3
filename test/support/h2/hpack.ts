import { createRequire } from 'node:module';
import { HpackDecoder } from '../../../src/h2/hpack/decoder.js';
import type { HpackEncoder } from '../../../src/h2/hpack/encoder.js';
import type { HeaderField } from '../../../src/h2/hpack/header-field.js';

/** Name and value. */
export type Pair = readonly [name: string, value: string];

export function newDecoder({ maxTableBytes = 4096, maxListBytes = 65_536 } = {}): HpackDecoder {
  return new HpackDecoder({ maxTableBytes, maxListBytes });
}

export function bytesOf(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(' ', ''), 'hex');
}

export function pairsOf(fields: readonly string[]): Pair[] {
  const pairs: Pair[] = [];
  for (let i = 0; i < fields.length; i += 2) pairs.push([fields[i] as string, fields[i + 1] as string]);
  return pairs;
}

/** Decodes a valid block, which is surrounded by other bytes, as it is in the data of a socket. */
export function decodePairs(decoder: HpackDecoder, block: Uint8Array): Pair[] {
  const chunk = Buffer.alloc(block.length + 20, 0xff);
  chunk.set(block, 10);
  const list = decoder.decode(chunk, 10, 10 + block.length);
  if (list === undefined) throw new Error(`${decoder.failure}: ${Buffer.from(block).toString('hex')}`);
  return pairsOf(list.fields);
}

/** Encodes into a buffer of exactly {@link HpackEncoder.maxLength} bytes. */
export function encode(encoder: HpackEncoder, fields: readonly HeaderField[]): Buffer {
  const out = Buffer.alloc(encoder.maxLength(fields) + 3, 0xee);
  const end = encoder.encode(fields, out, 3);
  if (end > out.length) throw new Error(`${end - 3} bytes, more than maxLength said: ${out.length - 3}`);
  return out.subarray(3, end);
}

/** A field in the form that the compressor of hpack.js accepts. */
export interface HpackJsField {
  readonly name: string;
  readonly value: string;
  readonly huffman?: boolean;
  readonly incremental?: boolean;
  readonly neverIndex?: boolean;
}

interface Transform {
  write(input: unknown): void;
  read(): unknown;
  reset(): void;
  execute(): void;
  on(event: 'error', listener: (error: Error) => void): void;
}
interface HpackJs {
  readonly compressor: { create(options: { table: { maxSize: number } }): Transform };
  readonly decompressor: { create(options: { table: { maxSize: number } }): Transform };
}
// The package has no types.
const hpackJs = createRequire(__filename)('hpack.js') as HpackJs;

/** The encoder of npm `hpack.js`. */
export class HpackJsEncoder {
  private readonly compressor: Transform;

  constructor(tableBytes = 4096) {
    this.compressor = hpackJs.compressor.create({ table: { maxSize: tableBytes } });
  }

  /** Empties the table with two size updates, which precede the next block. */
  reset(): void {
    this.compressor.reset();
  }

  encode(fields: readonly HpackJsField[]): Buffer {
    this.compressor.write(fields);
    return (this.compressor.read() as Buffer | null) ?? Buffer.alloc(0);
  }
}

/** The decoder of npm `hpack.js`. Throws for an invalid block. */
export class HpackJsDecoder {
  private readonly decompressor: Transform;

  constructor(tableBytes = 4096) {
    this.decompressor = hpackJs.decompressor.create({ table: { maxSize: tableBytes } });
    this.decompressor.on('error', (error) => {
      throw error;
    });
  }

  decode(block: Uint8Array): Pair[] {
    this.decompressor.write(Buffer.from(block));
    this.decompressor.execute();
    const pairs: Pair[] = [];
    for (;;) {
      const field = this.decompressor.read() as { name: string; value: string } | null;
      if (field === null) return pairs;
      pairs.push([field.name, field.value]);
    }
  }
}
