import { lstatSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readAsset } from '../runtime/assets.js';
import { printableLine, shellWord } from '../runtime/printable.js';
import { isWorkingDirectoryGone } from '../runtime/working-directory.js';
import { readArguments } from './arguments.js';
import { CommandError, EXIT, type Io, usageError } from './io.js';

/** Folder of the templates, which are copied to the user's folder. */
const TEMPLATES = 'deploy/init';

/**
 * Comment that names the schema by a path relative to the template. The path is wrong in the user's folder, so the
 * comment is removed.
 */
const SCHEMA_LINE = /^# yaml-language-server: .*\n/;

/** The files of an option. The compose file is the same for all options. */
interface Kind {
  /** Folder of the templates `envoy.yaml` and `policies`. */
  readonly folder: string;
  readonly policy: string;
  /** Description of the policy in the output of the command. */
  readonly note: string;
  /** Entry of a request in the next steps, and the option of `curl` that makes Envoy create it. */
  readonly entry: string;
  readonly curl: string;
}

const EXAMPLES: Kind = {
  folder: TEMPLATES,
  policy: 'my-api.yaml',
  note: 'a policy with example limits',
  entry: 'user=ann',
  curl: '',
};

/** The kind that each option selects. */
const KINDS = {
  concurrency: {
    folder: `${TEMPLATES}/concurrency`,
    policy: 'concurrency.yaml',
    note: 'a policy that limits concurrent requests',
    entry: 'customer=ann',
    curl: "-H 'x-customer: ann' ",
  },
  llm: {
    folder: `${TEMPLATES}/llm`,
    policy: 'llm.yaml',
    note: 'a policy that reserves tokens for calls of a language model',
    entry: 'tenant=acme',
    curl: "-H 'x-tenant: acme' ",
  },
} as const satisfies Readonly<Record<string, Kind>>;

/** Runs `weir init`: writes a policy, an Envoy configuration and a compose file. Never overwrites files. */
export async function runInit(args: readonly string[], io: Io): Promise<number> {
  const flag = { type: 'boolean' } as const;
  const parsed = readArguments('init', args, { concurrency: flag, llm: flag });
  if (parsed.positionals.length > 1) throw usageError('init', 'specify only one folder');
  const { concurrency = false, llm = false } = parsed.values;
  if (concurrency && llm)
    throw new CommandError(
      EXIT.USAGE,
      '--concurrency and --llm exclude each other; use a separate folder for each',
    );
  const folder = parsed.positionals[0] ?? '.';
  if (folder === '')
    throw new CommandError(
      EXIT.USAGE,
      'the folder name is empty; specify a folder, or omit it to use the current folder',
    );
  const kind = concurrency ? KINDS.concurrency : llm ? KINDS.llm : EXAMPLES;
  const files = filesOf(kind);
  const refused = writeFiles(folder, files);
  if (refused !== undefined) throw new CommandError(EXIT.FAILED, printableLine(refused));
  io.out(`${writtenText(folder, files)}\n${nextSteps(folder, kind)}`);
  return EXIT.OK;
}

function filesOf({ folder, policy, note }: Kind): readonly WrittenFile[] {
  const policyPath = `policies/${policy}`;
  const content = (template: string) => readAsset(template).replace(SCHEMA_LINE, '');
  const envoyNote = 'an Envoy configuration that calls weir, with a placeholder for your service';
  return [
    {
      path: 'docker-compose.yaml',
      content: content(`${TEMPLATES}/docker-compose.yaml`),
      note: 'Envoy, weir and Redis',
    },
    { path: 'envoy.yaml', content: content(`${folder}/envoy.yaml`), note: envoyNote },
    { path: policyPath, content: content(`${folder}/${policyPath}`), note },
  ];
}

function nextSteps(folder: string, { entry, curl }: Kind): string {
  const policies = shellWord(join(folder, 'policies'));
  const steps = [
    [`weir check-config ${policies}`, 'check the policy after a change'],
    [`weir explain ${policies} ${entry}`, `show which rule matches ${entry}`],
    [`CONFIG_PATH=${policies} weir serve`, 'run weir alone, with buckets in memory'],
    [`docker compose -f ${shellWord(join(folder, 'docker-compose.yaml'))} up`, 'run Envoy, weir and Redis'],
    [`curl -i ${curl}http://127.0.0.1:10000/`, 'send a request to Envoy from another terminal'],
  ] as const;
  const width = Math.max(...steps.map(([command]) => command.length));
  return `Next steps\n${steps.map(([command, why]) => `  ${command.padEnd(width)}  ${why}\n`).join('')}`;
}

interface WrittenFile {
  /** Path relative to the target directory. */
  readonly path: string;
  readonly content: string;
  /** Description for people: `a policy with example limits`. */
  readonly note: string;
}

/** Writes new files below a directory, all or none. Returns an error message if a file exists. */
export function writeFiles(directory: string, files: readonly WrittenFile[]): string | undefined {
  const existing = files.filter(({ path }) => exists(join(directory, path))).map(({ path }) => path);
  if (existing.length > 0) {
    return (
      `no files were written, because "${directory}" already contains ${existing.join(', ')}; choose another ` +
      'folder'
    );
  }
  try {
    for (const { path, content } of files) {
      makeDirectory(dirname(resolve(directory, path)));
      writeFileSync(join(directory, path), content, { flag: 'wx' });
    }
    return undefined;
  } catch (error) {
    if (isWorkingDirectoryGone(error)) throw error;
    return `the files cannot be written: ${(error as Error).message}`;
  }
}

/**
 * Creates a directory and those above it, unless they exist. Does not use `recursive`, because it never returns for a
 * path where no directory can be created, as in /proc.
 */
function makeDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  if (dirname(path) !== path) makeDirectory(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have created it meanwhile.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

/** Returns whether a file, or a broken link, exists. Returns false if the parent is not a directory. */
function exists(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function writtenText(directory: string, files: readonly WrittenFile[]): string {
  const width = Math.max(...files.map(({ path }) => path.length));
  const lines = files.map(({ path, note }) => `  ${path.padEnd(width)}  ${note}\n`);
  return `Written to ${directory}\n${lines.join('')}`;
}
