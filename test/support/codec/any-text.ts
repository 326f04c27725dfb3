import fc from 'fast-check';

const SURROGATES = 0x800;
const codePoint = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES })
  .map((n) => (n < 0xd800 ? n : n + SURROGATES));

/**
 * Generates the same texts as `fc.string({ unit: 'binary' })`, which takes half a second to create: any code points
 * except surrogates.
 */
export function anyText(lengths: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.array(codePoint, lengths).map((points) => String.fromCodePoint(...points));
}
