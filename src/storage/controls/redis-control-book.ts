import { StorageError } from '../../limiter/bucket-store.js';
import type {
  Control,
  ControlBook,
  ControlResult,
  ControlsChange,
  LiveControl,
  LostControls,
} from '../../limiter/control.js';
import { Signal } from '../../runtime/signal.js';
import type { RedisBuckets } from '../redis/redis-buckets.js';
import { ChangeQueue, type LogChanged } from './change-queue.js';
import { ControlLog, KEPT_MICROS, MAX_CHANGES, MAX_ROW_BYTES } from './control-log.js';
import { ControlReadLog } from './control-read-log.js';
import { type ControlsPolled, controlText } from './control-rows.js';
import { FirstRead } from './first-read.js';
import { controlName, LiveControls } from './live-controls.js';
import { TouchedKeys } from './touched-keys.js';

/** How often it is asked what is new. */
const POLL_MS = 500;
/** The same until all was read for the first time, as calls wait for that. */
const FIRST_POLL_MS = 20;
/** No mark of any log. */
const UNKNOWN_MARK = '-';

/** Settings of {@link RedisControlBook}. */
export interface RedisControlBookOptions {
  /** The Redis that keeps them. */
  readonly redis: Pick<RedisBuckets, 'runScript' | 'connected' | 'onUp'>;
  /** Default `weir:1:`. */
  readonly keyPrefix?: string | undefined;
  readonly monotonicMicros: () => number;
  readonly log: (level: 'info' | 'warn', message: string) => void;
  /** Some buckets were given tokens, and nobody knows which. */
  readonly onTouchedUnknown: () => void;
  /** For tests: most controls, and how often it is asked what is new, milliseconds. */
  readonly maxControls?: number;
  readonly pollMs?: number;
}

/** A control as Redis has it. */
interface KeptControl extends LiveControl {
  readonly version: number;
  /** When this process learnt of it, in events: questions, and changes that were made. */
  readonly learnedAtEvent: number;
}

/** When a question was asked: on the monotonic clock, and in events. */
interface PollStart {
  readonly micros: number;
  readonly at: number;
}

/**
 * Controls in Redis, for all processes that share it. Every process asks each half a second what is new, in one small
 * call while there is nothing; its own changes it knows at once. While Redis is away, what is known stays in force
 * until its end.
 *
 * When a control ends is reckoned from what is left of it by the clock of Redis, counted from before the question: no
 * clock but that one matters, and a control ends early by as long as the answer took, never late.
 */
export class RedisControlBook implements ControlBook {
  readonly isPersistent = true;
  readonly firstRead: FirstRead;
  readonly #options: RedisControlBookOptions;
  readonly #log: ControlLog;
  readonly #live: LiveControls<KeptControl>;
  readonly #changes: ChangeQueue;
  readonly #touched = new TouchedKeys((texts) => this.#tellTouched(texts));
  /** Of the log as it is known; '' before. */
  #mark = '';
  /** Up to which version it is known. */
  #readVersion = 0;
  /** While all is read anew: the names that were read so far. What is known stays in force until then. */
  #reread: Set<string> | undefined;
  /** Whether that is because Redis has lost what is known. */
  #isLogLost = false;
  /** When the log was last asked and answered, on the monotonic clock. */
  #readMicros = Number.NEGATIVE_INFINITY;
  /** Changes that this process has made, and that the log has not told of yet. */
  readonly #unconfirmed = new Map<string, { readonly version: number; readonly learnedAtEvent: number }>();
  /** Questions asked, and changes made. */
  #events = 0;
  #polling = false;
  #current = false;
  #pollAgain = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #complaints: ControlReadLog;
  readonly #lost = new Signal<LostControls>();
  /** Adds a listener that is told when Redis has lost controls that were in force. */
  readonly onLost = this.#lost.add;
  #closed = false;

  constructor(options: RedisControlBookOptions) {
    const { redis, keyPrefix, maxControls, monotonicMicros } = options;
    this.#options = options;
    this.#log = new ControlLog({ redis, keyPrefix, maxControls });
    this.#live = new LiveControls(monotonicMicros);
    this.#changes = new ChangeQueue((changes) => this.#log.change(changes), monotonicMicros);
    this.#complaints = new ControlReadLog(options.log);
    this.firstRead = new FirstRead((told) => this.#live.whenNotified(told));
    redis.onUp(() => {
      this.firstRead.begin();
      this.#pollSoon();
    });
    this.firstRead.begin();
    void this.#look();
  }

  get isCurrent(): boolean {
    return this.#current && this.#options.redis.connected;
  }

  async put(control: Control): Promise<ControlResult> {
    const { id, durationMicros } = control;
    const [name, text] = [controlName(control), controlText(control)];
    if (Buffer.byteLength(text) > MAX_ROW_BYTES)
      return new StorageError('rejected', 'the entries take too much room: name fewer of them');
    const made = await this.#changes.add({ what: 'c', name, durationMicros, id, text });
    if (made instanceof StorageError) return made;
    const { version, askedMicros } = made;
    if (version === 0) return 'full';
    if (this.#changed(name, version)) {
      const kept = {
        expiresAtMicros: askedMicros + durationMicros,
        version,
        learnedAtEvent: this.#events,
        ...control,
      };
      this.#live.apply({ set: new Map([[name, kept]]) });
    }
    return 'done';
  }

  async end(ids: readonly string[]): Promise<ControlResult | 'gone'> {
    let failure: StorageError | undefined;
    let gone = false;
    const endOne = async (id: string): Promise<void> => {
      const name = this.#live.nameOf(id);
      if (name === undefined) return;
      const made = await this.#changes.add({ what: 'g', name, durationMicros: 0, id, text: '' });
      if (made instanceof StorageError) {
        failure = made;
        return;
      }
      // Another one has taken its place, or somebody else has ended it: the log tells soon.
      if (made.version === 0) gone = true;
      if (made.version === 0 || this.#changed(name, made.version)) this.#live.apply({ ended: [id] });
    };
    for (let from = 0; from < ids.length; from += MAX_CHANGES) {
      await Promise.all(ids.slice(from, from + MAX_CHANGES).map(endOne));
    }
    this.#pollSoon();
    return failure ?? (gone ? 'gone' : 'done');
  }

  announceGrants(keys: readonly string[]): Promise<ControlResult> {
    this.#live.apply({ touched: keys });
    return this.#touched.add(keys);
  }

  onChange(listener: (change: ControlsChange) => void): void {
    this.#live.onChange(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.firstRead.end('given up');
    clearTimeout(this.#timer);
    this.#changes.close();
    this.#live.close();
  }

  async #tellTouched(texts: readonly string[]): Promise<ControlResult> {
    const add = (text: string): Promise<LogChanged | StorageError> =>
      this.#changes.add({ what: 't', name: '', durationMicros: 0, id: '-', text });
    for (const made of await Promise.all(texts.map(add))) {
      if (made instanceof StorageError) return made;
      if (made.version === 0) return 'full';
    }
    return 'done';
  }

  /** This process has changed an entry. Returns whether that is news: the log may have told of it already. */
  #changed(name: string, version: number): boolean {
    this.#pollSoon();
    if (this.#live.get(name)?.version === version) return false;
    this.#unconfirmed.set(name, { version, learnedAtEvent: ++this.#events });
    return true;
  }

  /** Asks now, or once more after the question at hand. */
  #pollSoon(): void {
    this.#pollAgain = true;
    if (!this.#polling) void this.#look();
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    this.#polling = true;
    let isMore = true;
    while ((isMore || this.#pollAgain) && !this.#closed) {
      this.#pollAgain = false;
      isMore = await this.#poll();
    }
    this.#polling = false;
    if (this.#closed) return;
    const pauseMs = this.firstRead.awaited === undefined ? (this.#options.pollMs ?? POLL_MS) : FIRST_POLL_MS;
    this.#timer = setTimeout(() => void this.#look(), pauseMs).unref();
  }

  /** Whether there is more to ask for. */
  async #poll(): Promise<boolean> {
    const { redis, monotonicMicros } = this.#options;
    const isFirst = this.firstRead.awaited !== undefined;
    if (!redis.connected && !isFirst) return false;
    const asked = { micros: monotonicMicros(), at: ++this.#events };
    const polled = await this.#log.poll(this.#mark, this.#readVersion, isFirst);
    if (this.#closed) return false;
    this.#complaints.note(polled instanceof StorageError ? polled : undefined);
    if (polled instanceof StorageError) {
      this.#current = false;
      this.firstRead.failed(polled);
      return false;
    }
    const { anew, at, version } = polled;
    // A log that somebody else has written to.
    const isStuck = !anew && at <= this.#readVersion && at < version;
    this.#apply(polled, asked);
    // Until all is read, and where the log was lost, there may be others.
    if (at >= version) this.#current = this.#mark !== UNKNOWN_MARK;
    if (at >= version || isStuck) this.firstRead.end('read');
    return (at < version && !isStuck) || this.#mark === UNKNOWN_MARK;
  }

  #apply(polled: ControlsPolled, asked: PollStart): void {
    const { anew, rows, at, version, mark } = polled;
    if (anew) {
      this.#isLogLost ||= this.#isLoss(polled, asked);
      this.#reread = new Set();
      this.#mark = mark;
      this.#options.onTouchedUnknown();
    }
    this.#readVersion = at;
    this.#readMicros = asked.micros;
    const set = new Map<string, KeptControl>();
    const ended: string[] = [];
    const touched: string[] = [];
    for (const { what, name, version: rowVersion, expiresAtMicros } of rows) {
      if (what.kind === 'touched') {
        if (what.keys === undefined) this.#options.onTouchedUnknown();
        else for (const key of what.keys) touched.push(key);
        continue;
      }
      if ((this.#unconfirmed.get(name)?.version ?? Infinity) <= rowVersion) this.#unconfirmed.delete(name);
      const known = this.#live.get(name);
      // This process has changed it since the question.
      if (known !== undefined && known.learnedAtEvent > asked.at && known.version > rowVersion) continue;
      if (what.kind === 'ended') {
        // Maybe one of another id: there may have been others since.
        if (known !== undefined) ended.push(known.id);
        continue;
      }
      this.#reread?.add(name);
      const { control } = what;
      if (known?.id === control.id && known.version === rowVersion) continue;
      const mine = {
        expiresAtMicros: asked.micros + expiresAtMicros - polled.nowMicros,
        learnedAtEvent: asked.at,
      };
      set.set(name, { version: rowVersion, ...mine, ...control });
    }
    if (at >= version) {
      this.#mark = this.#isLost(asked) ? UNKNOWN_MARK : mark;
      for (const { id } of this.#missingAfterReread(asked)) ended.push(id);
      if (this.#isLogLost) this.#tellLost(asked);
      this.#isLogLost = false;
      this.#reread = undefined;
    }
    this.#live.apply({ set, ended, touched });
  }

  /**
   * Whether a log that does not know the mark has lost what is known here. Else it is the same one, with changes since,
   * and has forgotten the mark, as this process was away for longer than changes are kept.
   */
  #isLoss({ version }: ControlsPolled, asked: PollStart): boolean {
    if (this.#mark === '') return false;
    return (
      this.#mark === UNKNOWN_MARK ||
      version <= this.#readVersion ||
      asked.micros - this.#readMicros < KEPT_MICROS / 2
    );
  }

  #tellLost(asked: PollStart): void {
    const lost = { block: 0, allow: 0 };
    for (const { kind, expiresAtMicros } of this.#missingAfterReread(asked))
      if (expiresAtMicros > asked.micros) lost[kind]++;
    if (lost.block + lost.allow > 0) this.#lost.emit(lost);
  }

  /** Whether the log lacks a change of this process, which it has made, and would have told of. */
  #isLost(asked: PollStart): boolean {
    let isLost = false;
    for (const [name, { learnedAtEvent }] of this.#unconfirmed) {
      if (learnedAtEvent > asked.at) continue;
      this.#unconfirmed.delete(name);
      isLost = this.#reread === undefined;
    }
    return isLost;
  }

  /** What was known before all was read anew, and is not kept any more. */
  *#missingAfterReread(asked: PollStart): Generator<KeptControl> {
    if (this.#reread === undefined) return;
    for (const [name, control] of this.#live.all) {
      if (!this.#reread.has(name) && control.learnedAtEvent < asked.at) yield control;
    }
  }
}
