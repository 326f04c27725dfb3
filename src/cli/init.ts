import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { assetPath, readAsset } from '../assets.js';
import { shellWord } from '../config/show/shell-text.js';
import { printableLine } from '../printable.js';
import { type WrittenFile, writeFiles, writtenText } from '../written-files.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io } from './io.js';

/** Folder of the templates, which are copied to the user's folder. */
const TEMPLATES = 'deploy/init';

/**
 * Comment that names the schema by a path relative to the template. The path is wrong in the user's folder, so the
 * comment is removed.
 */
const SCHEMA_LINE = /^# yaml-language-server: .*\n/;

/** Description of each file in the output of the command. */
const NOTES: Readonly<Record<string, string>> = {
  'policies/my-api.yaml': 'a policy with example limits',
  'envoy.yaml': 'an Envoy configuration that calls weir, with a placeholder for your service',
  'docker-compose.yaml': 'Envoy, weir and Redis',
};

/** Runs `weir init`: writes a policy, an Envoy configuration and a compose file. Never overwrites files. */
export async function runInit(args: readonly string[], io: Io): Promise<number> {
  const parsed = readArguments('init', args, {});
  if (typeof parsed === 'string' || parsed.positionals.length > 1) {
    io.err(
      typeof parsed === 'string' ? parsed : 'weir init: specify only one folder; see weir init --help\n',
    );
    return EXIT.USAGE;
  }
  const folder = parsed.positionals[0] ?? '.';
  if (folder === '') {
    io.err('weir init: the folder name is empty; specify a folder, or omit it to use the current folder\n');
    return EXIT.USAGE;
  }
  const files = templates();
  const refused = writeFiles(folder, files, 'choose another folder');
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
    [`weir check-config ${policies}`, 'check the policy after a change'],
    [`weir explain ${policies} user=ann`, 'show which rule matches user=ann'],
    [`CONFIG_PATH=${policies} weir serve`, 'run weir alone, with buckets in memory'],
    [`docker compose -f ${shellWord(join(folder, 'docker-compose.yaml'))} up`, 'run Envoy, weir and Redis'],
    ['curl -i http://127.0.0.1:10000/', 'send a request to Envoy from another terminal'],
  ] as const;
  const width = Math.max(...steps.map(([command]) => command.length));
  return `Next steps\n${steps.map(([command, why]) => `  ${command.padEnd(width)}  ${why}\n`).join('')}`;
}
