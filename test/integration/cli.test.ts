/* Tests the weir command from a shell: output, errors and exit codes. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { commandHelps } from '../../src/cli/run.js';
import { INERT_VARIABLES, SETTINGS } from '../../src/server/settings/settings-table.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { repositoryRoot } from '../support/process/tools.js';
import { CommandHost } from '../support/weir/commands.js';
import { startWeir, WEIR_MAIN } from '../support/weir/weir.js';

const folder = mkdtempSync(join(tmpdir(), 'weir-cli-'));
const host = new CommandHost();
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Runs weir in a directory that is not part of the project. */
const weir = (...args: string[]) => host.run({ args, folder });
const BUNDLED = join(repositoryRoot, 'deploy/policies/open-api.yaml');

describe('weir', () => {
  test('--version prints the version of package.json', async () => {
    const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8'));
    expect(await weir('--version')).toMatchObject({ code: 0, stdout: `weir ${version}\n`, stderr: '' });
  });

  test('commands that need no server load no gRPC', async () => {
    const script = `require(${JSON.stringify(join(dirname(WEIR_MAIN), 'cli/run.js'))});
      require(${JSON.stringify(join(dirname(WEIR_MAIN), 'cli/check-config.js'))});
      console.log(Object.keys(require.cache).filter((path) => path.includes('/@grpc/')).join())`;
    expect(await runToEnd(process.execPath, ['-e', script])).toMatchObject({ code: 0, stdout: '\n' });
  });

  test('--help lists commands and exit codes, and every command has its own help', async () => {
    const main = await weir('--help');
    expect(main).toMatchObject({ code: 0, stderr: '' });
    expect(main.stdout).toMatch('Exit codes');
    const commands = [
      'init',
      'serve',
      'check-config',
      'explain',
      'diff',
      'replay',
      'check',
      'health',
      'bucket',
      'top',
      'migrate',
      'ratelimit',
      'ratelimit-client',
      'ratelimit-config-check',
    ];
    expect([...commandHelps().keys()]).toEqual(commands);
    for (const command of commands) {
      expect(main.stdout).toMatch(`  ${command}`);
      const own = await weir(command, '--help');
      expect(own).toMatchObject({ code: 0, stderr: '' });
      expect(own.stdout).toMatch(`Usage: weir ${command}`);
    }
    const serve = await weir('help', 'serve');
    const [active = '', ...lists] = serve.stdout.split('that weir accepts and ignores:');
    const inert = lists.join('');
    for (const { name, flag } of SETTINGS) expect(active).toMatch(new RegExp(`${flag} <.*${name}`));
    for (const { name, flag } of INERT_VARIABLES) {
      expect(active).not.toContain(flag);
      expect(inert).toMatch(new RegExp(`\\b${name}\\b`));
    }
  });

  test.each([
    [[], 'Usage: weir'],
    [
      ['serve', '--redis-type', 'cluster', '--redis-url', 'h:1:2'],
      'weir: --redis-url, --redis-type: Redis address:',
    ],
    [
      ['explain', BUNDLED, 'tenant=a', '+', 'tenant=b'],
      '"+" begins another descriptor, but weir explain accepts only one; run the command once for each',
    ],
    [['init', ''], 'the folder name is empty; specify a folder, or omit it to use the current folder'],
    [['check', 'a\n\u001b[31m'], 'weir check: "a\\u000a\\u001b[31m" is not an entry; write key=value'],
    [['check'], 'key=value'],
    [['health', '--cert', 'a'], '--cert and --key must be set together'],
    [['health', 'now'], 'this command accepts options, but no other arguments'],
    [
      ['health', '--address', ''],
      'is not of the form host:port (IPv6 addresses in brackets, as in [::1]:8081) or unix:<path>',
    ],
    [
      ['health', '--address', 'localhost:99999'],
      'is not of the form host:port (IPv6 addresses in brackets, as in [::1]:8081) or unix:<path>',
    ],
  ])('rejects %j with exit code 2 and nothing on standard output', async (args, message) => {
    const { code, stdout, stderr } = await weir(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('    at ');
  });
});

/** Runs a shell script in which `weir` is a function. */
async function shell(script: string): ReturnType<typeof runToEnd> {
  const weirFunction = `weir() { "${process.execPath}" "${WEIR_MAIN}" "$@"; }`;
  return runToEnd('/bin/sh', ['-c', `${weirFunction}\n${script}`], { cwd: folder });
}

test('returns the exit code even if its output is not read', async () => {
  writeFileSync(join(folder, 'bad.yaml'), 'domain: d\ndescriptors: 5\n');
  const rule = (hits: number): string =>
    `domain: d\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: ${hits} } }]\n`;
  writeFileSync(join(folder, 'few.yaml'), rule(1));
  writeFileSync(join(folder, 'many-hits.yaml'), rule(9));
  const { stdout } = await shell(`
    { weir check-config bad.yaml 2>&1; echo $? > unread; } | :; cat unread
    { weir diff many-hits.yaml few.yaml; echo $? > unread; } | :; cat unread`);
  expect(stdout).toBe('1\n3\n');
});

test('reports that the working directory was removed', async () => {
  const { stdout } = await shell(`mkdir gone; cd gone; rmdir ../gone
    for command in 'check-config p.yaml' 'init' 'serve --config-path p.yaml'; do weir $command 2>&1; done`);
  const where =
    '"p.yaml" does not exist: the path is relative to the working directory, which was removed; restart weir in ' +
    'an existing directory; check the path\n';
  expect(stdout).toContain(`p.yaml: ${where}1 error\n`);
  expect(stdout).toContain('weir: the working directory was removed; change to an existing directory\n');
  expect(stdout).toContain(
    'weir: the policies could not be loaded: the working directory of weir was removed; restart weir in ' +
      'an existing directory',
  );
  expect(stdout).not.toMatch(/uv_cwd| at /);
});

describe('weir check-config', () => {
  test('describes the content of valid files', async () => {
    expect(await weir('check-config', BUNDLED)).toMatchObject({
      code: 0,
      stdout: 'ok: 1 file, open-api (2 rules)\n',
      stderr: '',
    });
  });

  test('prints thousands of errors through a pipe, and the summary', async () => {
    const nodes = Array.from(
      { length: 3000 },
      (_, index) => `  - { key: k${index}, rate_limit: { unit: fortnight } }`,
    );
    writeFileSync(join(folder, 'many.yaml'), `domain: d\ndescriptors:\n${nodes.join('\n')}\n`);
    // A separate process, whose end must not truncate output that the pipe has not accepted yet.
    const { code, stderr } = await runToEnd(process.execPath, [WEIR_MAIN, 'check-config', 'many.yaml'], {
      cwd: folder,
    });
    expect(code).toBe(1);
    expect(stderr.match(/fortnight/g)).toHaveLength(1000);
    expect(stderr).toMatch(/2000 more errors/);
    expect(stderr).toMatch(/3000 errors\n$/);
  });

  test('lists the domains that would be served despite invalid domains, and merges domains on request', async () => {
    const rule = (key: string): string => `descriptors: [{ key: ${key}, rate_limit: { unlimited: true } }]\n`;
    writeFileSync(join(folder, 'shop-a.yaml'), `domain: shop\n${rule('a')}`);
    writeFileSync(join(folder, 'shop-b.yaml'), `domain: shop\n${rule('b')}`);
    writeFileSync(join(folder, 'mail.yaml'), `domain: mail\n${rule('a')}`);
    const files = ['shop-a.yaml', 'shop-b.yaml', 'mail.yaml'];
    const { code, stderr } = await weir('check-config', ...files);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^shop-b\.yaml:1:9: domain: the domain "shop" is already defined in shop-a\.yaml:1:9/,
    );
    expect(stderr).toMatch(
      /\ndomains that would load: mail \(1 rule\)\ndomains that would fail to load: shop\n1 error\n$/,
    );
    expect(await weir('check-config', '--merge-domains', ...files)).toMatchObject({
      code: 0,
      stdout: 'ok: 3 files, shop (2 rules), mail (1 rule)\n',
    });
  });

  test('accepts ConfigMaps, and reports a directory without policies as an error', async () => {
    const policy = 'domain: shop\n    descriptors: [{ key: a, rate_limit: { unit: UNIT } }]\n';
    const map = `apiVersion: v1\nkind: ConfigMap\ndata:\n  shop.yaml: |\n    ${policy}`;
    mkdirSync(join(folder, 'nothing'));
    writeFileSync(join(folder, 'map.yaml'), map.replace('UNIT', 'day, requests_per_unit: 1'));
    writeFileSync(join(folder, 'bad-map.yaml'), map.replace('UNIT', 'fortnight, requests_per_unit: 1'));
    expect(await weir('check-config', 'map.yaml')).toMatchObject({
      code: 0,
      stdout: 'ok: 1 file, shop (1 rule)\n',
    });
    const { code, stderr } = await weir('check-config', 'bad-map.yaml', 'nothing');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^nothing: the directory is empty; /);
    expect(stderr).toMatch(
      /^bad-map\.yaml:6:\d+: data\["shop\.yaml"\]\.descriptors\[0\]\.rate_limit\.unit: "fortnight" /m,
    );
  });

  test('accepts files without an algorithm as a server with --default-algorithm does', async () => {
    const limit = 'unit: year, requests_per_unit: 1, burst: 2';
    writeFileSync(
      join(folder, 'burst.yaml'),
      `domain: d\ndescriptors: [{ key: k, rate_limit: { ${limit} } }]\n`,
    );
    expect(await weir('check-config', 'burst.yaml')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('but this rule is a fixed window'),
    });
    const asked = ['--default-algorithm', 'token_bucket'];
    expect(await weir('check-config', 'burst.yaml', ...asked)).toMatchObject({ code: 0 });
    expect(await weir('explain', 'burst.yaml', 'k=v', ...asked)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('token bucket: 2 tokens, 1 every 8760h'),
    });
    expect(await weir('check-config', 'burst.yaml', '--default-algorithm', 'window')).toMatchObject({
      code: 2,
      stderr:
        'weir check-config: --default-algorithm must be one of fixed_window, token_bucket; see weir ' +
        'check-config --help\n',
    });
  });

  test('prints every error of every file on standard error', async () => {
    writeFileSync(join(folder, 'one.yaml'), 'domain: one\nfrequency: 1\ndescriptors: [{ value: v }]\n');
    writeFileSync(join(folder, 'two.yaml'), 'domain: [\n');
    const { code, stdout, stderr } = await weir('check-config', 'one.yaml', 'two.yaml', 'three.yaml');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^one\.yaml:2:1: frequency: /m);
    expect(stderr).toMatch(/^one\.yaml:3:\d+: descriptors\[0\]\.key: /m);
    expect(stderr).toMatch(/^two\.yaml:\d+:\d+: /m);
    // An error about a relative path also shows the directory.
    expect(stderr).toContain(
      'three.yaml: "three.yaml" does not exist: the path is relative to the working directory ' +
        `"${folder}", so weir tried "${join(folder, 'three.yaml')}"; check the path\n`,
    );
  });
});

describe('names with line feeds and control characters', () => {
  const odd = 'a\n\u001b[31mb';
  // Line feeds may only come from the command itself.
  const isClean = (text: string): boolean => !text.includes('\u001b') && !/^.?\[31m/m.test(text);

  test('are printed on one line, quoted', async () => {
    const { stdout } = await weir('explain', BUNDLED, '--domain', odd, `tenant=${odd}`);
    expect(stdout).toContain(
      "domain:     $'a\\U0000000a\\U0000001b[31mb'\ndescriptor: tenant=a\\u000a\\u001b[31mb\n",
    );
    expect(isClean(stdout)).toBe(true);
  });

  test('are quoted if they are names of files', async () => {
    for (const args of [
      ['check-config', `nowhere/${odd}`],
      ['diff', `nowhere/${odd}`, BUNDLED],
      ['init', `/proc/${odd}`],
    ]) {
      const { code, stderr } = await weir(...args);
      expect([code, isClean(stderr)]).toEqual([1, true]);
      expect(stderr).toContain('a\\u000a\\u001b[31mb');
    }
  });

  test('are quoted if they come from policies', async () => {
    const policy = (limit: number): string =>
      JSON.stringify({
        domain: odd,
        descriptors: [{ key: odd, value: odd, rate_limit: { unit: 'minute', requests_per_unit: limit } }],
      });
    const [one, two] = [join(folder, 'odd-1.yaml'), join(folder, 'odd-2.yaml')];
    writeFileSync(one, policy(1));
    writeFileSync(two, policy(2));
    for (const args of [
      ['check-config', one],
      ['diff', one, two],
      ['explain', one, `${odd}=${odd}`],
    ]) {
      const { stdout, stderr } = await weir(...args);
      expect(stdout).toContain('31mb');
      expect([stderr, isClean(stdout)]).toEqual(['', true]);
    }
  });
});

describe('weir explain', () => {
  test('never shows an API key, not even for a wrong domain', async () => {
    const words = ['api_key=s3cret', 'method=GET', 'path=/open/v4/user-chats'];
    for (const domain of ['open-api', 'wrong']) {
      for (const json of [[], ['--json']]) {
        const { code, stdout, stderr } = await weir(
          'explain',
          BUNDLED,
          '--domain',
          domain,
          ...json,
          ...words,
        );
        expect(code).toBe(domain === 'wrong' ? 1 : 0);
        expect(stdout + stderr).not.toContain('s3cret');
      }
    }
  });

  test('shows every limit of a list, and their buckets', async () => {
    writeFileSync(
      join(folder, 'list.yaml'),
      `domain: d
descriptors:
  - key: tenant
    enforce_percent: 12.5
    rate_limits: [{ name: burst, unit: second, requests_per_unit: 10 }, { unit: day, requests_per_unit: 250 }]
`,
    );
    const { code, stdout } = await weir('explain', 'list.yaml', '--json', 'tenant=acme');
    expect(code).toBe(0);
    const { rules } = JSON.parse(stdout) as { rules: { bucket: string; redis_key: string }[] };
    expect(rules).toMatchObject([
      { path: 'tenant[burst]', enforce_percent: 12.5, bucket: '1:d6:tenant4:acme~5:burst%1' },
      { path: 'tenant[2]', enforce_percent: 12.5, bucket: '1:d6:tenant4:acme~2%86400' },
    ]);
    for (const { bucket, redis_key: key } of rules) expect(key.endsWith(`}${bucket}`)).toBe(true);
    expect(await weir('check-config', 'list.yaml')).toMatchObject({
      code: 0,
      stdout: 'ok: 1 file, d (2 rules)\n',
      stderr: '',
    });
  });
});

describe('weir check and weir health', () => {
  test('--hits 0 takes no tokens and counts no hits, and exceeds a limit only if nothing is left', async () => {
    const dir = new TempDir();
    const limit = 'unit: year, requests_per_unit: 2';
    dir.write(
      'd.yaml',
      `domain: d
descriptors:
- { key: window, rate_limit: { ${limit} } }
- { key: bucket, rate_limit: { token_bucket: { max_tokens: 2, fill_interval: 24h } } }
- { key: oldest, rate_limit: { ${limit}, max_debt: 0, hold: { amount: 1, pair: oldest } } }
`,
    );
    const server = await startWeir({ env: { CONFIG_PATH: dir.path } });
    const check = async (...words: string[]): Promise<string> => {
      const address = [
        '--address',
        `127.0.0.1:${server.grpcPort}`,
        '--debug',
        `127.0.0.1:${server.debugPort}`,
      ];
      const { stdout } = await weir('check', ...address, '--json', ...words);
      const { statuses } = JSON.parse(stdout).last;
      return statuses
        .map((one: { code: string; remaining: number }) => `${one.code} ${one.remaining}`)
        .join();
    };
    const both = ['window=a', '+', 'bucket=a'];
    expect(await check('--hits', '0', '--count', '5', ...both)).toBe('OK 2,OK 2');
    expect(await check('--hits', '2', ...both)).toBe('OK 0,OK 0');
    // A window at its limit has not been exceeded yet, as in envoyproxy/ratelimit.
    expect(await check('--hits', '0', '--count', '5', ...both)).toBe('OK 0,OVER_LIMIT 0');
    // Nor does it start requests.
    expect(await check('--hits', '0', '--count', '5', 'oldest=a')).toBe('OK 2');
  });

  test('call a running server', async () => {
    const server = await startWeir();
    const address = `127.0.0.1:${server.grpcPort}`;
    expect(await weir('health', '--address', address)).toMatchObject({ code: 0, stdout: 'SERVING\n' });
    const { code, stdout } = await weir(
      'check',
      '--address',
      address,
      '--count',
      '3',
      'tenant=acme',
      'resource_group=user-chats',
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^OK +3$/m);
    // The bucket gains a token every tenth of a second, and the calls can take that long.
    expect(stdout).toMatch(/x-ratelimit-remaining: 9[789]$/m);
    await server.stop();
    const gone = await weir('health', '--address', address);
    expect([gone.code, gone.stdout]).toEqual([1, '']);
    expect(gone.stderr).toMatch(`weir health: nothing listens on ${address}`);
    const nobody = await weir('check', '--address', address, 'tenant=acme');
    expect(nobody.code).toBe(1);
    expect(nobody.stderr).toMatch(`nothing listens on ${address}`);
  });
});
