import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { messageOf, readRegularFile } from '../../runtime/regular-file.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { listSome } from '../../runtime/texts.js';
import { workingDirectoryHint } from '../../runtime/working-directory.js';
import { type ConfigProblem, WHOLE_FILE } from '../yaml/config-problem.js';
import { MAX_FILE_BYTES } from '../yaml/yaml-value.js';

/**
 * A location of policies. A path, as in CONFIG_PATH, is a file or a directory. A directory contributes its files that
 * end in `.yaml` or `.yml`, sorted by name, without subdirectories and names that begin with a dot.
 */
export type PolicyPlace = string | RuntimeLayout;

/**
 * The directory layout of envoyproxy/ratelimit: every file in `directory` and its subdirectories is a policy, whatever
 * its name. Links to files are followed. Links to directories are followed only into Kubernetes' `..data`, as in
 * envoyproxy/ratelimit.
 *
 * Kubernetes keeps the files of a volume in a directory such as `..2024_01_31_10_00_00.123`, which `..data` links to,
 * and links to each file by its own name. Directories whose names begin with `..` are always skipped, because their
 * files would count twice.
 */
export interface RuntimeLayout {
  readonly directory: string;
  /**
   * The settings that the path was made from, for messages: `RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY`.
   */
  readonly setting: string;
  /**
   * Whether to include siblings of `directory` whose names begin with its name and a dot, such as `config.yaml` next to
   * `config`.
   */
  readonly beside: boolean;
  /** Whether to skip files and directories whose names begin with a dot. */
  readonly ignoreDotFiles: boolean;
}

export interface PolicyPath {
  readonly file: string;
  /** Whether the file was found in a directory rather than named by the user. */
  readonly listed: boolean;
}

/** Tells whether a file with this name is a policy in a directory that CONFIG_PATH names. */
function isPolicyName(name: string): boolean {
  return /\.ya?ml$/.test(name) && !name.startsWith('.');
}

/** Tells whether an entry with this name is part of a layout. */
function isLayoutName({ ignoreDotFiles }: RuntimeLayout, name: string, isDirectory: boolean): boolean {
  if (ignoreDotFiles && name.startsWith('.')) return false;
  return !isDirectory || !name.startsWith('..');
}

/** Tells whether a sibling of a layout's directory is part of the layout. */
function isSiblingName({ directory, beside }: RuntimeLayout, name: string): boolean {
  return beside && name.startsWith(`${basename(directory)}.`);
}

function siblingEntries(layout: RuntimeLayout): readonly Dirent[] {
  return layout.beside
    ? entriesOf(dirname(layout.directory)).filter(({ name }) => isSiblingName(layout, name))
    : [];
}

/** Returns the path whose changes affect the place itself. */
export function pathOfPlace(place: PolicyPlace): string {
  return typeof place === 'string' ? place : place.directory;
}

/** Number of entries after which a listing yields. Each entry may take a system call. */
const ENTRIES_PER_TURN = 64;
/** Maximum number of files and directories in a layout. Protects against walking other trees, such as a whole disk. */
export const MAX_LAYOUT_ENTRIES = 100_000;

/**
 * Returns the policy files of all places, each once, and yields after every few files. `errors` receives what cannot be
 * listed. `warnings` receives files that are unexpectedly left out, and directories without a policy file.
 */
export function* expandPaths(
  places: readonly PolicyPlace[],
  errors: ConfigProblem[],
  warnings: ConfigProblem[] = [],
): Generator<void, readonly PolicyPath[]> {
  const found = new Map<string, PolicyPath>();
  const add = (file: string, listed: boolean): void => {
    if (!found.has(resolve(file))) found.set(resolve(file), { file, listed });
  };
  for (const place of places) {
    try {
      if (typeof place !== 'string') {
        const walk = yield* walkLayout(place);
        for (const file of walk.files) add(file, true);
        errors.push(...walk.errors);
        warnings.push(...walk.warnings);
        if (walk.files.length === 0 && walk.errors.length === 0)
          warnings.push(problemAt(place.directory, noPolicyFilesMessage(place.directory, 'file')));
      } else if (!statSync(place).isDirectory()) add(place, false);
      else {
        const names = yield* policyNames(place);
        for (const name of names) add(join(place, name), true);
        if (names.length === 0)
          warnings.push(problemAt(place, noPolicyFilesMessage(place, 'file that ends in .yaml or .yml')));
      }
    } catch (error) {
      errors.push(problemAt(pathOfPlace(place), listingMessage(place, error)));
    }
  }
  return [...found.values()];
}

/**
 * Tells whether the policies of all places are a few regular files with at most `maxBytes` together. Looks at only a
 * few files, and returns false if it cannot.
 */
export function areSmall(places: readonly PolicyPlace[], maxBytes: number): boolean {
  const errors: ConfigProblem[] = [];
  const listing = expandPaths(places, errors).next();
  if (listing.done !== true || errors.length > 0) return false;
  try {
    const found = listing.value.map(({ file }) => statSync(file));
    return (
      found.every((stats) => stats.isFile()) && found.reduce((bytes, { size }) => bytes + size, 0) <= maxBytes
    );
  } catch {
    return false;
  }
}

function problemAt(file: string, message: string): ConfigProblem {
  return { file: withoutAddressSecrets(file), ...WHOLE_FILE, path: '', message };
}

/** Maximum number of file names shown for a directory without policies. */
const SHOWN_NAMES = 5;

/** Returns the message for a directory without policy files. `lacking` describes the files that are missing. */
function noPolicyFilesMessage(directory: string, lacking: string): string {
  const entries = entriesOf(directory);
  const remedy = entries.some(({ name }) => name.endsWith('.json'))
    ? 'rename JSON policies to *.yaml (JSON is valid YAML), or specify the directory that contains the policies'
    : 'specify the directory that contains the policies';
  if (entries.length === 0) return `the directory is empty; ${remedy}`;
  const names = entries.map((entry) => entry.name + (entry.isDirectory() ? '/' : ''));
  return `the directory has no ${lacking}, only ${listSome(names, SHOWN_NAMES)}; ${remedy}`;
}

function listingMessage(place: PolicyPlace, error: unknown): string {
  if (typeof place === 'string') return messageOf(error);
  const { code, path } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT') return messageOf(error);
  return (
    `"${path}" does not exist${workingDirectoryHint(String(path))}; create this directory, which ` +
    `${place.setting} specifies, or correct the variables`
  );
}

/** The contents of a runtime layout. */
interface Walk {
  /** In the order of names, directory by directory. */
  readonly files: string[];
  /** Subdirectories that cannot be read. Their siblings are still included. */
  readonly errors: ConfigProblem[];
  readonly warnings: ConfigProblem[];
  /** Number of entries visited so far, and the maximum. */
  entries: number;
  readonly mostEntries: number;
}

/**
 * Lists a runtime layout and yields after every few entries. Throws the file system's error for `directory` itself, or
 * an Error if it has more than `mostEntries` entries.
 */
export function* walkLayout(layout: RuntimeLayout, mostEntries = MAX_LAYOUT_ENTRIES): Generator<void, Walk> {
  const walk: Walk = { files: [], errors: [], warnings: [], entries: 0, mostEntries };
  const { directory } = layout;
  const parent = dirname(directory);
  const beside = siblingEntries(layout);
  if (beside.length === 0 || statSync(directory, { throwIfNoEntry: false }) !== undefined) {
    yield* walkDirectory(directory, layout, walk);
  }
  for (const entry of beside) yield* addEntry(parent, entry, layout, walk);
  if (walk.entries > mostEntries)
    throw new Error(
      `the directory contains more than ${mostEntries} files and directories; specify the directory ` +
        'that contains the policies',
    );
  return walk;
}

function* walkDirectory(directory: string, layout: RuntimeLayout, walk: Walk): Generator<void, void> {
  const entries = readdirSync(directory, { withFileTypes: true });
  for (const entry of sorted(entries)) yield* addEntry(directory, entry, layout, walk);
}

function* addEntry(
  directory: string,
  entry: Dirent,
  layout: RuntimeLayout,
  walk: Walk,
): Generator<void, void> {
  if (walk.entries > walk.mostEntries) return;
  if (++walk.entries % ENTRIES_PER_TURN === 0) yield;
  const { name } = entry;
  const path = join(directory, name);
  const isDirectory = entry.isSymbolicLink() ? leadsToDirectory(path) : entry.isDirectory();
  if (!isLayoutName(layout, name, isDirectory)) return;
  if (!isDirectory) {
    walk.files.push(path);
    return;
  }
  try {
    if (!entry.isSymbolicLink() || leadsToVolumeData(directory, path)) {
      yield* walkDirectory(path, layout, walk);
      return;
    }
  } catch (error) {
    walk.errors.push(problemAt(path, messageOf(error, path)));
    return;
  }
  const message = 'weir does not follow links to directories; move the directory here, or link to its files';
  walk.warnings.push(problemAt(path, message));
}

/**
 * Tells whether a link leads to a directory. A dangling, circular or inaccessible link counts as a file: reading it
 * reports the error, and other files are not affected.
 */
function leadsToDirectory(link: string): boolean {
  try {
    return statSync(link).isDirectory();
  } catch {
    return false;
  }
}

/**
 * Tells whether a link leads into the data directory that Kubernetes keeps here, as for volume items whose paths
 * contain a `/`.
 */
function leadsToVolumeData(directory: string, link: string): boolean {
  return /^\.\.[^/]/.test(relative(realpathSync(directory), realpathSync(link)));
}

function entriesOf(directory: string): readonly Dirent[] {
  try {
    return sorted(readdirSync(directory, { withFileTypes: true }));
  } catch {
    return [];
  }
}

/** Sorts by code units, so that all machines agree on the order. */
function sorted(entries: Dirent[]): Dirent[] {
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Yields after every few entries. Returns the names of the policy files in a directory that CONFIG_PATH names, sorted
 * by code units.
 */
function* policyNames(directory: string): Generator<void, readonly string[]> {
  const names: string[] = [];
  for (const [i, entry] of sorted(readdirSync(directory, { withFileTypes: true })).entries()) {
    if (i % ENTRIES_PER_TURN === ENTRIES_PER_TURN - 1) yield;
    const { name } = entry;
    if (!isPolicyName(name)) continue;
    const isDirectory = entry.isSymbolicLink()
      ? leadsToDirectory(join(directory, name))
      : entry.isDirectory();
    if (!isDirectory) names.push(name);
  }
  return names;
}

/** Reads a policy or another configuration file, unless it is too large. Throws an Error with a sentence. */
export function readConfigFile(file: string, maxBytes = MAX_FILE_BYTES): Buffer {
  try {
    return readRegularFile(file, maxBytes);
  } catch (error) {
    throw new Error(messageOf(error, file));
  }
}
