import { describe, expect, test } from '@jest/globals';
import { readPrintedLogin } from '../../../../../src/storage/redis/connection/login/printed-login.js';

const NOW_MS = Date.parse('2030-01-31T12:00:00Z');

test.each<[string, object]>([
  ['s3cret', { password: 's3cret' }],
  ['s3cret\n', { password: 's3cret' }],
  ['s3cret\r\n', { password: 's3cret' }],
  ['weir:s3:cret\n', { username: 'weir', password: 's3:cret' }],
  [' s3cret ', { password: ' s3cret ' }],
  ['{"password":"a:b\\n"}', { password: 'a:b\n' }],
  ['{\n  "username": "weir",\n  "password": "p"\n}\n', { username: 'weir', password: 'p' }],
  ['{"password":"p","username":null,"expiresAt":null,"more":[1]}', { password: 'p' }],
])('%j contains a login', (text, login) => {
  expect(readPrintedLogin(text, NOW_MS)).toEqual({ login, expiresAtMs: undefined });
});

test.each<[unknown, number]>([
  [NOW_MS / 1000 + 900, 900],
  [NOW_MS / 1000 + 0.5, 0.5],
  ['2030-01-31T12:15:00Z', 900],
  ['2030-01-31T12:15:00.500000Z', 900.5],
  ['2030-01-31T13:15:00+01:00', 900],
  ['2030-01-31T13:15:00+0100', 900],
  ['2030-01-31T13:15+01', 900],
])('expiresAt %j is in %d s', (expiresAt, seconds) => {
  const { expiresAtMs = 0 } = readPrintedLogin(JSON.stringify({ password: 'p', expiresAt }), NOW_MS);
  expect(expiresAtMs - NOW_MS).toBe(seconds * 1000);
});

describe('an invalid output causes an error that does not quote it', () => {
  test.each<[string, RegExp]>([
    ['', /^printed nothing; it must print a password, user:password, or JSON/],
    ['\n', /^printed nothing/],
    ['s3cret\nmore', /^printed several lines/],
    ['s3cret\n\n', /^printed several lines/],
    ['s3cret:', /^printed a user without a password/],
    ['{s3cret', /^printed invalid JSON/],
    ['{"token":"s3cret"}', /^printed JSON without a "password" string/],
    ['{"password":""}', /^printed JSON without a "password"/],
    ['{"password":"s3cret","username":1}', /^printed JSON with a "username" that is not a string/],
    ['{"password":"s3cret","expiresAt":"soon"}', /^printed an "expiresAt" that is not a valid time/],
    ['{"password":"s3cret","expiresAt":"2030-02-01T12:00:00"}', /ISO 8601 with a zone/],
    ['{"password":"s3cret","expiresAt":1896091200000}', /seconds since the epoch/],
    ['{"password":"s3cret","expiresAt":true}', /not a valid time/],
    ['{"password":"s3cret","expiresAt":"2030-13-31T12:15:00Z"}', /not a valid time/],
    [
      '{"password":"s3cret","expiresAt":"2030-01-31T11:59:30Z"}',
      /was 30 s ago; change the command to print a new/,
    ],
    [`{"password":"s3cret","expiresAt":${NOW_MS / 1000}}`, /was 0 s ago/],
  ])('%j', (text, sentence) => {
    const read = () => readPrintedLogin(text, NOW_MS);
    expect(read).toThrow(sentence);
    expect(read).not.toThrow(/s3cret/);
  });
});
