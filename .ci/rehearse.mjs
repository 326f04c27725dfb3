// `npm run release -- --rehearse`: everything of a release that needs no forge. It builds the image, publishes it to a
// registry on this machine, signs with a key made for this run, runs the commands of docs/operate/verify.md, and serves
// with the npm package. Then it damages the release in several ways, and each time the same commands must fail.
import { once } from 'node:events';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chartFile, manifest, SUMS, writeSums } from './dist.mjs';
import { writeImage } from './oci-image.mjs';
import { build, install } from './prepare.mjs';
import { ATTESTATIONS, BUNDLE, DIGESTS, publish, step } from './publish.mjs';
import { imageInValues } from './release-texts.mjs';
import { Impossible, must, root, run } from './shell.mjs';
import { stopOnSignals, unlessStopping } from './stop.mjs';
import { provideTools, RELEASE_TOOLS, variableOf } from './tools.mjs';

const PAGE = 'docs/operate/verify.md';
/** cosign neither asks a transparency log nor a certificate authority. Both are on the Internet. */
const KEY_OPTIONS = ['--use-signing-config=false', '--tlog-upload=false'];

/** Returns the commands of the manual after its first block, which says who signs. */
function commandsOfManual() {
  const text = readFileSync(join(root, PAGE), 'utf8');
  const [, ...blocks] = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block);
  return blocks.join('');
}

/** Resolves with a module of test/support, which the build compiles. */
const support = (path) => import(pathToFileURL(join(root, `build/test/support/${path}.js`)).href);

/**
 * Runs `body` behind a proxy, which passes requests on to a registry. If `damage.blob` is a digest, the proxy changes
 * the last byte of its blob. The registry itself refuses to serve a blob that was changed on disk.
 */
async function behindProxy(from, to, damage, body) {
  const server = createHttpServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const isDamaged = damage.blob !== undefined && method === 'GET' && path.endsWith(`/blobs/${damage.blob}`);
    const passed = request({ host: '127.0.0.1', port: to, method, path, headers }, (response) => {
      outgoing.writeHead(response.statusCode, response.headers);
      if (!isDamaged) {
        response.pipe(outgoing);
        return;
      }
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        bytes[bytes.length - 1] ^= 1;
        outgoing.end(bytes);
      });
    });
    passed.once('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  await once(server.listen(from, '127.0.0.1'), 'listening');
  try {
    return await body();
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** A rehearsal in an own folder, with its registry, key and files. */
class Rehearsal {
  constructor(folder, port, tools) {
    this.folder = folder;
    this.registry = `127.0.0.1:${port}`;
    /** What the proxy in front of the registry damages. */
    this.damage = {};
    this.tools = tools;
    this.repository = `${this.registry}/weir`;
    this.charts = `${this.registry}/charts`;
    for (const name of ['bin', 'keys', 'blobs']) mkdirSync(this.at(name));
    // The manual calls the programs by their names. The registry of the rehearsal has no certificate.
    for (const name of RELEASE_TOOLS) {
      const options = name === 'helm' ? '--plain-http' : '';
      const script = `#!/bin/sh\nexec '${tools.env[variableOf(name)]}' "$@" ${options}\n`;
      writeFileSync(this.at('bin', name), script, { mode: 0o755 });
    }
    const PATH = [this.at('bin'), process.env.PATH].join(delimiter);
    this.env = { ...process.env, ...tools.env, PATH, COSIGN_PASSWORD: '' };
    this.dist = this.at('dist');
  }

  at(...names) {
    return join(this.folder, ...names);
  }

  tool(name, ...args) {
    const options = { env: this.env, cwd: this.folder };
    return must(`${name} ${args[0]}`, this.tools.env[variableOf(name)], args, options);
  }

  async newKey(name) {
    await this.tool('cosign', 'generate-key-pair', '--output-key-prefix', this.at('keys', name));
  }

  signer(name = 'signer') {
    return ['--key', this.at('keys', `${name}.key`), ...KEY_OPTIONS];
  }

  sign(command, ...args) {
    return this.tool('cosign', command, '--yes', ...this.signer(), ...args);
  }

  /** Attests everything that a release has, except for `missing`. */
  async attest(ref, missing) {
    for (const [type, predicate] of Object.entries(ATTESTATIONS)) {
      if (type !== missing)
        await this.sign('attest', '--type', type, '--predicate', join(this.dist, predicate), ref);
    }
  }

  /** Builds the image as deploy/Dockerfile says, and pushes it. Resolves with its digest. */
  async buildImage() {
    const dockerfile = await support('image/dockerfile');
    const { buildStages, inside } = await support('image/build-stages');
    const stages = dockerfile.parseDockerfile(readFileSync(join(root, 'deploy/Dockerfile'), 'utf8'));
    await step('run the stages of deploy/Dockerfile', () => buildStages(this.at('stages'), stages));
    const stage = stages.at(-1);
    const [revision, time] = (await must('git log', 'git', ['log', '-1', '--format=%H %ct']))
      .trim()
      .split(' ');
    const layout = this.at('image');
    const digest = await step('assemble the image for amd64 and arm64', () =>
      writeImage({
        layout,
        work: this.at('node'),
        stage,
        files: inside(this.at('stages'), stage, '/'),
        seconds: Number(time),
        labels: { 'org.opencontainers.image.revision': revision },
        dockerfile,
      }),
    );
    await step('push the image by digest', () =>
      this.tool('crane', 'push', '--index', layout, `${this.repository}@${digest}`),
    );
    return digest;
  }

  /**
   * Returns the lines that replace the first block of the manual. The path of the key is relative, because the manual
   * splits SIGNER at spaces.
   */
  firstBlock(key = 'signer') {
    return [`VERSION=${manifest().version}`, `SIGNER="--key ../keys/${key}.pub --insecure-ignore-tlog=true"`];
  }

  /** Runs the commands of the manual in a copy of `dist`. Resolves with {code, output, folder}. */
  async verify(dist = this.dist, key = 'signer') {
    const folder = mkdtempSync(this.at('verify-'));
    cpSync(dist, folder, { recursive: true });
    const script = [
      'set -eEuo pipefail',
      'trap \'echo "failed command: $BASH_COMMAND"\' ERR',
      ...this.firstBlock(key),
      commandsOfManual(),
    ];
    const ended = await run('bash', ['-c', script.join('\n')], { cwd: folder, env: this.env });
    return { ...ended, folder };
  }

  /** Serves with the npm package that the commands of the manual installed in `folder`, and asks once. */
  async serve(folder) {
    const { freePorts } = await support('process/free-port');
    const { startProcess } = await support('process/processes');
    const { untilHealthy } = await support('process/until-healthy');
    const bin = join(folder, 'installed/node_modules/.bin/weir');
    const [grpc, http, debug] = await freePorts(3);
    const env = { GRPC_PORT: grpc, PORT: http, DEBUG_PORT: debug };
    const weir = startProcess(bin, ['serve'], { cwd: folder, env, bareEnvironment: true });
    try {
      await untilHealthy('weir', weir, http);
      const call = ['--address', `127.0.0.1:${grpc}`, '--domain', 'open-api', '--json', 'tenant=acme'];
      await must('weir check', bin, ['check', ...call], { cwd: folder });
    } finally {
      await weir.stop();
    }
  }

  /** Runs weir as in the pulled image, with the image's own Node.js. */
  async runImage(imageRef) {
    const pulled = this.at('pulled');
    mkdirSync(pulled);
    const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
    const archive = this.at('pulled.tar');
    await this.tool('crane', 'export', '--platform', `linux/${architecture}`, imageRef, archive);
    await must('tar', 'tar', ['--extract', '--file', archive, '--directory', pulled]);
    const said = await must('weir --version', join(pulled, 'usr/local/bin/node'), [
      join(pulled, 'weir/build/src/main.js'),
      '--version',
    ]);
    if (!said.includes(manifest().version)) throw new Impossible(`the image contains ${said.trim()}`);
  }

  /** Returns a copy of `dist` that names other digests, and has other files (name → source), signed again. */
  async redirected(changes, files = {}) {
    const dist = mkdtempSync(this.at('dist-'));
    cpSync(this.dist, dist, { recursive: true });
    for (const [name, source] of Object.entries(files)) cpSync(source, join(dist, name));
    let text = readFileSync(join(dist, DIGESTS), 'utf8');
    for (const [from, to] of changes) text = text.replaceAll(from, to);
    writeFileSync(join(dist, DIGESTS), text);
    writeSums(dist);
    await this.sign('sign-blob', '--bundle', join(dist, BUNDLE), join(dist, SUMS));
    return dist;
  }
}

/**
 * Damages of a release, each with the command of the manual that must fail. `damage` resolves with the arguments of
 * {@link Rehearsal.verify}.
 */
const DAMAGES = [
  {
    name: 'a changed byte in a layer of the image',
    refusedBy: 'crane validate',
    async damage(rehearsal, { imageRef }) {
      const manifest = await rehearsal.tool('crane', 'manifest', '--platform', 'linux/arm64', imageRef);
      rehearsal.damage.blob = JSON.parse(manifest).layers.at(-1).digest;
    },
  },
  {
    name: 'an image with a changed byte, under a digest of its own',
    refusedBy: 'cosign verify $SIGNER "$IMAGE"',
    async damage(rehearsal, { imageRef }) {
      const changed = rehearsal.at('changed');
      cpSync(rehearsal.at('image'), changed, { recursive: true });
      appendFileSync(join(changed, 'index.json'), '\n');
      const tag = `${rehearsal.repository}:changed`;
      await rehearsal.tool('crane', 'push', '--index', changed, tag);
      const digest = (await rehearsal.tool('crane', 'digest', tag)).trim();
      return [await rehearsal.redirected([[imageRef, `${rehearsal.repository}@${digest}`]])];
    },
  },
  {
    name: 'the key of somebody else',
    refusedBy: 'cosign verify-blob',
    async damage(rehearsal) {
      await rehearsal.newKey('other');
      return [rehearsal.dist, 'other'];
    },
  },
  {
    name: 'another npm package',
    refusedBy: 'sha256sum',
    async damage(rehearsal) {
      const dist = mkdtempSync(rehearsal.at('dist-'));
      cpSync(rehearsal.dist, dist, { recursive: true });
      appendFileSync(join(dist, `weir-${manifest().version}.tgz`), '\n');
      return [dist];
    },
  },
  {
    name: 'an SBOM without a package',
    refusedBy: 'jq',
    async damage(rehearsal) {
      const bom = JSON.parse(readFileSync(join(rehearsal.dist, ATTESTATIONS.cyclonedx), 'utf8'));
      bom.components.pop();
      const source = rehearsal.at('other-sbom.json');
      writeFileSync(source, JSON.stringify(bom));
      return [await rehearsal.redirected([], { [ATTESTATIONS.cyclonedx]: source })];
    },
  },
  {
    name: 'a chart without a signature',
    refusedBy: 'cosign verify $SIGNER "$CHART"',
    async damage(rehearsal, { chartRef }) {
      const copy = chartRef.replace('/charts/', '/unsigned/');
      await rehearsal.tool('crane', 'copy', chartRef, copy.replace(/@.*/, ':copy'));
      return [await rehearsal.redirected([[chartRef, copy]])];
    },
  },
  ...Object.keys(ATTESTATIONS).map((missing) => ({
    name: `an image without ${missing}`,
    refusedBy: `cosign verify-attestation $SIGNER --type ${missing} "$IMAGE"`,
    async damage(rehearsal, { imageRef }) {
      const copy = imageRef.replace('/weir@', `/without-${missing}@`);
      await rehearsal.tool('crane', 'copy', imageRef, copy.replace(/@.*/, ':copy'));
      await rehearsal.sign('sign', copy);
      await rehearsal.attest(copy, missing);
      return [await rehearsal.redirected([[imageRef, copy]])];
    },
  })),
  {
    name: 'a chart that names another digest',
    refusedBy: 'diff',
    async damage(rehearsal, { imageRef, chartRef }) {
      // One architecture of the image has a valid signature, too.
      const other = (await rehearsal.tool('crane', 'digest', '--platform', 'linux/arm64', imageRef)).trim();
      const folder = rehearsal.at('other-chart');
      mkdirSync(folder);
      const file = join(rehearsal.dist, chartFile(manifest().version));
      await must('tar', 'tar', ['--extract', '--file', file, '--directory', folder]);
      const values = join(folder, 'weir/values.yaml');
      const image = { repository: rehearsal.repository, digest: other };
      writeFileSync(values, imageInValues(readFileSync(values, 'utf8'), image));
      await rehearsal.tool('helm', 'package', join(folder, 'weir'), '--destination', folder);
      const packed = join(folder, `weir-${manifest().version}.tgz`);
      const pushed = await rehearsal.tool(
        'helm',
        'push',
        packed,
        `oci://${rehearsal.charts}`,
        '--plain-http',
      );
      const digest = /^Digest: (\S+)$/m.exec(pushed)?.[1];
      const ref = `${rehearsal.charts}/weir@${digest}`;
      await rehearsal.sign('sign', ref);
      await rehearsal.attest(ref);
      return [await rehearsal.redirected([[chartRef, ref]], { [chartFile(manifest().version)]: packed })];
    },
  },
  {
    name: 'another chart under the version in the registry',
    refusedBy: 'cmp',
    // The damage before this one pushed it.
    async damage() {},
  },
];

async function tryDamages(rehearsal, published) {
  for (const { name, refusedBy, damage } of DAMAGES) {
    await step(`refused: ${name} (by ${refusedBy})`, async () => {
      const { code, output } = await rehearsal.verify(...((await damage(rehearsal, published)) ?? []));
      const failed = /^failed command: (.*)/m.exec(output)?.[1];
      if (code === 0) throw new Impossible(`the commands of ${PAGE} accept ${name}`);
      if (!failed?.startsWith(refusedBy))
        throw new Impossible(`${name}: expected ${refusedBy} to fail, but this failed: ${failed}\n${output}`);
      rehearsal.damage.blob = undefined;
    });
  }
}

/** Prints what a person needs to follow the manual by hand, and waits until a signal ends this process. */
async function keep(rehearsal) {
  const folder = rehearsal.at('release');
  cpSync(rehearsal.dist, folder, { recursive: true });
  const lines = [
    `The release is in ${folder}. Until Ctrl-C, follow ${PAGE} there. Instead of its first block, run:`,
    `  cd "${folder}"`,
    `  PATH="${rehearsal.at('bin')}:$PATH"`,
    ...rehearsal.firstBlock().map((line) => `  ${line}`),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  await new Promise(() => {});
}

/**
 * Rehearses a release of the current tree. With `isKept`, nothing is damaged, and a person can follow the manual.
 * Rejects with {@link Impossible} if a step fails.
 */
export async function rehearse(isKept = false) {
  stopOnSignals();
  const started = performance.now();
  const tools = await step('fetch or build the tools', () => provideTools(RELEASE_TOOLS));
  if (tools.skipped.length > 0) throw new Impossible(tools.skipped.join('\n'));
  await step('install the packages and build', async () => {
    await install();
    await build();
  });
  const { freePorts } = await support('process/free-port');
  const { startProcess } = await support('process/processes');
  const home = mkdtempSync(join(tmpdir(), 'weir-rehearsal-'));
  // Also after a signal.
  process.on('exit', () => rmSync(home, { recursive: true, force: true }));

  const [port, inner] = await freePorts(2);
  const rehearsal = new Rehearsal(home, port, tools);
  const args = ['registry', 'serve', '--address', `127.0.0.1:${inner}`, '--disk', rehearsal.at('blobs')];
  const registry = startProcess(tools.env[variableOf('crane')], args);
  const body = async () => {
    await rehearsal.newKey('signer');
    const digest = await rehearsal.buildImage();
    const image = { repository: rehearsal.repository, digest };
    const { charts, dist, env } = rehearsal;
    const signer = rehearsal.signer();
    const published = await publish({ image, charts, dist, signer, env, helmOptions: ['--plain-http'] });
    const { folder } = await step(`run the commands of ${PAGE}`, async () => {
      const verified = await rehearsal.verify();
      if (verified.code !== 0) throw new Impossible(`${PAGE}: ${verified.output.trim()}`);
      return verified;
    });
    await step('run weir from the pulled image', () => rehearsal.runImage(published.imageRef));
    await step('serve with the installed npm package, and answer a call', () => rehearsal.serve(folder));
    await (isKept ? keep(rehearsal) : tryDamages(rehearsal, published));
    return digest;
  };
  try {
    await registry.waitForLine(/serving on/).catch(({ message }) => {
      throw new Impossible(message);
    });
    const digest = await behindProxy(port, inner, rehearsal.damage, body);
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    process.stdout.write(`rehearsed, not published: ${manifest().version}, image ${digest} (${seconds} s)\n`);
  } finally {
    await unlessStopping();
    await registry.stop();
  }
}
