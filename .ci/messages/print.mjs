// `npm run messages` prints every text that weir shows to people, one line each, with file and line. With a folder, it
// prints the texts of that folder. `npm run messages -- --rename FILE` replaces texts. FILE contains lines
// `old text<TAB>new text` in the format of the printed list. `--root FOLDER` reads another checkout.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root as here } from '../shell.mjs';
import { readTable, rename } from './rename.mjs';
import { isForPeople, sourceTexts } from './sources.mjs';

const { values, positionals } = parseArgs({
  options: { rename: { type: 'string' }, root: { type: 'string', default: here } },
  allowPositionals: true,
});
const { root } = values;

/** Formats files with the settings of the checkout. */
function format(paths) {
  const biome = join(here, 'node_modules/@biomejs/biome/bin/biome');
  if (paths.length === 0) return;
  execFileSync(process.execPath, [biome, 'format', '--write', ...paths], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

if (values.rename === undefined) {
  const lines = sourceTexts(root, positionals)
    .filter(isForPeople)
    .map(({ path, line, shown }) => `${path}:${line}: ${shown}\n`);
  process.stdout.write(lines.join(''));
} else {
  const { places, files, complaints } = rename(root, readTable(readFileSync(values.rename, 'utf8')), format);
  for (const complaint of complaints) console.log(complaint);
  console.log(`replaced ${places} texts in ${files} files; ${complaints.length} to check by hand`);
}
