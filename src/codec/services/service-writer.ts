import { WireWriter } from '../wire-writer.js';

/** Bytes of the tag and the length in front of a field, at most. */
export const FIELD_HEAD_BYTES = 11;

const writer = new WireWriter();

/**
 * A message of a service that is asked rarely, of at most `maxBytes`. `fill` writes its fields, from the last one to
 * the first, as WireWriter does.
 */
export function writeMessage(maxBytes: number, fill: (writer: WireWriter) => void): Buffer {
  writer.begin(maxBytes);
  fill(writer);
  // A copy: who holds a few bytes for long must not hold the memory of many messages.
  return Buffer.from(writer.finish());
}
