import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { percentEncode, statusFields } from '../../../../src/grpc/h2-transport/responses.js';
import { runs } from '../../../support/assert/runs.js';
import { anyText } from '../../../support/codec/any-text.js';

describe('percentEncode', () => {
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
