import { FilePolicyProvider } from '../../config/files/file-policy-provider.js';
import type { PreviousPolicies } from '../../config/files/load-policies.js';
import type {
  KeptPolicies,
  LoadingPolicyProvider,
  PolicyHandover,
  XdsUpdate,
} from '../../config/policy-provider.js';
import type { PlanBytes } from '../../config/read/read-domain.js';
import { ThreadPolicyLoader } from '../../config/threads/load-thread.js';
import { buildBatches } from '../../config/threads/policy-transfer.js';
import { formatProblem } from '../../config/yaml/config-problem.js';
import { runToCompletion } from '../../runtime/turns.js';
import type { Logger } from '../../telemetry/logger.js';
import { firstLoad } from '../policies/open-policies.js';
import { loadOptions, policyPlace } from '../policies/policy-place.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';

const INVALID_SINCE =
  'the policies became invalid while this worker process started; weir starts another one';

/** Loads the current files with the rows of tables in Redis, or updates of management servers. */
type Load = (rows: ReadonlyMap<string, PlanBytes>, updates: readonly XdsUpdate[]) => Promise<unknown>;

/**
 * Policies of a worker, which reads the files itself. The primary process follows the files, management servers and
 * tables in Redis, logs all problems, and tells the workers when to load, and when the loaded policies take effect.
 */
export class WorkerPolicies {
  readonly provider: LoadingPolicyProvider;
  readonly #load: Load;
  readonly #log: Logger;
  readonly #onLoaded: (round: number) => void;
  #rows: ReadonlyMap<string, PlanBytes>;
  /** Rows that were received since the last load, block by block. */
  readonly #newRows = new Map<string, Uint8Array[]>();
  /** The latest round of loads, and the latest that takes effect. */
  #round = 0;
  #switched = 0;
  #onSwitch = (): void => {};
  #loading: Promise<void> = Promise.resolve();

  private constructor(
    provider: LoadingPolicyProvider,
    load: Load,
    rows: ReadonlyMap<string, PlanBytes>,
    log: Logger,
    onLoaded: (round: number) => void,
  ) {
    this.provider = provider;
    this.#load = load;
    this.#rows = rows;
    this.#log = log;
    this.#onLoaded = onLoaded;
    provider.beforeSwitch = () => this.#untilSwitched();
  }

  /**
   * Loads the policies for the first time. `log` gets failures, but not the problems of policies, which the primary
   * process logs. `onLoaded` is called when the policies of a round are loaded. Rejects with StartError.
   */
  static async open(
    settings: Settings,
    log: Logger,
    { kept, rows: blocks, updates }: PolicyHandover,
    onLoaded: (round: number) => void,
  ): Promise<WorkerPolicies> {
    const rows = new Map(Array.from(blocks, ([address, bytes]) => [address, bytes.map(inSharedMemory)]));
    const silent = log.child({}, { level: 'silent' });
    if (settings.configType === 'GRPC_XDS_SOTW') {
      const { receiveXdsPolicies } = await import('../policies/xds-policies.js');
      const provider = receiveXdsPolicies(settings, silent);
      await provider.receive(updates);
      return new WorkerPolicies(provider, (_rows, next) => provider.receive(next), rows, log, onLoaded);
    }
    const places = [policyPlace(settings)];
    const options = loadOptions(settings);
    let current: ReadonlyMap<string, PlanBytes> = rows;
    const loader = new ThreadPolicyLoader(places, options, () => current);
    const previous = kept && previousOf(kept);
    const initial = await firstLoad(places, { ...options, rows }, loader, previous);
    // The primary process, which has not noticed this yet, hands the policies in effect over to the next worker.
    if (initial.errors.length > 0 && kept === undefined)
      throw new StartError([...initial.errors.map(formatProblem), INVALID_SINCE]);
    const provider = new FilePolicyProvider(places, initial, loader);
    const load: Load = (next) => {
      current = next;
      return provider.reload('change');
    };
    return new WorkerPolicies(provider, load, rows, log, onLoaded);
  }

  /** Takes a block of the rows at an address, which the next load uses. */
  addRows(address: string, at: number, bytes: Uint8Array): void {
    if (at === 0) this.#newRows.set(address, []);
    this.#newRows.get(address)?.push(inSharedMemory(bytes));
  }

  /** Loads the policies of a round. They take effect when {@link switchTo} is called. */
  load(round: number, updates: readonly XdsUpdate[]): Promise<void> {
    const rows = new Map([...this.#rows, ...this.#newRows]);
    this.#newRows.clear();
    this.#rows = rows;
    this.#loading = this.#loading.then(async () => {
      this.#round = round;
      try {
        await this.#load(rows, updates);
      } catch (error) {
        this.#log.error({ err: error }, 'unexpected error');
      }
      // The policies have not changed, or are already in effect.
      this.#onLoaded(round);
    });
    return this.#loading;
  }

  /** Lets the policies of a round take effect, also if they are not loaded yet. */
  switchTo(round: number): void {
    this.#switched = round;
    this.#onSwitch();
  }

  #untilSwitched(): Promise<void> {
    this.#onLoaded(this.#round);
    return new Promise((resolve) => {
      this.#onSwitch = () => {
        if (this.#switched >= this.#round) resolve();
      };
      this.#onSwitch();
    });
  }
}

/** Returns policies that the primary process has handed over, as the result of an earlier load. */
function previousOf({ version, batches, memory }: KeptPolicies): PreviousPolicies {
  const domains = runToCompletion(buildBatches(batches, { compiles: true }));
  return { policySet: { domains, version }, memory };
}

/** Returns a copy that threads read without another copy. */
function inSharedMemory(bytes: Uint8Array): Uint8Array {
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  return shared;
}
