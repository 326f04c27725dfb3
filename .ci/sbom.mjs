// Writes the software bill of materials (CycloneDX): weir and the production packages in package-lock.json. Usage:
// `node .ci/sbom.mjs <file>`.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Impossible, isProgram, main, root } from './shell.mjs';

const read = (name) => JSON.parse(readFileSync(join(root, name), 'utf8'));

/**
 * Returns package.json and package-lock.json without development packages. `npm sbom --omit=dev` is not correct: it
 * also omits production packages that a development package depends on.
 */
function forProduction() {
  const { devDependencies: _, scripts: __, ...manifest } = read('package.json');
  const lock = read('package-lock.json');
  const packages = Object.entries(lock.packages).filter(([, { dev }]) => dev !== true);
  lock.packages = Object.fromEntries(packages);
  delete lock.packages[''].devDependencies;
  return { manifest, lock };
}

/** Writes the bill to `file`. Throws {@link Impossible} if npm cannot create it. */
export function writeSbom(file) {
  const { manifest, lock } = forProduction();
  const temporary = mkdtempSync(join(tmpdir(), 'weir-sbom-'));
  const folder = join(temporary, manifest.name); // npm calls what it describes as its folder is called
  try {
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
    const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
    const options = { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] };
    const bill = JSON.parse(execFileSync('npm', args, options));
    // Random, and the time: without them, the same commit gives the same image.
    delete bill.serialNumber;
    delete bill.metadata.timestamp;
    writeFileSync(file, `${JSON.stringify(bill, undefined, 2)}\n`);
  } catch (error) {
    throw new Impossible(`npm sbom failed: ${(error.stderr || error.message).trim()}`);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

if (isProgram(import.meta.url)) {
  await main(async () => {
    const [file] = process.argv.slice(2);
    if (file === undefined) throw new Impossible('usage: node .ci/sbom.mjs <file to write>');
    writeSbom(resolve(file));
  });
}
