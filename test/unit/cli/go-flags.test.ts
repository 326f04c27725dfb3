import { describe, expect, test } from '@jest/globals';
import { readGoFlags } from '../../../src/cli/ratelimit/ratelimit-flags.js';

const FLAGS = [
  { name: 'domain', help: '' },
  { name: 'descriptors', help: '' },
  { name: 'grpc-use-tls', help: '', boolean: true },
] as const;
const read = (...args: string[]) => {
  const flags = readGoFlags('ratelimit-client', args, FLAGS);
  return flags && { ...Object.fromEntries(flags.values), rest: flags.rest };
};

describe('parses flags like Go', () => {
  test.each([
    [['-domain', 'd'], { domain: ['d'], rest: [] }],
    [['--domain', 'd'], { domain: ['d'], rest: [] }],
    [['-domain=d'], { domain: ['d'], rest: [] }],
    [['--domain=a=b'], { domain: ['a=b'], rest: [] }],
    [['-domain='], { domain: [''], rest: [] }],
    [['-domain', '-x'], { domain: ['-x'], rest: [] }],
    [['-descriptors', 'a=b', '-descriptors=c=d'], { descriptors: ['a=b', 'c=d'], rest: [] }],
    [['-grpc-use-tls', '-domain', 'd'], { 'grpc-use-tls': ['true'], domain: ['d'], rest: [] }],
    [['-grpc-use-tls=F'], { 'grpc-use-tls': ['false'], rest: [] }],
    [['-grpc-use-tls', 'false'], { 'grpc-use-tls': ['true'], rest: ['false'] }],
    [['word', '-domain', 'd'], { rest: ['word', '-domain', 'd'] }],
    [['-domain', 'd', '--', '-x'], { domain: ['d'], rest: ['-x'] }],
    [['-'], { rest: ['-'] }],
    [['-help'], undefined],
    [['--h'], undefined],
  ])('%j', (args, expected) => expect(read(...args)).toEqual(expected));

  test.each([
    [['-domains', 'd'], 'unknown flag -domains'],
    [['-domain'], '-domain needs a value'],
    [['---domain'], '"---domain" is not a flag'],
    [['-=d'], '"-=d" is not a flag'],
    [['-grpc-use-tls=yes'], '-grpc-use-tls must be true or false, not "yes"'],
  ])('%j is invalid', (args, message) =>
    expect(() => read(...args)).toThrow(`${message}; see weir ratelimit-client -help`),
  );
});
