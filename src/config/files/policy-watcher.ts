import { type FSWatcher, watch } from 'node:fs';
import { basename } from 'node:path';
import { runInTurns, runToCompletion } from '../../runtime/turns.js';
import { FILES_PER_TURN, fileIdentity, fingerprintSteps } from './fingerprint.js';
import type { PolicyPlace } from './policy-paths.js';
import { WatchPlan } from './watch-plan.js';

interface WatchedDirectory {
  /** Device and inode: another directory under the same name needs another watcher. */
  readonly identity: string;
  readonly watcher: FSWatcher;
}

/**
 * Watches everything a configuration is read from; see {@link WatchPlan}. Works as well as the file system tells of
 * changes; {@link fingerprint} finds what it does not tell.
 */
export class PolicyWatcher {
  private readonly places: readonly PolicyPlace[];
  private readonly onChange: () => void;
  private readonly watched = new Map<string, WatchedDirectory>();
  private plan = new WatchPlan();
  private closed = false;

  /** `places` as given to `loadPolicies`; `onChange` is called often, several times for one change too. */
  constructor(places: readonly PolicyPlace[], onChange: () => void) {
    this.places = places;
    this.onChange = onChange;
  }

  /** Begins to watch what is not watched yet, or is another directory than before. `files` are those last read. */
  arm(files: readonly string[]): void {
    runToCompletion(this.armSteps(files));
  }

  /** Changes whenever a file or directory of the configuration is replaced, written to, added or removed. */
  fingerprint(files: readonly string[]): string {
    return runToCompletion(fingerprintSteps(this.places, files));
  }

  /** {@link arm} for many files, which lets what waits in the event loop go first. */
  armInTurns(files: readonly string[]): Promise<void> {
    return runInTurns(this.armSteps(files));
  }

  /** {@link fingerprint} for many files, likewise. */
  fingerprintInTurns(files: readonly string[]): Promise<string> {
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
      // A directory that goes away, or too many watches on this machine: polling goes on.
      watcher.on('error', () => this.unwatch(directory));
      this.watched.set(directory, { identity, watcher });
    } catch {
      // As above.
    }
  }

  private unwatch(directory: string): void {
    this.watched.get(directory)?.watcher.close();
    this.watched.delete(directory);
  }

  private changed(directory: string, name: string | null): void {
    // A watched directory tells its own removal under its own name.
    const isOwn = name === basename(directory);
    // What takes its place may have its very number: the watcher would pass for one of that.
    if (isOwn) this.unwatch(directory);
    if (name === null || isOwn || this.plan.counts(directory, name)) this.onChange();
  }
}
