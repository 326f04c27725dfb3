import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { assetPath, readAsset } from '../assets.js';
import { shellWord } from '../config/show/shell-text.js';
import { printableLine } from '../printable.js';
import { type WrittenFile, writeFiles, writtenText } from '../written-files.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io } from './io.js';

/** What is written lies there as it is. */
const TEMPLATES = 'deploy/init';

/** Names the schema by where the template lies. */
const SCHEMA_LINE = /^# yaml-language-server: .*\n/;

/** What is said of each file. */
const NOTES: Readonly<Record<string, string>> = {
  'policies/my-api.yaml': 'a policy: who may ask how often',
  'envoy.yaml': 'Envoy that asks weir, with a placeholder for your service',
  'docker-compose.yaml': 'Envoy, weir and Redis',
};

/** `weir init`: a policy, an Envoy configuration and a compose file to begin with; never writes over files. */
export async function runInit(args: readonly string[], io: Io): Promise<number> {
  const parsed = readArguments('init', args, {});
  if (typeof parsed === 'string' || parsed.positionals.length > 1) {
    io.err(typeof parsed === 'string' ? parsed : 'weir init: name one folder; see weir init --help\n');
    return EXIT.USAGE;
  }
  const folder = parsed.positionals[0] ?? '.';
  if (folder === '') {
    io.err('weir init: the name of the folder is empty; write one, or none at all for this folder\n');
    return EXIT.USAGE;
  }
  const files = templates();
  const refused = writeFiles(folder, files, 'name another folder');
  if (refused !== undefined) {
    io.err(`weir init: ${printableLine(refused)}\n`);
    return EXIT.FAILED;
  }
  io.out(`${writtenText(folder, files)}\n${nextSteps(folder)}`);
  return EXIT.OK;
}

function templates(): readonly WrittenFile[] {
  const entries = readdirSync(assetPath(TEMPLATES), { recursive: true, encoding: 'utf8' });
  return entries
    .filter((path) => path.endsWith('.yaml'))
    .sort()
    .map((path) => ({
      path,
      content: readAsset(join(TEMPLATES, path)).replace(SCHEMA_LINE, ''),
      note: NOTES[path] ?? 'an example',
    }));
}

function nextSteps(folder: string): string {
  const policies = shellWord(join(folder, 'policies'));
  const steps = [
    [`weir check-config ${policies}`, 'find mistakes after a change'],
    [`weir explain ${policies} user=ann`, 'which rule a request of ann meets'],
    [`CONFIG_PATH=${policies} weir serve`, 'weir alone, with buckets in memory'],
    [
      `docker compose -f ${shellWord(join(folder, 'docker-compose.yaml'))} up`,
      'all three, with the image of weir',
    ],
    ['curl -i http://127.0.0.1:10000/', 'ask Envoy then'],
  ] as const;
  const width = Math.max(...steps.map(([command]) => command.length));
  return `What to do next\n${steps.map(([command, why]) => `  ${command.padEnd(width)}  ${why}\n`).join('')}`;
}
