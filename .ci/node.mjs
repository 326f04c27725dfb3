// Prints the path of the Node.js that `npm start`, `npm test` and the other commands go on with. Where the Node.js that
// runs this is older than `engines` of package.json, that is Node.js 24, fetched from npm into .tools/. If Node.js 24
// cannot be fetched or does not run here, this says why and prints the path of the Node.js that is installed.
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

/** Path of the Node.js to go on with. */
async function chosenNode() {
  if (!isTooOld()) return process.execPath;
  try {
    const { provideTools } = await import('./tools.mjs');
    say(`Node.js ${HERE} is older than ${OLDEST}: going on with Node.js 24 from npm`);
    return (await provideTools(['node24'])).env.WEIR_TEST_NODE24;
  } catch (error) {
    say(`${error.message}\nweir: going on with Node.js ${HERE}, with which weir is not tested`);
    return process.execPath;
  }
}

/**
 * Makes this Node.js that of every process started from here by name. Throws {@link Impossible} where this Node.js is
 * older than `engines`.
 */
export function requireNode() {
  if (isTooOld())
    throw new Impossible(
      `tests need Node.js ${OLDEST} or later, and this is ${HERE}: install Node.js 24, or let \`npm test\` fetch it`,
    );
  const paths = (process.env.PATH ?? '').split(delimiter);
  const named = paths.map((folder) => join(folder, 'node')).find((path) => existsSync(path));
  if (named === undefined || realpathSync(named) !== realpathSync(process.execPath))
    process.env.PATH = [dirname(process.execPath), ...paths].join(delimiter);
}

if (isProgram(import.meta.url)) {
  await main(async () => process.stdout.write(`${await chosenNode()}\n`));
}
