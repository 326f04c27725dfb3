import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { percentEncode, statusFields } from '../../../../src/grpc/h2-transport/responses.js';
import { runs } from '../../../support/assert/runs.js';
import { anyText } from '../../../support/codec/any-text.js';

describe('percentEncode', () => {
  test.each([
    ['plain text, with "quotes" & ~', 'plain text, with "quotes" & ~'],
    ['100%', '100%25'],
    ['a\nb\x7f', 'a%0Ab%7F'],
    ['ä€😀', '%C3%A4%E2%82%AC%F0%9F%98%80'],
    ['half \ud800.', 'half %EF%BF%BD.'],
    ['', ''],
  ])('encodes %j as %s', (message, encoded) => {
    expect(percentEncode(message)).toBe(encoded);
  });

  test('encodes to printable ASCII that any decoder can decode', () => {
    fc.assert(
      fc.property(anyText(), (message) => {
        const encoded = percentEncode(message);
        expect(encoded).toMatch(/^[ -~]*$/);
        expect(decodeURIComponent(encoded)).toBe(message);
      }),
      runs(300),
    );
  });
});

describe('statusFields', () => {
  test('omits an empty message, and caches only repeated errors', () => {
    expect(statusFields(5, '')).toMatchObject([{ name: 'grpc-status', value: '5' }]);
    const first = statusFields(14, 'down');
    expect(statusFields(14, 'down')).toBe(first);
    expect(statusFields(13, 'down')).toMatchObject([{ value: '13' }, { value: 'down' }]);
    expect(statusFields(13, 'up')).toMatchObject([{ value: '13' }, { value: 'up' }]);
  });
});
