// Fetches Node.js from an npm package, pinned by version and checksum.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { Impossible, must } from './shell.mjs';

const NPM = ['--no-audit', '--no-fund', '--ignore-scripts', '--engine-strict=false', '--loglevel=error'];
/** Without a network, `npm start` must not wait long. */
const RETRIES = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000'];

/**
 * Installs the Node.js of a machine (`linux-arm64`) into an empty `folder`, with this version and checksum. The machine
 * may be another one than this. Resolves with the path of the program.
 */
export async function fetchNode(folder, machine, [version, integrity]) {
  const name = `node-${machine}`;
  const [os, cpu] = machine.split('-');
  const top = { name: 'node-of-npm', version, dependencies: { [name]: version } };
  const packages = { '': top, [`node_modules/${name}`]: { version, integrity } };
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify(top));
  // With a lock file, npm rejects a package with another checksum.
  const lock = { ...top, lockfileVersion: 3, requires: true, packages };
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
  const args = ['ci', `--os=${os}`, `--cpu=${cpu}`, ...NPM, ...RETRIES];
  await must(`npm ci for ${name}@${version}`, 'npm', args, { cwd: folder });
  return join(folder, 'node_modules', name, 'bin/node');
}

/**
 * Returns a tool for tools.mjs: the Node.js in an npm package, with the version and checksum in `pins` for this machine
 * (`linux-x64: [version, integrity]`).
 */
export function nodeOfNpm(pins, about) {
  const machine = `${platform()}-${arch()}`;
  const pin = pins[machine];
  const fetch = (folder) => {
    if (pin === undefined) throw new Impossible(`no version for ${machine} is pinned`);
    if (platform() === 'linux' && process.report.getReport().header.glibcVersionRuntime === undefined)
      throw new Impossible('the Node.js packages on npm need glibc, which this system does not have');
    return fetchNode(folder, machine, pin);
  };
  return { pin: pin?.[0] ?? about.what, fetch, ...about };
}
