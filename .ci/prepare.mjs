// Brings a checkout to where it can run: packages installed as package-lock.json says, build/ made from the sources as
// they are. Does nothing, and says nothing, when both are so already. `npm start` and `npm test` begin here. Arguments
// name tools to fetch as well (tools.mjs).
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Impossible, main, must, root, say } from './shell.mjs';

const LOCK = join(root, 'package-lock.json');
const INSTALLED = join(root, 'node_modules/.package-lock.json');
const STAMP = join(root, 'build/.sources');

/** Files below `folder`. Links are not followed, as readdir's own recursion does in Node.js 24 and does not in 20. */
function* filesBelow(folder) {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path);
    else if (entry.isFile()) yield path;
  }
}

/** Digest of every file that build/ is made from. */
export function sourceDigest() {
  const hash = createHash('sha256');
  const add = (path) =>
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0');
  for (const path of ['package.json', 'tsconfig.json', '.ci/build.mjs', '.ci/descriptors.mjs']) add(path);
  // An image is built without test/.
  for (const folder of ['src', 'test', 'deploy', 'proto'].filter((name) => existsSync(join(root, name)))) {
    const isSource = (path) => /\.(ts|lua|proto|yaml|css|html)$|(^|\/)tsconfig\.json$/.test(path);
    for (const path of [...filesBelow(folder)].filter(isSource).sort()) add(path);
  }
  return hash.digest('hex');
}

/** Whether node_modules holds the versions of the lock file. Packages for other platforms may be absent. */
function isInstalled() {
  if (!existsSync(INSTALLED)) return false;
  const wanted = JSON.parse(readFileSync(LOCK, 'utf8')).packages;
  const present = JSON.parse(readFileSync(INSTALLED, 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, { version, optional }]) => path === '' || optional === true || present[path]?.version === version,
  );
}

/** Installs what the lock file names. Fails where a package differs from it in version or checksum. */
export async function install() {
  if (isInstalled()) return;
  say('installing npm packages (node_modules is missing or not what package-lock.json says)');
  await must('installing the npm packages', 'npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
}

/** Compiles if the sources are not those that build/ was made from. */
export async function build() {
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === sourceDigest()) return;
  say('building');
  await must('the build', process.execPath, ['.ci/build.mjs'], { show: true });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(async () => {
    if (Number(process.versions.node.split('.')[0]) < 20) {
      throw new Impossible(`Node.js 20 or later is needed, this is ${process.versions.node}`);
    }
    await install();
    await build();
    const tools = process.argv.slice(2);
    if (tools.length > 0) await (await import('./tools.mjs')).provideTools(tools);
  });
}
