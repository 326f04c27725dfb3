import { describe, expect, test } from '@jest/globals';
import { CHECK_HELP, type CheckOptions, parseCheckArguments } from '../../../src/cli/check-options.js';

function options(...args: string[]): CheckOptions {
  const parsed = parseCheckArguments(args);
  if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
  return parsed.options;
}

function descriptor(...entries: [string, string][]) {
  return {
    entries: entries.map(([key, value]) => ({ key, value })),
    limit: undefined,
    hitsAddend: undefined,
    isNegativeHits: false,
  };
}

describe('parseCheckArguments', () => {
  test('asks the bundled policy of a local server once', () => {
    expect(options('tenant=acme')).toEqual({
      address: '127.0.0.1:8081',
      channel: { tls: false, ca: undefined, cert: undefined, key: undefined },
      domain: 'open-api',
      descriptors: [descriptor(['tenant', 'acme'])],
      count: 1,
      concurrency: 1,
      hits: 0,
      timeoutMs: 1000,
      json: false,
    });
  });

  test('reads every option, among the entries too', () => {
    const line =
      '--address [::1]:9 --domain d a=1 --count=200 --concurrency 20 b= --hits 5 --timeout 1m0.5s ' +
      'c=x=y --json --ca ca.pem --cert c.pem --key k.pem';
    expect(options(...line.split(' '))).toEqual({
      address: '[::1]:9',
      channel: { tls: true, ca: 'ca.pem', cert: 'c.pem', key: 'k.pem' },
      domain: 'd',
      descriptors: [descriptor(['a', '1'], ['b', ''], ['c', 'x=y'])],
      count: 200,
      concurrency: 20,
      hits: 5,
      timeoutMs: 60_500,
      json: true,
    });
  });

  test.each([
    [['--tls'], { tls: true, ca: undefined, cert: undefined, key: undefined }],
    [['--ca', 'ca.pem'], { tls: true, ca: 'ca.pem', cert: undefined, key: undefined }],
  ])('%j is TLS', (words, channel) => {
    expect(options(...words, 'a=b').channel).toEqual(channel);
  });

  test('takes the path of a Unix domain socket', () => {
    expect(options('--address', 'unix:/run/weir.sock', 'a=b').address).toBe('unix:/run/weir.sock');
  });

  test('a + starts the next descriptor', () => {
    expect(options('a=1', '+', 'a=2', 'b=+').descriptors).toEqual([
      descriptor(['a', '1']),
      descriptor(['a', '2'], ['b', '+']),
    ]);
  });

  test('never makes more calls at once than there are', () => {
    expect(options('--count', '3', '--concurrency', '50', 'a=b').concurrency).toBe(3);
  });

  test.each([['--help'], ['-h'], ['--count', 'x', '--help']])('%s asks for help', (...args) => {
    expect(parseCheckArguments(args)).toEqual({ kind: 'help' });
  });

  test('help names every option and the exit codes', () => {
    for (const word of ['address', 'domain', 'count', 'concurrency', 'hits', 'timeout', 'json', 'help']) {
      expect(CHECK_HELP).toContain(`--${word}`);
    }
    expect(CHECK_HELP).toMatch(/Exit code: 0 .* 1 .* 2 /);
  });

  test.each([
    [[], /at least one entry/],
    [['acme'], /"acme" is no entry/],
    [['=acme'], /"=acme" is no entry/],
    [['a=1', '+'], /each needs at least one/],
    [['+', 'a=1'], /each needs at least one/],
    [['--count', '0', 'a=b'], /--count "0" is not a whole number from 1 /],
    [['--count', '1.5', 'a=b'], /--count "1.5"/],
    [['--concurrency', 'all', 'a=b'], /--concurrency "all"/],
    [['--hits', '4294967296', 'a=b'], /--hits "4294967296" is not a whole number from 0 to 4294967295/],
    [['--timeout', '5', 'a=b'], /--timeout "5" is not a duration/],
    [['--timeout', '0s', 'a=b'], /--timeout "0s"/],
    [['--timeout', '2h', 'a=b'], /--timeout "2h"/],
    [['--address', 'localhost', 'a=b'], /--address "localhost" is neither host:port/],
    [['--address', '::1:8081', 'a=b'], /in brackets/],
    [['--address', 'h:0', 'a=b'], /--address/],
    [['--address', 'h:65536', 'a=b'], /--address/],
    [['--bogus', 'a=b'], /--bogus/],
    [['--count'], /--count/],
  ])('%j is refused with a sentence', (args, message) => {
    expect(parseCheckArguments(args)).toEqual({ kind: 'usage', message: expect.stringMatching(message) });
  });
});
