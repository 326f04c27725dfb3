import { type NewSecret, newSecrets, type PolicySet } from '../../policy/compiled-policy.js';
import type { DomainStatus } from '../../policy/policy.js';
import { Signal } from '../../runtime/signal.js';
import { SYSTEM_TIMERS, type TimerSource } from '../../runtime/timers.js';
import { runInTurns } from '../../runtime/turns.js';
import {
  type LoadingPolicyProvider,
  MAX_SHOWN,
  type PolicyHandover,
  type ReloadReason,
} from '../policy-provider.js';
import type { PlanSources } from '../sources/plan-sources.js';
import type { PolicyLoader } from '../threads/load-thread.js';
import { inBatches, policyItems } from '../threads/policy-transfer.js';
import { type ConfigProblem, formatProblem, WHOLE_FILE } from '../yaml/config-problem.js';
import { fingerprintSteps } from './fingerprint.js';
import { isWithoutValidDomain, type LoadedPolicies } from './load-policies.js';
import { type PolicyPlace, pathOfPlace } from './policy-paths.js';

export interface ReloadOutcome {
  /**
   * `loaded`: new content is in effect. `unchanged`: the files have the content that was already in effect. `failed`:
   * some files are invalid; valid domains were loaded, and invalid domains keep their previous version.
   */
  readonly kind: 'loaded' | 'unchanged' | 'failed';
  readonly reason: ReloadReason;
  /** The policies that are in effect after the reload. */
  readonly policySet: PolicySet;
  /** Entry keys that the reload made secret; see {@link NewSecret}. */
  readonly newSecrets: readonly NewSecret[];
  /** Empty unless `kind` is `failed`. */
  readonly errors: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
  readonly domains: readonly DomainStatus[];
}

export interface FilePolicyProviderOptions {
  /** Time between two comparisons of the files' times, in milliseconds. Default 1000. */
  readonly pollMs?: number;
  /** Default: timers that do not keep the process running. */
  readonly timers?: Pick<TimerSource, 'set' | 'clear'>;
  /** Reads the tables in Redis. The provider chooses the addresses, and closes it. */
  readonly sources?: PlanSources;
}

/** A comparison of many files takes at most this part of the time. */
const MAX_POLLING = 1 / 20;

/**
 * Loads policies from files and reloads them when the files change. `current` is replaced as a whole. Loads run one at
 * a time, and a change during a load triggers another load. After `close`, nothing stays open and nothing keeps the
 * process running.
 */
export class FilePolicyProvider implements LoadingPolicyProvider {
  private readonly places: readonly PolicyPlace[];
  private readonly loader: PolicyLoader;
  private readonly pollMs: number;
  private readonly timers: Pick<TimerSource, 'set' | 'clear'>;
  readonly sources: PlanSources | undefined;
  private readonly ended = new Signal<ReloadOutcome>();
  private readonly reloaded = new Signal<boolean>();
  readonly onReload = this.reloaded.add;
  /**
   * Adds a listener for reload outcomes, which is called before the listeners of {@link onReload}. It receives every
   * outcome that loaded new content or failed for a new reason, every requested reload, and the `unchanged` that ends a
   * failure. It does not receive changes or polls that find the same failure again.
   */
  readonly onOutcome = this.ended.add;
  beforeSwitch: LoadingPolicyProvider['beforeSwitch'] = async () => {};
  /** Result of the latest load, valid or not. Its `policySet` is in effect. */
  private loaded: LoadedPolicies;
  /** Whether a load has ever succeeded. */
  private hasLoaded: boolean;
  /** Fingerprint of the files from before they were read. */
  private fingerprint: string;
  /** Failure of the latest reload, or '' if it succeeded. */
  private failure = '';
  private pollTimer: unknown;
  private running = false;
  private stopped = false;
  /** The reason of the next load, if one was requested, and its waiting callers. */
  private next: ReloadReason | undefined;
  private waiters: ((outcome: ReloadOutcome) => void)[] = [];
  private loading = false;
  /** Settles when all running work has finished. */
  private work: Promise<unknown> = Promise.resolve();

  /** `initial` is the result of `loader.load()`. The caller decides whether its errors prevent the start. */
  constructor(
    places: readonly PolicyPlace[],
    initial: LoadedPolicies,
    loader: PolicyLoader,
    options: FilePolicyProviderOptions = {},
  ) {
    this.places = places;
    this.loaded = initial;
    this.fingerprint = initial.fingerprint;
    this.hasLoaded = !isWithoutValidDomain(initial);
    this.loader = loader;
    this.failure = failureOf(initial);
    this.pollMs = options.pollMs ?? 1000;
    this.timers = options.timers ?? SYSTEM_TIMERS;
    this.sources = options.sources;
    if (this.sources !== undefined) {
      this.sources.onChange = () => {
        // A load looks for new rows at its end.
        if (!this.loading) this.rowsChanged();
      };
    }
  }

  current(): PolicySet | undefined {
    return this.hasLoaded ? this.loaded.policySet : undefined;
  }

  errors(): readonly ConfigProblem[] {
    return this.loaded.errors.slice(0, MAX_SHOWN);
  }

  domains(): readonly DomainStatus[] {
    return this.loaded.domains;
  }

  handover(): PolicyHandover {
    const { errors, policySet, memory } = this.loaded;
    const batches = errors.length === 0 ? [] : [...inBatches(policyItems(policySet))];
    const kept = errors.length === 0 ? undefined : { version: policySet.version, batches, memory };
    return { kept, rows: this.sources?.loadedRows ?? new Map(), updates: [] };
  }

  /** Starts to follow the files. Changes since the initial load are loaded first. */
  start(): void {
    if (this.running || this.stopped) return;
    this.running = true;
    this.track(this.compare('start'));
    this.schedulePoll();
  }

  /** Loads the current files after the running load has finished. */
  reload(reason: ReloadReason): Promise<ReloadOutcome> {
    // A requested reload is always reported, so a change in the meantime must not replace its reason.
    if (this.next !== 'signal') this.next = reason;
    const outcome = new Promise<ReloadOutcome>((resolve) => this.waiters.push(resolve));
    if (!this.loading) this.track(this.loadWhileAsked());
    return outcome;
  }

  /** Resolves when no load or comparison is running. */
  async idle(): Promise<void> {
    for (let work: unknown; work !== this.work; ) {
      work = this.work;
      await work;
    }
  }

  /** Stops following the files. The policies in effect stay in effect. */
  close(): void {
    this.running = false;
    this.stopped = true;
    this.timers.clear(this.pollTimer);
    this.sources?.close();
    this.loader.close();
  }

  private track(work: Promise<unknown>): void {
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
    const load = (): Promise<LoadedPolicies> =>
      this.loader.load(before).catch((error: unknown) => this.unfinishedLoad(error));
    const loaded = await (this.sources?.loadWithRows(load) ?? load());
    // After `close`, the result is not used.
    if (this.stopped) return this.outcomeOf('unchanged', reason, before, []);
    this.fingerprint = loaded.fingerprint;
    const isNew = loaded.policySet.version !== before.policySet.version;
    const secrets = isNew ? newSecrets(before.policySet, loaded.policySet) : [];
    if (isNew) await this.beforeSwitch();
    const outcome = this.putInEffect(reason, loaded, isNew, secrets);
    if (this.sources?.hasNewRows === true) this.rowsChanged();
    return outcome;
  }

  /** Returns the result of a load that did not finish: the policies do not change, and the next poll tries again. */
  private unfinishedLoad(error: unknown): LoadedPolicies {
    const why = error instanceof Error ? error.message : String(error);
    const message =
      `the policies could not be loaded: ${why}; the previous policies stay in effect, and weir tries ` +
      'again soon';
    const file = this.places.map(pathOfPlace).join(', ');
    const errors = [{ file, ...WHOLE_FILE, path: '', message }];
    return { ...this.loaded, errors, warnings: [], fingerprint: '' };
  }

  private putInEffect(
    reason: ReloadReason,
    loaded: LoadedPolicies,
    isNew: boolean,
    secrets: readonly NewSecret[],
  ): ReloadOutcome {
    const before = this.loaded;
    const failureBefore = this.failure;
    this.failure = failureOf(loaded);
    // Keep the same object for equal content, so that callers can compare sets by identity.
    this.loaded = isNew ? loaded : { ...loaded, policySet: before.policySet };
    this.hasLoaded ||= !isWithoutValidDomain(this.loaded);
    void this.sources?.follow(loaded.addresses);
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

  private rowsChanged(): void {
    if (this.running) void this.reload('change');
  }

  private schedulePoll(minMs = 0): void {
    this.pollTimer = this.timers.set(() => this.track(this.poll()), Math.max(this.pollMs, minMs));
  }

  private async poll(): Promise<void> {
    const tookMs = await this.compare('change');
    if (this.running) this.schedulePoll(tookMs / MAX_POLLING);
  }

  /**
   * Loads the files if they, or rows in Redis, differ from those that were read last. Resolves with the duration of the
   * comparison, in milliseconds.
   */
  private async compare(reason: ReloadReason): Promise<number> {
    // The running load reads the current files.
    if (this.loading) return 0;
    const startMs = performance.now();
    const fingerprint = await runInTurns(fingerprintSteps(this.places, this.loaded.files));
    const isNew = fingerprint !== this.fingerprint || this.sources?.hasNewRows === true;
    const tookMs = performance.now() - startMs;
    if (this.running && !this.loading && isNew) await this.reload(reason);
    return tookMs;
  }
}

/** Identifies a failure, including the contents of the files, to recognize the same failure when it occurs again. */
function failureOf(loaded: LoadedPolicies): string {
  if (loaded.errors.length === 0) return '';
  return [loaded.contents, ...loaded.errors.map(formatProblem)].join('\n');
}
