import fc from 'fast-check';

const SURROGATES = 0x800;
const codePoint = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES })
  .map((n) => (n < 0xd800 ? n : n + SURROGATES));

/** What `fc.string({ unit: 'binary' })` gives, which takes half a second to make: any code points but surrogates. */
export function anyText(lengths: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.array(codePoint, lengths).map((points) => String.fromCodePoint(...points));
}
