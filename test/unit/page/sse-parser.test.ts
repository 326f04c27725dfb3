import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SseParser, type StreamEvent } from '../../../src/page/text/sse-parser.js';
import { runs } from '../../support/assert/runs.js';

const parse = (...pieces: readonly string[]): StreamEvent[] => {
  const parser = new SseParser();
  return pieces.flatMap((piece) => [...parser.feed(piece)]);
};

describe('SseParser', () => {
  test.each([
    ['an event with a name', 'event: point\ndata: {"a":1}\n\n', [{ type: 'point', data: '{"a":1}' }]],
    ['an event without one', 'data: x\n\n', [{ type: 'message', data: 'x' }]],
    ['data of several lines', 'data: a\ndata:\ndata: b\n\n', [{ type: 'message', data: 'a\n\nb' }]],
    [
      'one space only is left out',
      'data:  a\n\ndata:b\n\n',
      [
        { type: 'message', data: ' a' },
        { type: 'message', data: 'b' },
      ],
    ],
    [
      'comments and other fields',
      ': still there\n\nid: 7\nretry: 5\nevent: a\n\ndata: b\n\n',
      [{ type: 'message', data: 'b' }],
    ],
    [
      'line ends of all kinds',
      'event: a\rdata: b\r\rdata: c\r\n\r\n',
      [
        { type: 'a', data: 'b' },
        { type: 'message', data: 'c' },
      ],
    ],
    ['an event that does not end', 'data: a\n', []],
  ] as const)('%s', (_, text, events) => {
    expect(parse(text)).toEqual(events);
    expect(parse(...text)).toEqual(events);
  });

  test('the result does not depend on chunk sizes', () => {
    const event = fc.record({
      type: fc.stringMatching(/^[a-z]{1,5}$/),
      data: fc.array(fc.stringMatching(/^[^\r\n]{0,20}$/), { minLength: 1, maxLength: 3 }),
      end: fc.constantFrom('\n', '\r', '\r\n'),
    });
    fc.assert(
      fc.property(fc.array(event), fc.array(fc.nat({ max: 500 })), (events, cuts) => {
        const text = events
          .map(({ type, data, end }) =>
            [`event: ${type}`, ...data.map((line) => `data: ${line}`), '', ''].join(end),
          )
          .join('');
        const places = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
        const pieces = places.slice(1).map((place, at) => text.slice(places[at], place));
        expect(parse(...pieces)).toEqual(events.map(({ type, data }) => ({ type, data: data.join('\n') })));
      }),
      runs(300),
    );
  });

  test('an endless event is given up', () => {
    const parser = new SseParser();
    const piece = 'x'.repeat(1024 * 1024);
    expect(() => {
      for (let each = 0; each < 17; each++) parser.feed(piece);
    }).toThrow('an event is too long');
  });
});
