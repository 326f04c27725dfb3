// `npm run messages` prints or replaces the texts that weir shows to people; see HELP below.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root as here } from '../shell.mjs';
import { readTable, rename } from './rename.mjs';
import { isForPeople, sourceTexts } from './sources.mjs';

const HELP = `Usage: npm run messages -- [options] [folder…]

Prints every text that weir shows to people, one line each, with file and line. With folders, it prints only their
texts.

  --rename <file>  replace texts, and their quotes in tests and pages. Each line of the file is
                   old text<TAB>new text, as printed
  --root <folder>  use another checkout
`;

const { values, positionals } = parseArgs({
  options: {
    help: { type: 'boolean', short: 'h' },
    rename: { type: 'string' },
    root: { type: 'string', default: here },
  },
  allowPositionals: true,
});
const { root } = values;

const quantity = (count, one) => `${count} ${one}${count === 1 ? '' : 's'}`;

/** Formats files with the settings of the checkout. */
function format(paths) {
  const biome = join(here, 'node_modules/@biomejs/biome/bin/biome');
  if (paths.length === 0) return;
  execFileSync(process.execPath, [biome, 'format', '--write', ...paths], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

if (values.help === true) {
  process.stdout.write(HELP);
} else if (values.rename === undefined) {
  const lines = sourceTexts(root, positionals)
    .filter(isForPeople)
    .map(({ path, line, shown }) => `${path}:${line}: ${shown}\n`);
  process.stdout.write(lines.join(''));
} else {
  const { places, files, complaints } = rename(root, readTable(readFileSync(values.rename, 'utf8')), format);
  for (const complaint of complaints) console.log(complaint);
  const counts = [quantity(places, 'text'), quantity(files, 'file')];
  console.log(`replaced ${counts.join(' in ')}; problems to check by hand: ${complaints.length}`);
}
