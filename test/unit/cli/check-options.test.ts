import { describe, expect, test } from '@jest/globals';
import { type CheckOptions, readCheckOptions } from '../../../src/cli/check-options.js';
import { CHECK_HELP } from '../../../src/cli/help.js';
import { CommandError, EXIT } from '../../../src/cli/io.js';
import { run } from '../../../src/cli/run.js';
import { outputOf } from '../../support/weir/fake-debug-port.js';

function options(...args: string[]): CheckOptions {
  return readCheckOptions(args, {});
}

/** Returns the error of invalid arguments, or of an environment without a server that can be called. */
function failure(args: readonly string[], environment: Record<string, string> = {}): CommandError {
  try {
    readCheckOptions(args, environment);
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
  throw new Error('the arguments are valid');
}

const CLEAR = { tls: false, ca: undefined, cert: undefined, key: undefined };

function descriptor(...entries: [string, string][]) {
  return {
    entries: entries.map(([key, value]) => ({ key, value })),
    limit: undefined,
    hitsAddend: undefined,
    isNegativeHits: false,
  };
}

describe('readCheckOptions', () => {
  test('sends one call to a local server by default', () => {
    expect(options('tenant=acme')).toEqual({
      target: {
        address: '127.0.0.1:8081',
        channel: CLEAR,
        own: true,
        debug: { tls: false, host: '127.0.0.1', port: 6070 },
      },
      descriptors: [descriptor(['tenant', 'acme'])],
      count: 1,
      concurrency: 1,
      timeoutMs: 5000,
      json: false,
    });
  });

  test('reads every option, also between entries', () => {
    const line =
      '--address [::1]:9 --domain d a=1 --count=200 --concurrency 20 b= --hits 5 --timeout 1m0.5s ' +
      'c=x=y --json --ca ca.pem --cert c.pem --key k.pem';
    expect(options(...line.split(' '))).toEqual({
      target: {
        address: '[::1]:9',
        channel: { tls: true, ca: 'ca.pem', cert: 'c.pem', key: 'k.pem' },
        own: false,
      },
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
    expect(options(...words, 'a=b').target.channel).toEqual(channel);
  });

  test.each<[environment: Record<string, string>, address: string, tls: boolean]>([
    [{ GRPC_PORT: '9000' }, '127.0.0.1:9000', false],
    [{ GRPC_HOST: '10.0.0.7', GRPC_PORT: '9000' }, '10.0.0.7:9000', false],
    [{ GRPC_HOST: '::', GRPC_PORT: '9000' }, '[::1]:9000', false],
    [{ GRPC_HOST: '' }, '127.0.0.1:8081', false],
    [{ GRPC_UDS: '/run/weir.sock', GRPC_PORT: '9000' }, 'unix:/run/weir.sock', false],
    [{ GRPC_SERVER_USE_TLS: 'true' }, '127.0.0.1:8081', true],
  ])(
    'without --address the environment says which server is asked, as for weir health: %j',
    (environment, address, tls) => {
      expect(readCheckOptions(['a=b'], environment)).toMatchObject({
        target: { address, channel: { tls }, own: true },
      });
      // With --address, the environment does not apply.
      expect(readCheckOptions(['--address', 'h:1', 'a=b'], environment)).toMatchObject({
        target: { address: 'h:1', channel: CLEAR, own: false },
      });
    },
  );

  test.each<[environment: Record<string, string>, messages: RegExp[]]>([
    [{ GRPC_PORT: 'abc' }, [/^GRPC_PORT: "abc" is not a port/, /specify the server with --address$/]],
    [{ GRPC_PORT: '0' }, [/^GRPC_PORT is 0, .* specify it with --address$/]],
    [
      { GRPC_SERVER_USE_TLS: 'true', GRPC_CLIENT_TLS_CACERT: '/ca.pem' },
      [
        /^GRPC_CLIENT_TLS_CACERT is set, so 127\.0\.0\.1:8081 requires a client certificate; .*--cert and --key$/,
      ],
    ],
  ])('an environment without a reachable server: %j', (environment, messages) => {
    expect(failure(['a=b'], environment)).toMatchObject({
      code: EXIT.FAILED,
      lines: messages.map((message) => expect.stringMatching(message)),
    });
  });

  test('accepts the path of a Unix domain socket', () => {
    expect(options('--address', 'unix:/run/weir.sock', 'a=b').target.address).toBe('unix:/run/weir.sock');
  });

  test('a + starts the next descriptor', () => {
    expect(options('a=1', '+', 'a=2', 'b=+').descriptors).toEqual([
      descriptor(['a', '1']),
      descriptor(['a', '2'], ['b', '+']),
    ]);
  });

  test('has no higher concurrency than the number of calls', () => {
    expect(options('--count', '3', '--concurrency', '50', 'a=b').concurrency).toBe(3);
  });

  test.each([['--help'], ['-h'], ['--count', 'x', '--help']])('%s prints the help', async (...args) => {
    const { code, out } = await outputOf('check', (words, io) => run(['check', ...words], io), args);
    expect([code, out]).toEqual([EXIT.OK, CHECK_HELP]);
  });

  test('help names every option and the exit codes', () => {
    for (const word of ['address', 'domain', 'count', 'concurrency', 'hits', 'timeout', 'json', 'help']) {
      expect(CHECK_HELP).toContain(`--${word}`);
    }
    expect(CHECK_HELP).toMatch(/Exit code: 0 .* 1 .* 2 /);
  });

  test.each([
    [[], /at least one entry/],
    [['=acme'], /"=acme" is not an entry/],
    [['a=1', '+'], /write at least one/],
    [['+', 'a=1'], /write at least one/],
    [['--count', '0', 'a=b'], /--count "0" is not a whole number from 1 /],
    [['--count', '1.5', 'a=b'], /--count "1.5"/],
    [['--concurrency', 'all', 'a=b'], /--concurrency "all"/],
    [['--hits', '4294967296', 'a=b'], /--hits "4294967296" is not a whole number from 0 to 4294967295/],
    [['--timeout', '0s', 'a=b'], /--timeout "0s"/],
    [['--timeout', '2h', 'a=b'], /--timeout "2h"/],
    [['--address', '::1:8081', 'a=b'], /in brackets/],
    [['--address', 'h:0', 'a=b'], /--address/],
    [['--address', 'h:65536', 'a=b'], /--address/],
    [['--bogus', 'a=b'], /--bogus/],
    [['--count'], /--count/],
  ])('%j is refused with an error message', (args, message) => {
    expect(failure(args)).toMatchObject({ code: EXIT.USAGE, lines: [expect.stringMatching(message)] });
  });
});
