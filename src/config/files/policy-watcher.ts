import { type FSWatcher, watch } from 'node:fs';
import { basename } from 'node:path';
import { runInTurns } from '../../runtime/turns.js';
import { FILES_PER_TURN, fileIdentity, fingerprintSteps } from './fingerprint.js';
import type { PolicyPlace } from './policy-paths.js';
import { WatchPlan } from './watch-plan.js';

interface WatchedDirectory {
  /** Device and inode. A new directory with the same name needs a new watcher. */
  readonly identity: string;
  readonly watcher: FSWatcher;
}

/**
 * Watches all files of a configuration; see {@link WatchPlan}. Depends on the change events of the file system. {@link
 * fingerprint} finds changes without events.
 */
export class PolicyWatcher {
  private readonly places: readonly PolicyPlace[];
  private readonly onChange: () => void;
  private readonly watched = new Map<string, WatchedDirectory>();
  private plan = new WatchPlan();
  private closed = false;

  /** `places` as given to `loadPolicies`. `onChange` may be called several times for one change. */
  constructor(places: readonly PolicyPlace[], onChange: () => void) {
    this.places = places;
    this.onChange = onChange;
  }

  /**
   * Watches directories that are not watched yet or were replaced. `files` are the files that were read last. Lets
   * waiting events run between many files.
   */
  arm(files: readonly string[]): Promise<void> {
    return runInTurns(this.armSteps(files));
  }

  /**
   * Returns a string that changes whenever a file or directory of the configuration is replaced, written to, added or
   * removed. Lets waiting events run between many files.
   */
  fingerprint(files: readonly string[]): Promise<string> {
    return runInTurns(fingerprintSteps(this.places, files));
  }

  private *armSteps(files: readonly string[]): Generator<void, void> {
    const plan = new WatchPlan();
    for (const place of this.places) yield* plan.addPlace(place);
    for (const [i, file] of files.entries()) {
      if (i % FILES_PER_TURN === FILES_PER_TURN - 1) yield;
      plan.addFile(file);
    }
    if (this.closed) return;
    this.plan = plan;
    const directories = new Set(plan.directories);
    for (const directory of this.watched.keys()) if (!directories.has(directory)) this.unwatch(directory);
    for (const directory of directories) this.watch(directory);
  }

  close(): void {
    this.closed = true;
    for (const directory of [...this.watched.keys()]) this.unwatch(directory);
  }

  private watch(directory: string): void {
    const identity = fileIdentity(directory, false);
    const known = this.watched.get(directory);
    if (known !== undefined) {
      if (known.identity === identity) return;
      this.unwatch(directory);
    }
    if (identity === '') return;
    try {
      const watcher = watch(directory, { persistent: false }, (_event, name) =>
        this.changed(directory, name),
      );
      // The directory was removed, or the machine has no watches left. Polling continues.
      watcher.on('error', () => this.unwatch(directory));
      this.watched.set(directory, { identity, watcher });
    } catch {
      // Polling continues without this watch, too.
    }
  }

  private unwatch(directory: string): void {
    this.watched.get(directory)?.watcher.close();
    this.watched.delete(directory);
  }

  private changed(directory: string, name: string | null): void {
    // A watched directory reports its own removal under its own name.
    const isOwn = name === basename(directory);
    // The replacement may get the same inode, and the old watcher would look like a watcher of the new directory.
    if (isOwn) this.unwatch(directory);
    if (name === null || isOwn || this.plan.counts(directory, name)) this.onChange();
  }
}
