import { expect, test } from '@jest/globals';
import { RequestDecoder } from '../../../src/codec/decode-request.js';

/** Returns a request for the domain `name`. */
const message = (name: string): Buffer => Buffer.concat([Buffer.of(0x0a, name.length), Buffer.from(name)]);

test('a message that recurs is decoded once, while most messages do', () => {
  const decoder = new RequestDecoder();
  const decode = (name: string): object => decoder.decode(message(name));
  const busy = decode('busy');
  expect(decode('busy')).toBe(busy);
  for (let i = 0; i < 600; i++) expect(decode(`once-${i}`)).toMatchObject({ domain: `once-${i}` });
  expect(decode('busy')).toEqual(busy);
  expect(decode('busy')).not.toBe(decode('busy'));
  for (let i = 0; i < 8192; i++) decode('busy');
  expect(decode('busy')).toBe(decode('busy'));
});

const LONG = Buffer.concat([Buffer.of(0x0a, 0xfe, 0x01), Buffer.alloc(254, 'd')]);

test('a message that is longer than cached ones is decoded each time', () => {
  const decoder = new RequestDecoder();
  expect(decoder.decode(LONG)).not.toBe(decoder.decode(LONG));
  expect(decoder.decode(LONG)).toEqual(decoder.decode(LONG));
});

test('messages that are too long for the cache do not turn it off or on', () => {
  const decoder = new RequestDecoder();
  const busy = decoder.decode(message('busy'));
  for (let i = 0; i < 600; i++) decoder.decode(LONG);
  expect(decoder.decode(message('busy'))).toBe(busy);
  for (let i = 0; i < 600; i++) decoder.decode(message(`once-${i}`));
  for (let i = 0; i < 10_000; i++) decoder.decode(LONG);
  expect(decoder.decode(message('busy'))).not.toBe(decoder.decode(message('busy')));
});
