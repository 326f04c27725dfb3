// Assembles deploy/Dockerfile into an OCI image for several architectures without a container engine: a layout that
// `crane push --index` reads. Instead of the base image, which only a container registry has, its lowest layer is the
// Node.js of the npm package. The same files always give the same digest.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { fetchNode } from './node-package.mjs';
import { NODE24 } from './tools.mjs';

const TYPES = 'application/vnd.oci.image';
/** OCI's name of an architecture → npm's. */
const ARCHITECTURES = { amd64: 'x64', arm64: 'arm64' };
const MAX_LAYER_BYTES = 1024 * 1024 * 1024;

const sha256 = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Returns the files of a folder as a tar whose bytes depend only on their names, modes and content. */
function tar(folder, seconds) {
  const same = ['--sort=name', '--format=ustar', `--mtime=@${seconds}`, '--owner=0', '--group=0'];
  // The modes of a checkout depend on the umask.
  const modes = ['--numeric-owner', '--mode=u=rwX,go=rX'];
  const args = ['--create', ...same, ...modes, '--directory', folder, '.'];
  return execFileSync('tar', args, { maxBuffer: MAX_LAYER_BYTES, encoding: 'buffer' });
}

/** Writes a blob into a layout. Returns its descriptor. */
function blob(layout, mediaType, bytes) {
  const digest = sha256(bytes);
  writeFileSync(join(layout, 'blobs/sha256', digest.slice('sha256:'.length)), bytes);
  return { mediaType, digest, size: bytes.length };
}

const json = (value) => Buffer.from(JSON.stringify(value));

function layer(layout, folder, seconds) {
  const bytes = tar(folder, seconds);
  return {
    diffId: sha256(bytes),
    descriptor: blob(layout, `${TYPES}.layer.v1.tar+gzip`, gzipSync(bytes, { level: 1 })),
  };
}

/** Returns the `config` of an image from the instructions of its last stage. */
function configOf(stage, { commandOf, environmentOf, labelsOf }, labels) {
  const rest = (name) => stage.instructions.find((one) => one.name === name)?.rest;
  const seconds = (option) => Number(new RegExp(`--${option}=(\\d+)s`).exec(rest('HEALTHCHECK'))?.[1]) * 1e9;
  const variables = {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...environmentOf(stage),
  };
  return {
    User: rest('USER'),
    ExposedPorts: Object.fromEntries(
      rest('EXPOSE')
        .split(/\s+/)
        .map((port) => [`${port}/tcp`, {}]),
    ),
    Env: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    Entrypoint: commandOf(stage, 'ENTRYPOINT'),
    Cmd: commandOf(stage, 'CMD'),
    WorkingDir: rest('WORKDIR'),
    Labels: { ...labelsOf(stage), ...labels },
    Healthcheck: {
      Test: ['CMD', ...commandOf(stage, 'HEALTHCHECK')],
      Interval: seconds('interval'),
      Timeout: seconds('timeout'),
      StartPeriod: seconds('start-period'),
    },
  };
}

/**
 * Writes an OCI layout of the image into the folder `layout`. `stage` is the last stage of the Dockerfile, and `files`
 * the folder with its files. `seconds` is the time of all files (Unix). `work` keeps Node.js. `dockerfile` is the
 * module that reads Dockerfiles. Resolves with the digest of the index.
 */
export async function writeImage({ layout, work, stage, files, seconds, labels, dockerfile }) {
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
  const own = layer(layout, files, seconds);
  const config = configOf(stage, dockerfile, labels);
  const created = new Date(seconds * 1000).toISOString();
  const manifests = [];
  for (const [architecture, name] of Object.entries(ARCHITECTURES)) {
    const machine = `linux-${name}`;
    const base = join(work, machine, 'root');
    if (!existsSync(base)) {
      const node = await fetchNode(join(work, machine), machine, NODE24[machine]);
      mkdirSync(join(base, 'usr/local/bin'), { recursive: true });
      cpSync(node, join(base, 'usr/local/bin/node'));
    }
    const layers = [layer(layout, base, seconds), own];
    const image = {
      created,
      architecture,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    };
    const manifest = {
      schemaVersion: 2,
      mediaType: `${TYPES}.manifest.v1+json`,
      config: blob(layout, `${TYPES}.config.v1+json`, json(image)),
      layers: layers.map(({ descriptor }) => descriptor),
    };
    const descriptor = blob(layout, manifest.mediaType, json(manifest));
    manifests.push({ ...descriptor, platform: { architecture, os: 'linux' } });
  }
  const index = { schemaVersion: 2, mediaType: `${TYPES}.index.v1+json`, manifests };
  writeFileSync(join(layout, 'index.json'), json(index));
  writeFileSync(join(layout, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
  return sha256(readFileSync(join(layout, 'index.json')));
}
