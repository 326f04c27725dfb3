// Prints the path of the Node.js for `npm start`, `npm test` and other commands. If the running Node.js is older than
// `engines` in package.json, this is Node.js 24, fetched from npm into .tools/. If that version cannot be fetched or
// does not run, the script prints the reason, and the path of the installed Node.js.
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { Impossible, isProgram, main, root, say } from './shell.mjs';

const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** The oldest version that `engines` accepts, such as 22.15. */
const [OLDEST] = /\d+\.\d+/.exec(engines.node);
const HERE = process.versions.node;

function isTooOld() {
  const [major, minor] = HERE.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST.split('.').map(Number);
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

/** Returns the path of the Node.js to use. */
async function chosenNode() {
  if (!isTooOld()) return process.execPath;
  try {
    const { provideTools } = await import('./tools.mjs');
    say(`Node.js ${HERE} is older than ${OLDEST}; continuing with Node.js 24 from npm`);
    return (await provideTools(['node24'])).env.WEIR_TEST_NODE24;
  } catch (error) {
    say(`${error.message}\nweir: continuing with Node.js ${HERE}, although weir is not tested with it`);
    return process.execPath;
  }
}

/** Makes child processes that run `node` use this Node.js. Throws {@link Impossible} if it is older than `engines`. */
export function requireNode() {
  if (isTooOld())
    throw new Impossible(
      `tests need Node.js ${OLDEST} or later, but this is Node.js ${HERE}; install Node.js 24, or run ` +
        '`npm test`, which downloads it',
    );
  const paths = (process.env.PATH ?? '').split(delimiter);
  const named = paths.map((folder) => join(folder, 'node')).find((path) => existsSync(path));
  if (named === undefined || realpathSync(named) !== realpathSync(process.execPath))
    process.env.PATH = [dirname(process.execPath), ...paths].join(delimiter);
}

if (isProgram(import.meta.url)) {
  await main(async () => process.stdout.write(`${await chosenNode()}\n`));
}
