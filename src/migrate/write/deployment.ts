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

/** What `--write` puts out, apart from the page that says what to do next. */
export interface Deployment {
  readonly files: readonly WrittenFile[];
  /** Files that could not be changed, and what to change in them by hand. */
  readonly decide: readonly Finding[];
  /** Names of the written files that are deployed, by the name of what they were made of. */
  readonly names: ReadonlyMap<Input, string>;
  /** Where the policies were written to; undefined where they are in another file, or nowhere here. */
  readonly policies: string | undefined;
  /** Name of the file that is put over those of the installation; undefined where one of them was changed. */
  readonly overlay: string | undefined;
  /** Whether the variables to add were written to some file. */
  readonly isAdded: boolean;
}

/** Name of the file with the variables where none was named. */
export const VARIABLES_FILE = 'weir.env';

/** Names of the policies' directory where nothing says another. */
const POLICIES = 'policies';

/**
 * Makes the files to deploy: those of the installation with image and variables changed, and the policies as they are.
 * `policies`: the policy files, `directory`: where they lie.
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
    const note = `${noteOf(target)}; to be put over your ${inputs.length === 1 ? 'file' : 'files'}`;
    files.push({ path: overlay.name, content: overlay.text, note });
    isAdded = true;
  }
  for (const input of inputs) {
    // What an overlay is put over stays where it is.
    if (overlay !== undefined || !isDeployed(input, installation)) continue;
    const name = freeName(basename(input.file), [...names.values()]);
    if (pick?.workload.input === input) {
      if (text === undefined) {
        decide.push(byHand(input, target));
        continue;
      }
      files.push({ path: name, content: text, mode: modeOf(input.file), note: noteOf(target) });
      isAdded = true;
    } else if (input.format === 'variables') {
      files.push({
        path: name,
        content: withVariables(plainLines(input.text), isAdded ? {} : target.variables),
        mode: modeOf(input.file),
        note: isAdded ? 'its lines' : noteOf(target, false),
      });
      isAdded = true;
    } else {
      files.push({ path: name, content: input.text, mode: modeOf(input.file), note: 'as it was' });
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
      note: 'as it was',
    });
  }
  const written = policies.files.length > 0 ? place : undefined;
  return { files, decide, names, policies: written, overlay: overlay?.name, isAdded };
}

/** Who may read a file may read what is made of it, and nobody else: it may hold a password. */
function modeOf(file: string): number {
  return statSync(file).mode & 0o777;
}

/** Env files are read by whatever starts the service; where another file starts it, the variables go there. */
function isDeployed({ format }: Input, { pick }: Installation): boolean {
  if (format === 'policy') return false;
  return format !== 'variables' || pick === undefined;
}

/** Where a compose file finds them, if that is beside it; else a directory of their own. */
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
  const comment = '# What these variables are in envoyproxy/ratelimit where they are unset.\n';
  return `${text}${text.endsWith('\n') || text === '' ? '' : '\n'}${comment}${added.join('')}`;
}

function noteOf({ image, variables }: Target, hasImage = true): string {
  const count = Object.keys(variables).length;
  const added = `${quantity(count, 'variable')} added`;
  if (!hasImage) return added;
  return count === 0 ? `image ${image}` : `image ${image}, ${added}`;
}

function byHand({ file }: Input, { image, variables }: Target): Finding {
  const added = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const also = added.length === 0 ? '' : `, and add ${added.join(', ')}`;
  const text =
    'image and variables are written in a way that this command does not change, such as an alias; in a copy of ' +
    `the file, set the image ${image}${also}.`;
  return { about: file, text };
}
