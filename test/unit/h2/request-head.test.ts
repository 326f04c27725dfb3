import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { HeaderList } from '../../../src/h2/hpack/header-field.js';
import {
  CheckedHead,
  checkTrailers,
  requestHead as headLike,
  MalformedHead,
} from '../../../src/h2/request-head.js';
import { runs } from '../../support/assert/runs.js';
import { END_STREAM, headers, protocolTest } from '../../support/h2/h2-peer.js';

function requestHead(fields: HeaderList) {
  return headLike(fields, undefined);
}

function list(...fields: string[]): HeaderList {
  return { fields, size: 0, tooLarge: false, derived: undefined };
}

const GET = [':method', 'GET', ':scheme', 'http', ':path', '/'];

describe('the head of a request', () => {
  test('separates pseudo-header fields from other fields, and keeps their order', () => {
    const head = requestHead(
      list(
        ':path',
        '/a?b',
        ':authority',
        'weir:1',
        ':method',
        'POST',
        ':scheme',
        'https',
        'te',
        'trailers',
        'x',
        '1',
        'x',
        '',
      ),
    );
    expect(head).toMatchObject({
      method: 'POST',
      scheme: 'https',
      path: '/a?b',
      authority: 'weir:1',
      fields: ['te', 'trailers', 'x', '1', 'x', ''],
      contentLength: -1,
    });
  });

  test('is computed once for a list', () => {
    const good = list(...GET);
    const bad = list('x', '1');
    expect(requestHead(good)).toBe(requestHead(good));
    expect(requestHead(bad)).toBe(requestHead(bad));
    expect(requestHead(bad)).toBeInstanceOf(MalformedHead);
  });

  test('contains the content-length', () => {
    expect(requestHead(list(...GET, 'content-length', '12', 'content-length', '12'))).toMatchObject({
      contentLength: 12,
    });
  });

  test.each<[string, string[]]>([
    ['CONNECT without :scheme and :path', [':method', 'CONNECT', ':authority', 'a:1']],
    ['OPTIONS *', [':method', 'OPTIONS', ':scheme', 'http', ':path', '*']],
    ['another scheme, whose paths are its own affair', [':method', 'GET', ':scheme', 'coap', ':path', 'x']],
    ['a method of its own', [':method', 'get-it!', ':scheme', 'http', ':path', '/']],
    ['all characters of a token', [...GET, "!#$%&'*+-.^_`|~09az", '']],
    ['spaces, tabs and octets above 127 inside a value', [...GET, 'x', 'a \t\x80\xffb']],
    ['no :authority', GET],
  ])('is valid: %s', (_name, fields) => {
    expect(requestHead(list(...fields))).toBeInstanceOf(CheckedHead);
  });

  const without = (name: string) => GET.filter((_text, at) => GET[at - (at % 2)] !== name);
  test.each<[string, string[]]>([
    ['no fields', []],
    ['an empty :method', [...without(':method'), ':method', '']],
    ['an empty :scheme', [...without(':scheme'), ':scheme', '']],
    ['a :method that is no token', [...without(':method'), ':method', 'G T']],
    ['a :path without its slash', [...without(':path'), ':path', 'a']],
    ['* for another method than OPTIONS', [...without(':path'), ':path', '*']],
    ['a space at the end of :path', [...without(':path'), ':path', '/ ']],
    ['a line feed in :authority', [...GET, ':authority', 'a\nb']],
    ['two :authority', [...GET, ':authority', 'a', ':authority', 'a']],
    ['a space in a name', [...GET, 'x a', '1']],
    ['a colon in a name', [...GET, 'x:a', '1']],
    ['an octet above 127 in a name', [...GET, 'x\xe4', '1']],
    ['an empty name', [...GET, '', '1']],
    ['NUL in a value', [...GET, 'x', 'a\0b']],
    ['CR in a value', [...GET, 'x', 'a\rb']],
    ['LF in a value', [...GET, 'x', 'a\nb']],
    ['a space before a value', [...GET, 'x', ' a']],
    ['a tab after a value', [...GET, 'x', 'a\t']],
    ['proxy-connection', [...GET, 'proxy-connection', 'close']],
    ['keep-alive', [...GET, 'keep-alive', '5']],
    ['transfer-encoding', [...GET, 'transfer-encoding', 'chunked']],
    ['upgrade', [...GET, 'upgrade', 'h2c']],
    ['te: trailers, gzip', [...GET, 'te', 'trailers, gzip']],
    ['an empty content-length', [...GET, 'content-length', '']],
    ['a negative content-length', [...GET, 'content-length', '-1']],
    ['a content-length beyond all numbers', [...GET, 'content-length', '9'.repeat(16)]],
    ['two content-lengths', [...GET, 'content-length', '1', 'content-length', '2']],
    ['CONNECT with :scheme', [':method', 'CONNECT', ':authority', 'a:1', ':scheme', 'http']],
    ['CONNECT with :path', [':method', 'CONNECT', ':authority', 'a:1', ':path', '/']],
    ['CONNECT without :authority', [':method', 'CONNECT']],
  ])('is malformed: %s', (_name, fields) => {
    const head = requestHead(list(...fields));
    expect(head).toBeInstanceOf(MalformedHead);
    expect((head as MalformedHead).reason).not.toBe('');
  });

  test('is checked in the same way after an earlier similar head', () => {
    const fields = [...GET, ':authority', 'a', 'x', '1', 'y', '2'];
    const like = requestHead(list(...fields)) as CheckedHead;
    const parts = [...fields, 'CONNECT', '', ':protocol', 'te', 'content-length', '-1', 'X', '\0', '*'];
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(fields.length - 1), fc.constantFrom(...parts)), { maxLength: 3 }),
        fc.nat(fields.length / 2),
        (changes, pairs) => {
          const changed = [...fields];
          for (const [at, text] of changes) changed[at] = text;
          const sent = changed.slice(0, 2 * pairs);
          expect(headLike(list(...sent), like)).toEqual(requestHead(list(...sent)));
        },
      ),
      runs(1000),
    );
  });

  test('of CONNECT differs from a head with empty pseudo-header fields', () => {
    const connect = requestHead(list(':method', 'CONNECT', ':authority', 'a')) as CheckedHead;
    const empty = list(':method', 'CONNECT', ':authority', 'a', ':scheme', '', ':path', '');
    expect(headLike(empty, connect)).toBeInstanceOf(MalformedHead);
  });

  protocolTest('resets its stream when malformed, and the handler does not see it', (peer) => {
    peer.greet().send(headers(1, END_STREAM, ':method: GET'), headers(3, 0, ...['X: y']));
    expect(peer.received()).toEqual(['RST_STREAM 1 PROTOCOL_ERROR', 'RST_STREAM 3 PROTOCOL_ERROR']);
    expect(peer.handler.take()).toEqual([]);
  });
});

describe('trailers', () => {
  test('follow the rules for fields', () => {
    expect(checkTrailers(list('grpc-status', '0'))).toBeUndefined();
    expect(checkTrailers(list())).toBeUndefined();
    expect(checkTrailers(list(':path', '/'))).toMatch('pseudo-header');
    expect(checkTrailers(list('X', ''))).toBeDefined();
    expect(checkTrailers(list('x', '\n'))).toBeDefined();
  });
});
