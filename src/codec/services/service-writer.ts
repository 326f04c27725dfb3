import { WireWriter } from '../wire-writer.js';

/** Maximum length of the tag and length prefix of a field, in bytes. */
export const FIELD_HEAD_BYTES = 11;

const writer = new WireWriter();

/**
 * Writes a message of health or reflection with at most `maxBytes`. `fill` writes the fields in reverse order, as
 * WireWriter requires.
 */
export function writeMessage(maxBytes: number, fill: (writer: WireWriter) => void): Buffer {
  writer.begin(maxBytes);
  fill(writer);
  // Copied, so that a small message that is kept does not keep the whole slab in memory.
  return Buffer.from(writer.finish());
}
