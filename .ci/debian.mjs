// Installs a program from Debian packages without root: downloads the packages, unpacks them into a folder, and adds
// shared libraries that the system lacks.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Impossible, must, root, run } from './shell.mjs';

const APT = join(root, '.tools/apt');
const UNSANDBOXED = ['-o', 'APT::Sandbox::User=root']; // apt's own user may not write into the checkout

/** Own package lists. Updating the system's lists would need root. */
const OWN_LISTS = ['-o', `Dir::State::lists=${APT}/lists`, '-o', `Dir::Cache=${APT}/cache`];
let updating;

function updateOwnLists() {
  updating ??= (async () => {
    mkdirSync(`${APT}/lists/partial`, { recursive: true });
    mkdirSync(`${APT}/cache/archives/partial`, { recursive: true });
    await must('apt-get update', 'apt-get', ['-qq', ...UNSANDBOXED, ...OWN_LISTS, 'update']);
  })();
  return updating;
}

async function download(folder, packages) {
  const names = packages.join(' ');
  if ((await run('apt-get', ['-qq', ...UNSANDBOXED, 'download', ...packages], { cwd: folder })).code === 0)
    return;
  await updateOwnLists();
  await must(
    `apt-get download ${names}`,
    'apt-get',
    ['-qq', ...UNSANDBOXED, ...OWN_LISTS, 'download', ...packages],
    {
      cwd: folder,
    },
  );
}

/** Returns the names of the packages that a .deb depends on; first alternatives only. */
async function dependenciesOf(deb) {
  const field = await must('dpkg-deb', 'dpkg-deb', ['-f', deb, 'Depends', 'Pre-Depends']);
  return field
    .replaceAll(/^\S+:/gm, '')
    .split(/[,\n]/)
    .map((part) => part.split(/[(|]/)[0].trim())
    .filter((name) => name !== '');
}

// A placeholder of dpkg, not of JavaScript.
const FIELD = ['$', '{db:Status-Status}'].join('');
const nameOf = (deb) => deb.split('_')[0];

/** Returns the folder below `tree` that contains a library, or undefined. */
function folderOf(tree, library) {
  const found = readdirSync(tree, { recursive: true, withFileTypes: true }).find(
    ({ name }) => name === library,
  );
  return found?.parentPath;
}

/**
 * Unpacks the packages into `folder`. Resolves with a shell command that runs `program` (a path inside the packages)
 * with its libraries.
 */
export async function fetchDebianProgram(folder, packages, program) {
  rmSync(folder, { recursive: true, force: true });
  const debs = join(folder, 'debs');
  const tree = join(folder, 'root');
  mkdirSync(debs, { recursive: true });
  const unpacked = new Set();
  const libraries = () =>
    ['usr/lib', 'lib'].flatMap((base) => {
      const top = join(tree, base);
      if (!existsSync(top)) return [];
      return [
        top,
        ...readdirSync(top)
          .filter((name) => name.endsWith('-linux-gnu'))
          .map((name) => join(top, name)),
      ];
    });
  // Folders for private libraries of packages, such as PulseAudio.
  const aside = new Set();
  let wanted = packages;
  for (let round = 0; round < 5; round += 1) {
    await download(debs, wanted);
    const fresh = readdirSync(debs).filter((deb) => deb.endsWith('.deb') && !unpacked.has(nameOf(deb)));
    for (const deb of fresh) {
      await must(`unpacking ${deb}`, 'dpkg-deb', ['-x', join(debs, deb), tree]);
      unpacked.add(nameOf(deb));
    }
    const lookUp = async () => {
      const env = { ...process.env, LD_LIBRARY_PATH: [...libraries(), ...aside].join(':') };
      const lines = (await must('ldd', 'ldd', [join(tree, program)], { env })).split('\n');
      return { env, lacking: lines.filter((line) => line.includes('not found')) };
    };
    const before = aside.size;
    let { env, lacking } = await lookUp();
    for (const line of lacking) {
      const folder = folderOf(tree, line.trim().split(/\s/)[0]);
      if (folder !== undefined) aside.add(folder);
    }
    if (aside.size > before) ({ env, lacking } = await lookUp());
    if (lacking.length === 0) {
      rmSync(debs, { recursive: true });
      return `env LD_LIBRARY_PATH='${env.LD_LIBRARY_PATH}' '${join(tree, program)}'`;
    }
    // A dependency of an unpacked package contains the library: fetch the dependencies that the system does not have.
    const dependencies = (await Promise.all(fresh.map((deb) => dependenciesOf(join(debs, deb))))).flat();
    const needed = [...new Set(dependencies)].filter((name) => !unpacked.has(name));
    const present = await Promise.all(
      needed.map(
        async (name) => (await run('dpkg-query', ['-W', '-f', FIELD, name])).output.trim() === 'installed',
      ),
    );
    wanted = needed.filter((_, index) => !present[index]);
    if (wanted.length === 0)
      throw new Impossible(
        `shared libraries for ${program} are missing: ${lacking.map((line) => line.trim()).join(', ')}`,
      );
  }
  throw new Impossible(`the package dependencies of ${program} are nested too deeply`);
}
