import { type ConfigProblem, formatProblem } from './config-problem.js';
import { type LoadedPolicies, loadPolicies } from './load-policies.js';
import type { PolicySet } from './policy.js';
import { PolicyWatcher } from './policy-watcher.js';

/** Why a reload was tried: a file system event, the slow poll, or someone asked (`start`, `signal`, …). */
export type ReloadReason = 'change' | 'poll' | 'start' | 'signal';

/** What became of a reload. */
export type ReloadOutcome =
  /** New content is in force. */
  | (ReloadReport & { readonly kind: 'loaded' })
  /** The files hold what is in force already. */
  | (ReloadReport & { readonly kind: 'unchanged' })
  /** The files hold errors; what was in force stays. */
  | (ReloadReport & { readonly kind: 'failed' });

interface ReloadReport {
  readonly reason: ReloadReason;
  /** In force from now on. */
  readonly policySet: PolicySet;
  /** Empty unless failed. */
  readonly errors: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/** Timers, for tests that decide what time it is. */
export interface Timers {
  set(callback: () => void, delayMs: number): unknown;
  clear(timer: unknown): void;
}

export interface FilePolicyProviderOptions {
  /** How often the files' times are compared, for file systems that tell of no changes. Default 5000. */
  readonly pollMs?: number;
  /** How long to wait after a change for those that belong to it. Default 100. */
  readonly debounceMs?: number;
  /** Whether to listen to file system events at all. Default true. */
  readonly watch?: boolean;
  readonly timers?: Timers;
}

/** Timers that never hold the process. */
const unrefTimers: Timers = {
  set: (callback, delayMs) => setTimeout(callback, delayMs).unref(),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/**
 * Policies from files, followed as the files change. `current` is swapped as a whole, and only by files without any error. Holds
 * neither the process nor anything open after `stop`.
 */
export class FilePolicyProvider {
  private readonly paths: readonly string[];
  private readonly pollMs: number;
  private readonly debounceMs: number;
  private readonly timers: Timers;
  private readonly watcher: PolicyWatcher;
  private readonly watching: boolean;
  private readonly listeners: ((outcome: ReloadOutcome) => void)[] = [];
  private policySet: PolicySet;
  /** Files read by the latest load, good or bad. */
  private files: readonly string[];
  private fingerprint = '';
  /** What the latest reload failed of, '' if it did not. */
  private failure = '';
  private pollTimer: unknown;
  private debounceTimer: unknown;
  private running = false;

  /** `initial` is what `loadPolicies(paths)` gave; whether its errors forbid a start is the caller's decision. */
  constructor(paths: readonly string[], initial: LoadedPolicies, options: FilePolicyProviderOptions = {}) {
    this.paths = paths;
    this.policySet = initial.policySet;
    this.files = initial.files;
    this.failure = failureOf(initial);
    this.pollMs = options.pollMs ?? 5000;
    this.debounceMs = options.debounceMs ?? 100;
    this.watching = options.watch ?? true;
    this.timers = options.timers ?? unrefTimers;
    this.watcher = new PolicyWatcher(paths, () => this.changed());
  }

  /** The policies in force. Take it once per request. */
  get current(): PolicySet {
    return this.policySet;
  }

  /**
   * Adds a listener to reloads. It is told of every `loaded` and `failed` outcome, and of `unchanged` when that ends a failure
   * or was asked for; not of a change or poll that finds the same failure again.
   */
  onReload(listener: (outcome: ReloadOutcome) => void): void {
    this.listeners.push(listener);
  }

  /** Begins to follow the files; what changed since the initial load is loaded first. */
  start(): void {
    if (this.running) return;
    this.running = true;
    if (this.watching) this.watcher.arm(this.files);
    this.fingerprint = this.watcher.fingerprint(this.files);
    this.load('start');
    this.schedulePoll();
  }

  /** Loads the files now. */
  reload(reason: ReloadReason): ReloadOutcome {
    return this.load(reason);
  }

  /** Follows the files no longer. `current` stays. */
  stop(): void {
    this.running = false;
    this.timers.clear(this.pollTimer);
    this.timers.clear(this.debounceTimer);
    this.debounceTimer = undefined;
    this.watcher.close();
  }

  private load(reason: ReloadReason): ReloadOutcome {
    // Watchers and fingerprint first: a change that comes while files are read is then seen afterwards.
    if (this.running && this.watching) this.watcher.arm(this.files);
    const fingerprint = this.watcher.fingerprint(this.files);
    const loaded = loadPolicies(this.paths);
    const filesBefore = this.files;
    this.files = loaded.files;
    const sameFiles = filesBefore.join('\n') === loaded.files.join('\n');
    if (!sameFiles && this.running && this.watching) this.watcher.arm(this.files);
    // With other files the comparison starts afresh: at worst the next poll loads once more and finds nothing new.
    this.fingerprint = sameFiles ? fingerprint : '';
    return this.settle(reason, loaded);
  }

  private settle(reason: ReloadReason, loaded: LoadedPolicies): ReloadOutcome {
    const failureBefore = this.failure;
    this.failure = failureOf(loaded);
    const { errors, warnings } = loaded;
    const asked = reason === 'signal';
    let kind: ReloadOutcome['kind'] = 'failed';
    let tell = asked || this.failure !== failureBefore;
    if (this.failure === '') {
      kind = loaded.policySet.version === this.policySet.version ? 'unchanged' : 'loaded';
    }
    if (kind === 'loaded') {
      this.policySet = loaded.policySet;
      tell = true;
    }
    const outcome: ReloadOutcome = { kind, reason, policySet: this.policySet, errors, warnings };
    if (tell) for (const listener of this.listeners) listener(outcome);
    return outcome;
  }

  private changed(): void {
    if (!this.running || this.debounceTimer !== undefined) return;
    this.debounceTimer = this.timers.set(() => {
      this.debounceTimer = undefined;
      if (this.running) this.load('change');
    }, this.debounceMs);
  }

  private schedulePoll(): void {
    this.pollTimer = this.timers.set(() => {
      if (!this.running) return;
      if (this.watching) this.watcher.arm(this.files);
      if (this.watcher.fingerprint(this.files) !== this.fingerprint) this.load('poll');
      this.schedulePoll();
    }, this.pollMs);
  }
}

/** Names what failed, contents included, to tell a new failure from the same one met again. */
function failureOf(loaded: LoadedPolicies): string {
  if (loaded.errors.length === 0) return '';
  return [loaded.policySet.version, ...loaded.errors.map(formatProblem)].join('\n');
}
