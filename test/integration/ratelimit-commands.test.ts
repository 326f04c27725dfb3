/* Tests the programs of envoyproxy/ratelimit as scripts call them: flags, output and exit codes. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { ignoredArguments } from '../../src/cli/ratelimit/ratelimit-service.js';
import { copyImagePrograms } from '../support/image/image-programs.js';
import { freePorts } from '../support/process/free-port.js';
import { runToEnd } from '../support/process/processes.js';
import { startRatelimit } from '../support/reference/ratelimit.js';
import { CertificateAuthority } from '../support/tls/certificates.js';
import { CommandHost } from '../support/weir/commands.js';
import { startWeir } from '../support/weir/weir.js';

const folder = mkdtempSync(join(tmpdir(), 'weir-ratelimit-commands-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const bin = copyImagePrograms(folder);
const host = new CommandHost();
/** Runs the program of the image as a process. */
const program = (name: string, ...args: string[]) => runToEnd(join(bin, name), args, { cwd: folder });
/** Runs the weir command that the program wraps. */
const run = (name: string, ...args: string[]) =>
  host.run({ args: [name.replaceAll('_', '-'), ...args], folder });

const POLICY = `
domain: mongo_cps
descriptors:
  - key: database
    value: users
    rate_limit: { unit: day, requests_per_unit: 2 }
`;

describe('/bin/ratelimit', () => {
  test('ignores arguments like the reference, and names them without their values', async () => {
    const args = ['--config-dir=/nowhere', '--redis-url=redis://:s3cret@127.0.0.1:1', '--x', 'word'];
    const server = await startRatelimit(join(bin, 'ratelimit'), {}, { args });
    expect(await server.process.stop()).toEqual({ code: 0, signal: null });
    const log = server.process.lines().join('\n');
    expect(log).toContain(
      'weir ratelimit ignores its arguments, as envoyproxy/ratelimit does: --config-dir, --redis-url, ' +
        '--x, argument 4; set environment variables instead, or run weir serve, which accepts flags',
    );
    expect(log).not.toMatch(/s3cret|nowhere|word/);
  });

  test('names a few of many arguments', () => {
    const [line = ''] = ignoredArguments(Array.from({ length: 1000 }, () => `--${'a'.repeat(1000)}`));
    expect(line).toContain(', and 990 more; ');
    expect(line.length).toBeLessThan(1000);
    expect(ignoredArguments([])).toEqual([]);
  });
});

describe('/bin/ratelimit_client', () => {
  test('prints its flags and the answer on one line', async () => {
    const server = await startWeir({ policy: POLICY });
    const args = [`-dial_string=127.0.0.1:${server.grpcPort}`, '--domain', 'mongo_cps'];
    const ask = () =>
      program('ratelimit_client', ...args, '-descriptors', 'database=users', '-descriptors', 'a=b,c=');
    const { code, stdout, stderr } = await ask();
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.split('\n')).toEqual([
      'Flag: --descriptors="[ <key=database, value=users> ] [ <key=a, value=b>  <key=c, value=> ] "',
      `Flag: --dial_string="127.0.0.1:${server.grpcPort}"`,
      'Flag: --domain="mongo_cps"',
      'Flag: --grpc-cert-file=""',
      'Flag: --grpc-key-file=""',
      'Flag: --grpc-server-ca-file=""',
      'Flag: --grpc-use-tls="false"',
      'Flag: --oltp-protocol=""',
      expect.stringMatching(
        new RegExp(
          '^response: overall_code:OK statuses:\\{code:OK current_limit:\\{requests_per_unit:2 unit:DAY\\} ' +
            'limit_remaining:1 duration_until_reset:\\{seconds:\\d+\\}\\} statuses:\\{code:OK\\}$',
        ),
      ),
      '',
    ]);
    await ask();
    expect(await ask()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('overall_code:OVER_LIMIT'),
    });
    await server.stop();
  });

  test('uses TLS with a client certificate', async () => {
    const authority = new CertificateAuthority();
    const files = { ca: authority.cert, ...authority.issue('IP:127.0.0.1,DNS:localhost') };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.pem`), text);
    const server = await startWeir({
      policy: POLICY,
      env: {
        GRPC_SERVER_USE_TLS: 'true',
        GRPC_SERVER_TLS_CERT: join(folder, 'cert.pem'),
        GRPC_SERVER_TLS_KEY: join(folder, 'key.pem'),
        GRPC_CLIENT_TLS_CACERT: join(folder, 'ca.pem'),
      },
    });
    const args = [
      '-dial_string',
      `localhost:${server.grpcPort}`,
      '-domain=mongo_cps',
      '-descriptors=database=users',
    ];
    const tls = ['-grpc-use-tls', '-grpc-server-ca-file', 'ca.pem'];
    const own = ['-grpc-cert-file', 'cert.pem', '-grpc-key-file', 'key.pem'];
    expect(await run('ratelimit_client', ...args, ...tls, ...own)).toMatchObject({ code: 0 });
    expect(await run('ratelimit_client', ...args, ...tls)).toMatchObject({ code: 1 });
    await server.stop();
  });

  test('reports why a call failed, in the words of gRPC', async () => {
    const server = await startWeir({ policy: POLICY });
    const [nobody = 0] = await freePorts(1);
    const ask = (port: number) =>
      run('ratelimit_client', '-dial_string', `127.0.0.1:${port}`, '-domain', 'd');
    const refused = await ask(server.grpcPort);
    expect(refused.code).toBe(1);
    expect(refused.stdout).toMatch(
      /^request error: rpc error: code = InvalidArgument desc = .*descriptor list/m,
    );
    const unreachable = await ask(nobody);
    expect(unreachable.code).toBe(1);
    expect(unreachable.stdout).toMatch(/^request error: rpc error: code = Unavailable desc = /m);
    await server.stop();
  });

  test.each([
    [['-descriptors', 'a'], '-descriptors: write the entries as key=value'],
    [['-descriptors', 'a=b=c'], '-descriptors: write the entries as key=value'],
    [['-oltp-protocol', 'grpc'], 'this client does not record traces'],
    [['-grpc-cert-file', 'cert.pem'], 'must be set together'],
    [['-hits', '1'], 'unknown flag -hits'],
  ])('rejects %j with exit code 2', async (args, message) => {
    const { code, stdout, stderr } = await run('ratelimit_client', ...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});

describe('/bin/ratelimit_config_check', () => {
  const directory = (name: string, files: Record<string, string>) => {
    mkdirSync(join(folder, name));
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, name, file), text);
    return name;
  };

  test('reads each file of the directory, whatever its name', async () => {
    const good = directory('good', { mongo: POLICY, 'other.conf': 'domain: other\ndescriptors: []\n' });
    expect(await program('ratelimit_config_check', '-config_dir', good)).toEqual({
      code: 0,
      signal: null,
      stdout: [
        'checking rate limit configs...',
        'loading config directory: good',
        'opening config file: good/mongo',
        'opening config file: good/other.conf',
        'all rate limit configs ok\n',
      ].join('\n'),
      stderr: '',
    });
  });

  test('reads a mounted ConfigMap once', async () => {
    const data = directory('configmap', {});
    directory('configmap/..2026', { 'config.yaml': POLICY });
    symlinkSync('..2026', join(folder, data, '..data'));
    symlinkSync('..data/config.yaml', join(folder, data, 'config.yaml'));
    const { code, stdout } = await run('ratelimit_config_check', '--config_dir=configmap');
    expect(stdout).toContain('all rate limit configs ok');
    expect(code).toBe(0);
  });

  test('merges domains on request', async () => {
    const twice = directory('twice', { a: POLICY, b: 'domain: other\n', c: 'domain: other\n' });
    const { code, stdout } = await run('ratelimit_config_check', '-config_dir', twice);
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('the domain "other" is already defined in twice/b'),
    ]);
    const merged = await run('ratelimit_config_check', '-merge_domain_configs', '-config_dir', twice);
    expect([merged.code, merged.stdout]).toEqual([0, expect.stringContaining('all rate limit configs ok')]);
    const apart = await run('ratelimit_config_check', '-merge_domain_configs=false', '-config_dir', twice);
    expect(apart.code).toBe(1);
  });

  test('prints every error of every file', async () => {
    const bad = directory('bad', {
      'a.yaml':
        'domain: a\ndescriptors:\n  - key: k\n    rate_limit: { unit: fortnight, requests_per_unit: 1 ' +
        '}\n  - value: v\n',
      'b.yaml': 'domain: [',
    });
    const { code, stdout } = await run('ratelimit_config_check', '-config_dir', bad);
    expect(code).toBe(1);
    const errors = stdout.split('\n').filter((line) => line.startsWith('error loading rate limit configs: '));
    expect(errors.map((line) => /bad\/[ab]\.yaml:\d+/.exec(line)?.[0])).toEqual(
      expect.arrayContaining(['bad/a.yaml:4', 'bad/a.yaml:5', expect.stringContaining('bad/b.yaml:')]),
    );
    expect(stdout).not.toContain('all rate limit configs ok');
  });

  test('exits with 1 for a missing directory, and with 2 without a directory argument', async () => {
    const { code, stdout } = await run('ratelimit_config_check', '-config_dir', 'nowhere');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^error opening directory nowhere: ENOENT/m);
    expect(await run('ratelimit_config_check')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('-config_dir'),
    });
  });
});
