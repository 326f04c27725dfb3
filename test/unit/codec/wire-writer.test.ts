import { expect, test } from '@jest/globals';
import { WireWriter } from '../../../src/codec/wire-writer.js';

test('strings of any length are written as UTF-8 after their length', () => {
  const writer = new WireWriter();
  const bytes = Buffer.alloc(1000);
  for (const length of [1, 63, 64, 65, 127, 128, 300]) {
    for (const last of ['', 'é', '\u{1f600}', '\ud800']) {
      for (const text of [`${'a'.repeat(length)}${last}`, `${last}${'a'.repeat(length)}`]) {
        const utf8 = Buffer.from(text);
        writer.begin(bytes, 1000);
        writer.textField(0x0a, text);
        const size = utf8.length < 128 ? [utf8.length] : [(utf8.length & 0x7f) | 0x80, utf8.length >>> 7];
        expect(bytes.subarray(writer.position)).toEqual(Buffer.from([0x0a, ...size, ...utf8]));
      }
    }
  }
});
