import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { checkCommand } from '../../src/cli/check.js';
import { type Io, reportErrors } from '../../src/cli/io.js';
import { CODE, type RateLimitResponse } from '../../src/codec/messages.js';
import { dumpJson } from '../../src/config/show/dump.js';
import { GrpcError, STATUS } from '../../src/grpc/grpc-server.js';
import type { PolicySet } from '../../src/policy/compiled-policy.js';
import { type Decide, type RlsServer, startRlsServer } from '../support/grpc/rls-server.js';
import { policyOf } from '../support/policy/policies.js';
import { freePorts } from '../support/process/free-port.js';
import { TempDir } from '../support/process/temp-dir.js';

const ok: RateLimitResponse = {
  overallCode: CODE.OK,
  statuses: [
    {
      code: CODE.OK,
      currentLimit: { name: '', requestsPerUnit: 100, unit: 0 },
      limitRemaining: 99,
      durationUntilResetSeconds: 1,
    },
  ],
  responseHeadersToAdd: [{ key: 'x-ratelimit-limit', value: '100' }],
  requestHeadersToAdd: [],
  rawBody: undefined,
  dynamicMetadata: undefined,
};

/** A process without variables and without a terminal, whose output nobody reads. */
const QUIET: Io = {
  environment: {},
  out: () => {},
  err: () => {},
  terminal: false,
  isRead: () => true,
  entry: '',
  worker: false,
  onSignal: () => {},
};

function run(args: readonly string[], io: Io): Promise<number> {
  return reportErrors('weir check', io, () => checkCommand(args, { ...io, colour: false }));
}

describe('weir check', () => {
  let server: RlsServer | undefined;
  let http: Server | undefined;
  afterEach(async () => {
    await server?.server.close();
    http?.close();
    http?.closeAllConnections();
  });

  const start = async (decide: Decide): Promise<string> => {
    server = await startRlsServer(decide);
    return server.address;
  };
  const check = async (...args: string[]) => {
    let out = '';
    let err = '';
    const code = await run(args, {
      ...QUIET,
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
    });
    return { code, out, err };
  };

  test('sends the given request, and shows the answer', async () => {
    const address = await start(() => ok);
    const { code, out, err } = await check(
      ...`--address ${address} --domain d --hits 3 a=1 b= + c=2`.split(' '),
    );
    expect(server?.requests).toEqual([
      {
        domain: 'd',
        descriptors: [
          {
            entries: [
              { key: 'a', value: '1' },
              { key: 'b', value: '' },
            ],
            limit: undefined,
            hitsAddend: undefined,
            isNegativeHits: false,
          },
          {
            entries: [{ key: 'c', value: '2' }],
            limit: undefined,
            hitsAddend: undefined,
            isNegativeHits: false,
          },
        ],
        hitsAddend: 3,
      },
    ]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^OK {18}1\nOVER_LIMIT {10}0\n/);
    expect(out).toMatch(
      /descriptor 1: OK, limit 100, remaining 99, reset in 1s\n {2}x-ratelimit-limit: 100\n/,
    );
    // The single call also connects, so its time is not the latency of the server.
    expect(out).not.toContain('latency');
  });

  /** Opens a debug port that returns these answers in turn, and then repeats the last one; returns its address. */
  const debugPort = async (...bodies: string[]): Promise<string> => {
    const debug = createServer((_request, response) => {
      response.end(bodies.length > 1 ? bodies.shift() : bodies[0]);
    });
    http = debug;
    await new Promise<void>((resolve) => debug.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(debug.address() as AddressInfo).port}`;
  };

  describe('without --domain', () => {
    const policies = (...domains: string[]): string => {
      const texts = domains.map((domain): [string, string] => [
        domain,
        `{ domain: ${domain}, descriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: 1 } }] }`,
      ]);
      const set = { domains: new Map(texts.map(([domain, text]) => [domain, policyOf(text)])), version: 'v' };
      const status = domains.map((domain) => ({ domain, state: 'ok' as const, files: [`${domain}.yaml`] }));
      const bad = { domain: 'bad', state: 'absent' as const, files: ['bad.yaml'] };
      return JSON.stringify(dumpJson(set, [...status, bad], [], 0));
    };

    test('asks for the only domain of the server', async () => {
      const address = await start(() => ok);
      const debug = await debugPort(policies('shop'));
      expect(await check('--address', address, '--debug', debug, 'tenant=acme')).toMatchObject({
        code: 0,
        err: '',
      });
      expect(server?.requests.map(({ domain }) => domain)).toEqual(['shop']);
    });

    test('makes no call if the server has several domains, and lists them', async () => {
      const address = await start(() => ok);
      const debug = await debugPort(policies('shop', 'open-api', ...Array.from('abcdefghij')));
      expect(await check('--address', address, '--debug', debug, 'tenant=acme')).toEqual({
        code: 2,
        out: '',
        err:
          'weir check: the server has several domains; specify one with --domain: shop, open-api, a, b, c, d, e, f, ' +
          'g, h, and 2 more\n',
      });
      expect(server?.requests).toEqual([]);
    });

    test('asks for the only domain of the policy in --policy', async () => {
      const address = await start(() => ok);
      const dir = new TempDir();
      dir.write('shop.yaml', 'domain: shop');
      expect(await check('--address', address, '--policy', dir.path, 'tenant=acme')).toMatchObject({
        err: '',
      });
      dir.remove();
      expect(server?.requests.map(({ domain }) => domain)).toEqual(['shop']);
    });

    test('asks for open-api and says so if the domains of the server are unknown', async () => {
      const address = await start(() => ok);
      const { code, err } = await check('--address', address, 'tenant=acme');
      expect({ code, err }).toEqual({
        code: 0,
        err:
          'weir check: the request is for the domain open-api, because the domains of the server are unknown; ' +
          'specify the domain with --domain, or the debug port of the server with --debug <host:port>\n',
      });
      expect(server?.requests.map(({ domain }) => domain)).toEqual(['open-api']);
    });
  });

  describe('an unlimited request', () => {
    const passed: RateLimitResponse = {
      ...ok,
      statuses: [
        { code: CODE.OK, currentLimit: undefined, limitRemaining: 0, durationUntilResetSeconds: undefined },
        {
          code: CODE.OK,
          currentLimit: undefined,
          limitRemaining: 0xffff_ffff,
          durationUntilResetSeconds: undefined,
        },
      ],
    };
    const policy = `domain: d
descriptors:
- { key: tenant, descriptors: [{ key: group, value: chats, rate_limit: { unit: day, requests_per_unit: 1 } }] }
- { key: free, rate_limit: { unlimited: true } }
`;
    const set: PolicySet = { domains: new Map([['d', policyOf(policy)]]), version: 'v' };
    const status = [{ domain: 'd', state: 'ok', files: ['d.yaml'] }] as const;

    test.each([
      ['d', 'tenant=a', ['the nearest rule is at tenant/']],
      ['d', 'tenat=a group=chats', ['did you mean tenant/group?']],
      ['d', 'tenant=a group=chat', ['rules exist for tenant/group, but none']],
      ['dd', 'tenant=a', ['has no domain dd: did you mean d?']],
    ])('%s %s, according to the debug port', async (domain, words, why) => {
      const address = await start(() => passed);
      const debug = await debugPort(JSON.stringify(dumpJson(set, status, [], 0)));
      const args = `--address ${address} --domain ${domain} --debug ${debug} ${words} + free=x`.split(' ');
      const { code, out } = await check(...args);
      expect(code).toBe(0);
      expect(out).toContain('descriptor 1: OK, no rule matched\n  descriptor 2: OK, unlimited\n');
      for (const text of why)
        expect(out).toMatch(
          new RegExp(`why no rule matched\\n {2}descriptor 1: .*${text.replace('?', '\\?')}`),
        );
      const json = JSON.parse((await check(...args, '--json')).out);
      expect(json.unmatched).toEqual([{ descriptor: 1, why: [expect.stringContaining(why[0] ?? '')] }]);
    });

    test('according to a given policy', async () => {
      const address = await start(() => passed);
      const dir = new TempDir();
      dir.write('d.yaml', policy);
      const ask = async (...words: string[]) => {
        const { out } = await check(
          '--address',
          address,
          '--domain',
          'd',
          '--policy',
          dir.path,
          ...words,
          '--json',
        );
        return JSON.parse(out).unmatched[0].why;
      };
      expect(await ask('tenant=a', 'group=chat')).toContain(
        'The nearest value is group=chats: did you mean this value?',
      );
      expect(await ask('tenant=a', 'group=chats')).toEqual([
        expect.stringMatching(
          /^The rule at tenant\/group=chats applies in .*, but not on the server\. Possible causes: .*\.$/,
        ),
      ]);
    });

    test('prints the option to set if the policy is not known', async () => {
      const address = await start(() => passed);
      const { out } = await check('--address', address, 'a=b');
      expect(out).toContain(
        'descriptor 1: to find the reason, specify the policy with --policy <path>, or the debug port',
      );
      const [port] = await freePorts(1);
      const away = await check('--address', address, '--debug', `127.0.0.1:${port}`, 'a=b');
      expect(away.out).toContain(
        `nothing listens on http://127.0.0.1:${port}; start weir serve, or specify the server's debug port ` +
          'with --debug',
      );
      const odd = ['<html>', 'null', '{"domains":{}}'];
      const debug = await debugPort(...odd);
      for (const _ of odd) {
        const other = await check('--address', address, '--debug', debug, 'a=b');
        expect(other.out).toMatch(/the answer to .* does not come from weir; .* with --debug$/m);
      }
      expect(await check('--debug', 'unix:/x', 'a=b')).toMatchObject({ code: 2 });
    });
  });

  test('makes the given number of calls, with at most the given concurrency', async () => {
    let running = 0;
    let most = 0;
    const address = await start(async (_request, i) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return { ...ok, overallCode: i % 2 === 0 ? CODE.OK : CODE.OVER_LIMIT };
    });
    const { code, out } = await check(
      '--address',
      address,
      '--count',
      '200',
      '--concurrency',
      '8',
      '--json',
      'a=b',
    );
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ ok: 100, overLimit: 100, errors: {} });
    expect(server?.requests).toHaveLength(200);
    expect(most).toBe(8);
  });

  test('counts failed calls by code, shows the other calls, and exits with 1', async () => {
    const address = await start((_request, i) => {
      if (i > 0) throw new GrpcError(STATUS.INVALID_ARGUMENT, 'descriptor 1 has an entry\nwithout key');
      return ok;
    });
    const { code, out, err } = await check('--address', address, '--domain', 'd', '--count', '3', 'a=b');
    expect(code).toBe(1);
    expect(out).toMatch(/^OK {18}1\nOVER_LIMIT {10}0\nINVALID_ARGUMENT {4}2\n/);
    expect(err).toBe(
      'weir check: 2 of 3 calls failed: INVALID_ARGUMENT: descriptor 1 has an entry without key\n',
    );
  });

  test('reports that no answer arrived in time', async () => {
    const address = await start(() => new Promise(() => {}));
    const { code, err } = await check('--address', address, '--timeout', '50ms', 'a=b');
    expect(code).toBe(1);
    expect(err).toContain(`no answer from ${address} within 50 ms; check the server, or raise --timeout`);
  });

  test('reports the store as the likely cause of UNAVAILABLE', async () => {
    const address = await start(() => {
      throw new GrpcError(STATUS.UNAVAILABLE, 'the store is unavailable');
    });
    const { code, err } = await check('--address', address, 'a=b');
    expect(code).toBe(1);
    expect(err).toContain('the store is unavailable; check that');
  });

  test('shows its progress during a long run', async () => {
    let release = (): void => {};
    const told = new Promise<void>((resolve) => {
      release = resolve;
    });
    const address = await start(async () => {
      await told;
      return ok;
    });
    let err = '';
    const code = await run(['--address', address, '--domain', 'd', '--timeout', '1m', 'a=b'], {
      ...QUIET,
      err: (text) => {
        err += text;
        release();
      },
    });
    expect({ code, err }).toEqual({ code: 0, err: 'weir check: 0 of 1 calls done\n' });
  });
});
