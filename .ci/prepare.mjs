// Prepares a checkout: installs the packages in package-lock.json, and compiles the sources into build/. Has no effect
// and no output if both are up to date. `npm start` and `npm test` run it first. Arguments name additional tools to
// fetch (tools.mjs). With --serving, it installs and builds only what a server needs if nothing is installed, which
// takes a third of the time; other commands install the rest later. With --packages, it installs all packages without
// building.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alone, filesBelow, Impossible, isProgram, main, must, root, run, say } from './shell.mjs';

const LOCK = join(root, 'package-lock.json');
const INSTALLED = join(root, 'node_modules/.package-lock.json');
const MODULES = join(root, 'node_modules');
const STAMP = join(root, 'build/.sources');
/** Prefix of the digest in {@link STAMP} if build/ contains only what a server needs. */
export const SERVING = 'serving ';
/** The packages that build src/. */
const BUILDERS = ['esbuild', 'typescript'];
/** npm must accept a Node.js that `engines` excludes, because weir runs on it if no other is available. */
const QUIET = ['--no-audit', '--no-fund', '--engine-strict=false', '--loglevel=error'];
/** Interval between messages that npm is still running. */
const SAY_EVERY_MS = 5000;
const npm = (args, cwd = root) => run('npm', args, { cwd, interruptible: true });

/** Returns a digest of all files that build/ is made from. */
export function sourceDigest() {
  const hash = createHash('sha256');
  const add = (path) =>
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0');
  for (const path of ['package.json', 'tsconfig.json', '.ci/build.mjs', '.ci/descriptors.mjs']) add(path);
  // Images are built without test/.
  for (const folder of ['src', 'test', 'deploy', '.ci/docs', 'proto'].filter((name) =>
    existsSync(join(root, name)),
  )) {
    const isSource = (path) => /\.(tsx?|lua|proto|yaml|css|html)$|(^|\/)tsconfig\.json$/.test(path);
    for (const path of [...filesBelow(folder)].filter(isSource).sort()) add(path);
  }
  return hash.digest('hex');
}

/** Returns the part of the lock file for a server: its packages, and the packages that build it. */
function servingLock() {
  const lock = JSON.parse(readFileSync(LOCK, 'utf8'));
  const { dependencies, devDependencies, ...top } = lock.packages[''];
  const builders = Object.fromEntries(BUILDERS.map((name) => [name, devDependencies[name]]));
  const ofBuilders = BUILDERS.flatMap((name) => [
    name,
    ...Object.keys(lock.packages[`node_modules/${name}`].optionalDependencies),
  ]);
  const kept = Object.entries(lock.packages).flatMap(([path, { dev, ...entry }]) =>
    path !== '' && (dev !== true || ofBuilders.includes(path.slice('node_modules/'.length)))
      ? [[path, entry]]
      : [],
  );
  const manifest = { ...top, dependencies: { ...dependencies, ...builders } };
  return { ...lock, packages: { '': manifest, ...Object.fromEntries(kept) } };
}

/** Returns whether node_modules contains the versions in `lock`. Packages for other platforms may be missing. */
function isInstalled(lock = JSON.parse(readFileSync(LOCK, 'utf8'))) {
  if (!existsSync(INSTALLED)) return false;
  const wanted = lock.packages;
  const present = JSON.parse(readFileSync(INSTALLED, 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, { version, optional }]) => path === '' || optional === true || present[path]?.version === version,
  );
}

/**
 * Installs the packages in the lock file. If a registry does not support `npm ci`, it may support `npm install`, which
 * installs the same versions, checks the same checksums, and does not change the lock file. Fails if a package differs
 * from the lock file.
 */
export async function install() {
  if (isInstalled()) return;
  await alone(async () => {
    if (!isInstalled()) await installAll();
  });
}

async function installAll() {
  // NODE_ENV or npm settings may exclude these packages, but the build needs them.
  const args = ['--include=dev', '--include=optional', ...QUIET];
  await saying(
    'installing npm packages (node_modules is missing or does not match package-lock.json)',
    async () => {
      if ((await npm(['ci', ...args])).code === 0) return;
      await must('installing the npm packages', 'npm', ['install', '--no-save', ...args], {
        interruptible: true,
      });
      if (!isInstalled())
        throw new Impossible('npm did not install the versions in package-lock.json; run `npm ci`');
    },
  );
}

/** Prints that `what` is running, and repeats the message at intervals until `body` ends. */
async function saying(what, body) {
  say(what);
  const started = Date.now();
  const tell = () => say(`still installing (${Math.round((Date.now() - started) / 1000)} s)`);
  const timer = setInterval(tell, SAY_EVERY_MS);
  try {
    return await body();
  } finally {
    clearInterval(timer);
  }
}

/**
 * If nothing is installed, installs what a server needs, exactly as in the lock file. Resolves with false if an
 * incomplete installation exists, or if npm fails.
 */
async function installForServing() {
  const lock = servingLock();
  if (isInstalled(lock)) return true;
  return alone(async () => {
    if (isInstalled(lock)) return true;
    return !existsSync(MODULES) && (await installOnly(lock));
  });
}

async function installOnly(lock) {
  // build/ is removed and created again later.
  const folder = join(root, 'build/serving');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
  writeFileSync(join(folder, 'package.json'), JSON.stringify(lock.packages['']));
  const count = Object.values(lock.packages).filter(({ optional }) => optional !== true).length - 1;
  const what = `first start: installing the ${count} npm packages that the server needs`;
  const args = ['ci', '--include=optional', ...QUIET];
  if ((await saying(what, () => npm(args, folder))).code !== 0) return false;
  renameSync(join(folder, 'node_modules'), MODULES);
  return isInstalled(lock);
}

/** Compiles if the sources have changed since build/ was made. With --serving, compiles only what a server needs. */
export async function build(...args) {
  const isBuilt = () => {
    const stamp = existsSync(STAMP) ? readFileSync(STAMP, 'utf8') : '';
    const made =
      args.includes('--serving') && stamp.startsWith(SERVING) ? stamp.slice(SERVING.length) : stamp;
    return made === sourceDigest();
  };
  if (isBuilt()) return;
  await alone(async () => {
    if (isBuilt()) return;
    say('building');
    await must('the build', process.execPath, ['.ci/build.mjs', ...args], { show: true });
  });
}

if (isProgram(import.meta.url)) {
  await main(async () => {
    if (Number(process.versions.node.split('.')[0]) < 20) {
      throw new Impossible(`weir needs Node.js 20 or later, but this is Node.js ${process.versions.node}`);
    }
    const [first, ...others] = process.argv.slice(2);
    const serving = first === '--serving' && !isInstalled() && (await installForServing());
    if (!serving) await install();
    if (first === '--packages') return;
    await build(...(serving ? [first] : []));
    const tools = first === undefined || first === '--serving' ? others : [first, ...others];
    if (tools.length > 0) await (await import('./tools.mjs')).provideTools(tools);
  });
}
