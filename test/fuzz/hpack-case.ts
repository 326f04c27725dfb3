import { HpackDecoder } from '../../src/h2/hpack/decoder.js';
import type { HeaderList } from '../../src/h2/hpack/header-field.js';
import { type Pair, pairsOf } from '../support/h2/hpack.js';
import { HpackWriter } from './hpack-writer.js';
import { mutate } from './mutate.js';
import { Random } from './random.js';

/** The input of a case, to repeat a failure. */
export interface FuzzRecord {
  /** Header blocks, or chunks of a connection. */
  readonly inputs: Buffer[];
}

/**
 * Passes a few header blocks to one decoder: valid ones with known fields, then mutated or random ones. Throws if a
 * valid block is decoded incorrectly, or if a list exceeds the limits. Returns the number of blocks.
 */
export function runHpackCase(seed: number, record: FuzzRecord): number {
  const random = new Random(seed);
  const maxTableBytes = random.pick([4096, 4096, 0, 100, 8192]);
  const maxListBytes = random.pick([65_536, 16_384, 200, 0]);
  const decoder = new HpackDecoder({ maxTableBytes, maxListBytes });
  const writer = new HpackWriter(random, maxTableBytes);
  const good = random.below(6);
  const bad = 1 + random.below(4);
  let last: readonly Pair[] = [];
  let blocks = 0;
  for (let i = 0; i < good + bad; i++) {
    const fields = i > 0 && random.oneIn(3) ? last : someFields(random, writer);
    last = fields;
    let block = writer.write(fields);
    const isGood = i < good;
    if (!isGood) block = random.oneIn(4) ? random.bytes(random.length(100)) : mutate(block, random);
    record.inputs.push(block);
    blocks += 1;
    const start = random.below(3);
    const chunk = Buffer.concat([random.bytes(start), block, random.bytes(random.below(3))]);
    const list = decoder.decode(chunk, start, start + block.length);
    if (list === undefined) {
      if (isGood) throw new Error(`a good block is refused: ${decoder.failure}`);
      if (decoder.failure === '') throw new Error('a block is refused without a reason');
      return blocks;
    }
    checkList(list, maxListBytes);
    if (isGood) checkFields(list, fields);
  }
  return blocks;
}

function someFields(random: Random, writer: HpackWriter): Pair[] {
  const fields: Pair[] = [];
  for (let i = random.below(8); i > 0; i--) {
    if (random.oneIn(3))
      fields.push([`x-${random.text(random.length(30))}`, random.text(random.length(300))]);
    else if (random.oneIn(2)) fields.push([writer.anyEntry()[0], random.text(random.length(60))]);
    else fields.push(writer.anyEntry());
  }
  return fields;
}

function checkList(list: HeaderList, maxListBytes: number): void {
  let size = 0;
  for (const text of list.fields) size += text.length + 16;
  if (size > maxListBytes) throw new Error(`a list of ${size} bytes over the limit of ${maxListBytes}`);
  if (list.tooLarge !== list.size > maxListBytes) throw new Error('tooLarge is not what size says');
  if (!list.tooLarge && list.size !== size) throw new Error(`size ${list.size} is not that of the fields`);
}

function checkFields(list: HeaderList, expected: readonly Pair[]): void {
  const size = expected.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
  if (list.size !== size) throw new Error(`size ${list.size} instead of ${size}`);
  pairsOf(list.fields).forEach(([name, value], i) => {
    const [expectedName, expectedValue] = expected[i] as Pair;
    if (name !== expectedName || value !== expectedValue)
      throw new Error(`field ${i} is not what was written`);
  });
}
