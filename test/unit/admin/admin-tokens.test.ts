import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import {
  findAdminToken,
  MAX_TOKENS,
  MAX_TOKENS_BYTES,
  newAdminToken,
  readAdminTokens,
  tokenNameFault,
} from '../../../src/admin/admin-tokens.js';
import { cases } from '../../support/assert/cases.js';

const DIGEST = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);

describe('ADMIN_TOKENS_FILE', () => {
  test('has one token on each line, and may have comments and empty lines', () => {
    const first = `\ufeff# who may\r\n\r\n  on-call  write\tsha256:${DIGEST.toUpperCase()}  \r\n`;
    const text = `${first}ci@x.y read sha256:${OTHER}`;
    expect(readAdminTokens(text)).toEqual([
      { name: 'on-call', right: 'write', digest: Buffer.from(DIGEST, 'hex') },
      { name: 'ci@x.y', right: 'read', digest: Buffer.from(OTHER, 'hex') },
    ]);
    expect(readAdminTokens('# nobody')).toEqual([]);
  });

  test.each(cases`
    nothing => \x20\n => : the file is empty; write one line
    two words => \nname sha256:${DIGEST} => :2: the line does not have three words; each line must be
    four words => name read sha256:${DIGEST} more => :1: the line does not have three words
    another right => name admin sha256:${DIGEST} => :1: the second word is neither read nor write
    the token itself
      name read weir_secretsecretsecretsecretsecretsecret
      :1: the third word is not "sha256:"
    a short digest
      name read sha256:${DIGEST.slice(1)}
      :1: the third word is not "sha256:" followed by 64
    a bad name => a/b read sha256:${DIGEST} => :1: "a/b" is not a valid name; use 1 to 64
    a taken name => loopback read sha256:${DIGEST} => :1: "loopback" is reserved for callers without a token
    a name twice => a read sha256:${DIGEST}\n\na read sha256:${OTHER} => :3: the name a is already on line 1
    a token twice
      a read sha256:${DIGEST}\nb write sha256:${DIGEST}
      :2: the same token is already on line 1
    too long => #${'x'.repeat(MAX_TOKENS_BYTES)} => : the file has more than 65536 bytes; remove some lines
  `)('%s is an error', (_, text, message) => {
    const read = readAdminTokens(text);
    expect(`${read}`.slice(0, message.length)).toBe(message);
    expect(read).not.toMatch(/secret|abab/);
  });

  test('contains a limited number of tokens', () => {
    const lines = Array.from({ length: MAX_TOKENS + 1 }, (_, at) => newAdminToken(`t${at}`, 'read').line);
    expect(readAdminTokens(lines.slice(1).join('\n'))).toHaveLength(MAX_TOKENS);
    expect(readAdminTokens(lines.join('\n'))).toBe(
      ':101: the file has more than 100 tokens; remove some lines',
    );
  });
});

test('a new token is accepted with its line', () => {
  const [one, two] = [newAdminToken('one', 'read'), newAdminToken('two', 'write')];
  expect(one.token).toMatch(/^weir_[\w-]{43}$/);
  expect(two.line).toBe(`two write sha256:${createHash('sha256').update(two.token).digest('hex')}`);
  const tokens = readAdminTokens(`${one.line}\n${two.line}`);
  if (typeof tokens === 'string') throw new Error(tokens);
  expect(findAdminToken(tokens, two.token)?.name).toBe('two');
  expect(findAdminToken(tokens, one.token)?.name).toBe('one');
  expect(findAdminToken(tokens, newAdminToken('one', 'read').token)).toBeUndefined();
});

test.each([
  ['on-call_1.a@b', true],
  ['', false],
  ['a b', false],
  ['ü', false],
  ['a\n', false],
  ['x'.repeat(65), false],
])('%j is a name: %s', (name, good) => {
  expect(tokenNameFault(name) === undefined).toBe(good);
});
