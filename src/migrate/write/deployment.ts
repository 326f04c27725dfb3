import { statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { readConfigFile } from '../../config/files/policy-paths.js';
import { quantity } from '../../quantity.js';
import type { WrittenFile } from '../../written-files.js';
import { plainLines } from '../env-file.js';
import type { Finding } from '../findings.js';
import type { Input } from '../read/input.js';
import type { Installation } from '../read/installation.js';
import { editWorkload, type Target } from './edit-workload.js';
import { needsOverlay, overlayOf } from './overlay.js';

/** Files that `--write` writes, except the README.md with the next steps. */
export interface Deployment {
  readonly files: readonly WrittenFile[];
  /** Findings about files that must be changed by hand. */
  readonly decide: readonly Finding[];
  /** Names of the written files to deploy, by the input that each was derived from. */
  readonly names: ReadonlyMap<Input, string>;
  /** Directory of the written policies; undefined if the policies are in another file or not among the files. */
  readonly policies: string | undefined;
  /** Name of the override file or patch; undefined if a file of the installation was changed instead. */
  readonly overlay: string | undefined;
  /** Whether the variables to add were written to a file. */
  readonly isAdded: boolean;
}

/** Name of the new env file if the user named none. */
export const VARIABLES_FILE = 'weir.env';

/** Default name of the policies' directory. */
const POLICIES = 'policies';

/**
 * Returns the files to deploy: files of the installation with a new image and variables, and unchanged policies.
 * `policies` contains the policy files and their common directory.
 */
export function makeDeployment(
  installation: Installation,
  target: Target,
  policies: { readonly files: readonly string[]; readonly directory: string | undefined },
): Deployment {
  const { inputs, pick } = installation;
  const names = new Map<Input, string>();
  const files: WrittenFile[] = [];
  const decide: Finding[] = [];
  let isAdded = false;
  const text =
    pick === undefined || needsOverlay(pick.workload)
      ? undefined
      : editWorkload(pick.workload, inputs, target);
  const overlay = pick === undefined || text !== undefined ? undefined : overlayOf(pick.workload, target);
  if (pick !== undefined && overlay !== undefined) {
    const note = `${noteOf(target)}; overrides your ${inputs.length === 1 ? 'file' : 'files'}`;
    files.push({ path: overlay.name, content: overlay.text, note });
    isAdded = true;
  }
  for (const input of inputs) {
    // With an overlay, the files of the installation stay unchanged.
    if (overlay !== undefined || !isCopied(input, installation)) continue;
    const name = freeName(basename(input.file), [...names.values()]);
    if (pick?.workload.input === input) {
      if (text === undefined) {
        decide.push(manualEditFinding(input, target));
        continue;
      }
      files.push({ path: name, content: text, mode: modeOf(input.file), note: noteOf(target) });
      isAdded = true;
    } else if (input.format === 'variables') {
      files.push({
        path: name,
        content: withVariables(plainLines(input.text), isAdded ? {} : target.variables),
        mode: modeOf(input.file),
        note: isAdded ? 'copied, with the same variables' : noteOf(target, false),
      });
      isAdded = true;
    } else {
      files.push({ path: name, content: input.text, mode: modeOf(input.file), note: 'copied, unchanged' });
    }
    names.set(input, name);
  }
  if (pick === undefined && !isAdded && Object.keys(target.variables).length > 0) {
    files.push({
      path: VARIABLES_FILE,
      content: withVariables('', target.variables),
      note: noteOf(target, false),
    });
    isAdded = true;
  }
  const place = policyPlace(installation, policies.directory);
  const taken: string[] = [];
  for (const file of policies.files) {
    const { directory } = policies;
    const below = directory === undefined ? freeName(basename(file), taken) : relative(directory, file);
    taken.push(below);
    files.push({
      path: join(place, below),
      content: readConfigFile(file),
      mode: modeOf(file),
      note: 'copied, unchanged',
    });
  }
  const written = policies.files.length > 0 ? place : undefined;
  return { files, decide, names, policies: written, overlay: overlay?.name, isAdded };
}

/** Returns the file mode of the original for the written file, because it may contain a password. */
function modeOf(file: string): number {
  return statSync(file).mode & 0o777;
}

/**
 * Returns whether a file is copied to the deployment. If a workload is known, the variables are added there and env
 * files are not copied.
 */
function isCopied({ format }: Input, { pick }: Installation): boolean {
  if (format === 'policy') return false;
  return format !== 'variables' || pick === undefined;
}

/**
 * Returns the directory for the policies: the path relative to the compose file if the directory is below it, else the
 * default name.
 */
function policyPlace({ pick }: Installation, directory: string | undefined): string {
  if (pick?.workload.input.format !== 'compose' || directory === undefined) return POLICIES;
  const path = relative(resolve(dirname(pick.workload.input.file)), resolve(directory));
  return path === '' || path.startsWith('..') ? POLICIES : path;
}

function freeName(name: string, taken: readonly string[]): string {
  for (let i = 2; ; i++) {
    const free = taken.includes(name) || name === 'README.md' ? `${i}-${name}` : name;
    if (!taken.includes(free)) return free;
  }
}

function withVariables(text: string, variables: Target['variables']): string {
  const added = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  if (added.length === 0) return text;
  const comment = '# Defaults of envoyproxy/ratelimit for unset variables.\n';
  return `${text}${text.endsWith('\n') || text === '' ? '' : '\n'}${comment}${added.join('')}`;
}

function noteOf({ image, variables }: Target, hasImage = true): string {
  const count = Object.keys(variables).length;
  const added = `${quantity(count, 'variable')} added`;
  if (!hasImage) return added;
  return count === 0 ? `image ${image}` : `image ${image}, ${added}`;
}

function manualEditFinding({ file }: Input, { image, variables }: Target): Finding {
  const added = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const also = added.length === 0 ? '' : `, and add ${added.join(', ')}`;
  const text =
    'weir migrate cannot change the image and the variables in this file, because the file specifies them ' +
    'in an unsupported form, such as a YAML alias. In a copy of the file, set the image to ' +
    `${image}${also}.`;
  return { about: file, text };
}
