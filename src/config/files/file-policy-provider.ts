import type { DomainStatus } from '../../policy/policy.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { Signal } from '../../runtime/signal.js';
import { type LoadingPolicyProvider, MAX_SHOWN, type ReloadReason } from '../policy-provider.js';
import { type NewSecret, newSecrets, shareSecrets, shareSecretsInTurns } from '../read/secret-keys.js';
import type { PolicyLoader } from '../threads/policy-loader.js';
import { type ConfigProblem, formatProblem, WHOLE_FILE } from '../yaml/config-problem.js';
import { isRefusedAtStart, type LoadedPolicies } from './load-policies.js';
import { type PolicyPlace, pathOfPlace } from './policy-paths.js';
import { PolicyWatcher } from './policy-watcher.js';

/** What became of a reload. */
export interface ReloadOutcome {
  /**
   * `loaded`: new content is in force. `unchanged`: the files hold what is in force already. `failed`: something is
   * wrong; the good domains are as the files say, bad ones stay as they were.
   */
  readonly kind: 'loaded' | 'unchanged' | 'failed';
  readonly reason: ReloadReason;
  /** In force from now on. */
  readonly policySet: PolicySet;
  /** What became a secret by it; see {@link NewSecret}. */
  readonly newSecrets: readonly NewSecret[];
  /** Empty unless failed. */
  readonly errors: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
  /** How each domain stands. */
  readonly domains: readonly DomainStatus[];
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
 * Policies from files, followed as the files change. `current` is swapped as a whole. Loads come one after the other; a
 * change while one runs causes another. Holds neither the process nor anything open after `close`.
 */
export class FilePolicyProvider implements LoadingPolicyProvider {
  private readonly places: readonly PolicyPlace[];
  private readonly loader: PolicyLoader;
  private readonly pollMs: number;
  private readonly debounceMs: number;
  private readonly timers: Timers;
  private readonly watcher: PolicyWatcher;
  private readonly watching: boolean;
  private readonly ended = new Signal<ReloadOutcome>();
  private readonly reloaded = new Signal<boolean>();
  readonly onReload = this.reloaded.add;
  /**
   * Adds a listener to what reloads come to, which is told before those of {@link onReload} are. It is told of every
   * outcome that put something new in force or failed of something new, of `unchanged` when that ends a failure, and of
   * whatever was asked for; not of a change or poll that finds the same failure again.
   */
  readonly onOutcome = this.ended.add;
  /** What the latest load gave, good or bad; its `policySet` is in force. */
  private loaded: LoadedPolicies;
  /** Whether a policy was ever good. */
  private everGood: boolean;
  /** Of the files as they were before they were read. */
  private fingerprint: string;
  /** What the latest reload failed of, '' if it did not. */
  private failure = '';
  private pollTimer: unknown;
  private debounceTimer: unknown;
  private running = false;
  private stopped = false;
  /** The next load, if one was asked for, and who waits for it. */
  private next: ReloadReason | undefined;
  private waiters: ((outcome: ReloadOutcome) => void)[] = [];
  private loading = false;
  /** Everything under way. */
  private work: Promise<unknown> = Promise.resolve();

  /** `initial` is what `loader.load()` gave; whether its errors forbid a start is the caller's decision. */
  constructor(
    places: readonly PolicyPlace[],
    initial: LoadedPolicies,
    loader: PolicyLoader,
    options: FilePolicyProviderOptions = {},
  ) {
    this.places = places;
    this.loaded = initial;
    this.fingerprint = initial.fingerprint;
    this.everGood = !isRefusedAtStart(initial);
    shareSecrets(initial.policySet);
    this.loader = loader;
    this.failure = failureOf(initial);
    this.pollMs = options.pollMs ?? 5000;
    this.debounceMs = options.debounceMs ?? 100;
    this.watching = options.watch ?? true;
    this.timers = options.timers ?? unrefTimers;
    this.watcher = new PolicyWatcher(places, () => this.changed());
  }

  current(): PolicySet | undefined {
    return this.everGood ? this.loaded.policySet : undefined;
  }

  errors(): readonly ConfigProblem[] {
    return this.loaded.errors.slice(0, MAX_SHOWN);
  }

  domains(): readonly DomainStatus[] {
    return this.loaded.domains;
  }

  /** Begins to follow the files; what changed since the initial load is loaded first. */
  start(): void {
    if (this.running || this.stopped) return;
    this.running = true;
    this.track(this.compare('start'));
    this.schedulePoll();
  }

  /** Loads the files as they are now, after what is being loaded already. */
  reload(reason: ReloadReason): Promise<ReloadOutcome> {
    // Who asks hears of it in any case, so that a change on the way does not hide it.
    if (this.next !== 'signal') this.next = reason;
    const outcome = new Promise<ReloadOutcome>((resolve) => this.waiters.push(resolve));
    if (!this.loading) this.track(this.loadWhileAsked());
    return outcome;
  }

  /** Resolves when nothing is being loaded or compared. */
  async idle(): Promise<void> {
    for (let work: unknown; work !== this.work; ) {
      work = this.work;
      await work;
    }
  }

  /** Follows the files no longer. What is in force stays so. */
  close(): void {
    this.running = false;
    this.stopped = true;
    this.timers.clear(this.pollTimer);
    this.timers.clear(this.debounceTimer);
    this.debounceTimer = undefined;
    this.watcher.close();
    this.loader.close();
  }

  private track(work: Promise<void>): void {
    this.work = Promise.all([this.work, work]);
  }

  private async loadWhileAsked(): Promise<void> {
    this.loading = true;
    while (this.next !== undefined) {
      const reason = this.next;
      const waiters = this.waiters;
      this.next = undefined;
      this.waiters = [];
      const outcome = await this.load(reason);
      for (const waiter of waiters) waiter(outcome);
    }
    this.loading = false;
  }

  private async load(reason: ReloadReason): Promise<ReloadOutcome> {
    const before = this.loaded;
    if (this.stopped) return this.outcomeOf('unchanged', reason, before, []);
    // First of all: a change that comes while files are read is then seen afterwards.
    await this.arm();
    const loaded = await this.loader.load(before).catch((error: unknown) => this.untried(error));
    // Nobody follows any more.
    if (this.stopped) return this.outcomeOf('unchanged', reason, before, []);
    const sameFiles = before.files.join('\n') === loaded.files.join('\n');
    this.fingerprint = loaded.fingerprint;
    const isNew = loaded.policySet.version !== before.policySet.version;
    const secrets = isNew ? newSecrets(before.policySet, loaded.policySet) : [];
    if (isNew) await shareSecretsInTurns(loaded.policySet);
    const outcome = this.putInForce(reason, loaded, isNew, secrets);
    if (!sameFiles) await this.arm();
    return outcome;
  }

  /** A load that did not come to an end: all stays, and the next poll tries again. */
  private untried(error: unknown): LoadedPolicies {
    const why = error instanceof Error ? error.message : String(error);
    const message =
      `the policies could not be loaded: ${why}; the active policies stay in force, and weir tries again ` +
      'soon';
    const file = this.places.map(pathOfPlace).join(', ');
    const errors = [{ file, ...WHOLE_FILE, path: '', message }];
    return { ...this.loaded, errors, warnings: [], fingerprint: '' };
  }

  private putInForce(
    reason: ReloadReason,
    loaded: LoadedPolicies,
    isNew: boolean,
    secrets: readonly NewSecret[],
  ): ReloadOutcome {
    const before = this.loaded;
    const failureBefore = this.failure;
    this.failure = failureOf(loaded);
    // The set stays the very object when it says the same, so that nobody takes it for another.
    this.loaded = isNew ? loaded : { ...loaded, policySet: before.policySet };
    this.everGood ||= !isRefusedAtStart(this.loaded);
    const kind = this.failure !== '' ? 'failed' : isNew ? 'loaded' : 'unchanged';
    const outcome = this.outcomeOf(kind, reason, loaded, secrets);
    if (reason === 'signal' || isNew || this.failure !== failureBefore) {
      this.ended.emit(outcome);
      this.reloaded.emit(kind !== 'failed');
    }
    return outcome;
  }

  private outcomeOf(
    kind: ReloadOutcome['kind'],
    reason: ReloadReason,
    { errors, warnings, domains }: LoadedPolicies,
    secrets: readonly NewSecret[],
  ): ReloadOutcome {
    const { policySet } = this.loaded;
    return { kind, reason, policySet, newSecrets: secrets, errors, warnings, domains };
  }

  private async arm(): Promise<void> {
    if (this.running && this.watching) await this.watcher.armInTurns(this.loaded.files);
  }

  private changed(): void {
    if (!this.running || this.debounceTimer !== undefined) return;
    this.debounceTimer = this.timers.set(() => {
      this.debounceTimer = undefined;
      if (this.running) void this.reload('change');
    }, this.debounceMs);
  }

  private schedulePoll(): void {
    this.pollTimer = this.timers.set(() => this.track(this.poll()), this.pollMs);
  }

  private async poll(): Promise<void> {
    await this.compare('poll');
    if (this.running) this.schedulePoll();
  }

  /** Loads the files if they are not those that were read. */
  private async compare(reason: ReloadReason): Promise<void> {
    // What is being loaded is read from now on.
    if (this.loading) return;
    await this.arm();
    const fingerprint = await this.watcher.fingerprintInTurns(this.loaded.files);
    if (this.running && !this.loading && fingerprint !== this.fingerprint) await this.reload(reason);
  }
}

/** Names what failed, contents included, to tell a new failure from the same one met again. */
function failureOf(loaded: LoadedPolicies): string {
  if (loaded.errors.length === 0) return '';
  return [loaded.contents, ...loaded.errors.map(formatProblem)].join('\n');
}
