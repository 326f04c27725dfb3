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

/** Time between two polls, in milliseconds. */
const POLL_MS = 500;
/** Time between polls until the first complete read, because calls wait for it. */
const FIRST_POLL_MS = 20;
/** A mark that matches no log. */
const UNKNOWN_MARK = '-';

/** Settings of {@link RedisControlBook}. */
export interface RedisControlBookOptions {
  /** The Redis that stores the controls. */
  readonly redis: Pick<RedisBuckets, 'runScript' | 'connected' | 'onUp'>;
  /** Prefix of the key; default `weir:1:`. */
  readonly keyPrefix?: string | undefined;
  readonly monotonicMicros: () => number;
  readonly log: (level: 'info' | 'warn', message: string) => void;
  /** Called after operators refilled buckets that the log does not list individually. */
  readonly onTouchedUnknown: () => void;
  /** For tests: maximum number of controls, and the time between polls in milliseconds. */
  readonly maxControls?: number;
  readonly pollMs?: number;
}

/** A control as stored in Redis. */
interface KeptControl extends LiveControl {
  readonly version: number;
  /** The event (poll or change) that added this control. */
  readonly learnedAtEvent: number;
}

/** When a poll started: on the monotonic clock, and as an event. */
interface PollStart {
  readonly micros: number;
  readonly at: number;
}

/**
 * Controls in Redis, shared by all processes. Each process polls for changes every 0.5 s and applies its own changes at
 * once. A poll without changes is one small call. While Redis is unavailable, known controls stay active until they
 * end.
 *
 * The end of a control is computed from its remaining time on the clock of Redis, counted from the start of the poll.
 * No other clock matters. A control ends too early by the duration of the poll at most, and never too late.
 */
export class RedisControlBook implements ControlBook {
  readonly isPersistent = true;
  readonly firstRead: FirstRead;
  readonly #options: RedisControlBookOptions;
  readonly #log: ControlLog;
  readonly #live: LiveControls<KeptControl>;
  readonly #changes: ChangeQueue;
  readonly #touched = new TouchedKeys((texts) => this.#sendTouched(texts));
  /** Mark of the latest version that this process has read; '' before the first poll. */
  #mark = '';
  /** Version of the last log entry that this process has read. */
  #readVersion = 0;
  /**
   * The names read so far while the log is read again; undefined otherwise. Known controls stay active during that
   * time.
   */
  #reread: Set<string> | undefined;
  /** Whether the log is read again because Redis has lost controls. */
  #isLogLost = false;
  /** Monotonic time of the latest successful poll. */
  #readMicros = Number.NEGATIVE_INFINITY;
  /** Changes of this process that no poll has returned so far. */
  readonly #unconfirmed = new Map<string, { readonly version: number; readonly learnedAtEvent: number }>();
  /** Number of polls and changes. */
  #events = 0;
  #polling = false;
  #current = false;
  #pollAgain = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #readLog: ControlReadLog;
  readonly #lost = new Signal<LostControls>();
  /** Adds a listener for the event that Redis has lost active controls. */
  readonly onLost = this.#lost.add;
  #closed = false;

  constructor(options: RedisControlBookOptions) {
    const { redis, keyPrefix, maxControls, monotonicMicros } = options;
    this.#options = options;
    this.#log = new ControlLog({ redis, keyPrefix, maxControls });
    this.#live = new LiveControls(monotonicMicros);
    this.#changes = new ChangeQueue((changes) => this.#log.change(changes), monotonicMicros);
    this.#readLog = new ControlReadLog(options.log);
    this.firstRead = new FirstRead((notified) => this.#live.whenNotified(notified));
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
      return new StorageError('rejected', 'the entries are too large; specify fewer or shorter entries');
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
      // The control was replaced, or another process has ended it. The next poll returns that change.
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

  async #sendTouched(texts: readonly string[]): Promise<ControlResult> {
    const add = (text: string): Promise<LogChanged | StorageError> =>
      this.#changes.add({ what: 't', name: '', durationMicros: 0, id: '-', text });
    for (const made of await Promise.all(texts.map(add))) {
      if (made instanceof StorageError) return made;
      if (made.version === 0) return 'full';
    }
    return 'done';
  }

  /** Records that this process has changed an entry. Returns false if a poll has returned the change already. */
  #changed(name: string, version: number): boolean {
    this.#pollSoon();
    if (this.#live.get(name)?.version === version) return false;
    this.#unconfirmed.set(name, { version, learnedAtEvent: ++this.#events });
    return true;
  }

  /** Polls now, or once more after the current poll. */
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

  /** Polls once; returns whether there are more entries. */
  async #poll(): Promise<boolean> {
    const { redis, monotonicMicros } = this.#options;
    const isFirst = this.firstRead.awaited !== undefined;
    if (!redis.connected && !isFirst) return false;
    const start = { micros: monotonicMicros(), at: ++this.#events };
    const polled = await this.#log.poll(this.#mark, this.#readVersion, isFirst);
    if (this.#closed) return false;
    this.#readLog.note(polled instanceof StorageError ? polled : undefined);
    if (polled instanceof StorageError) {
      this.#current = false;
      this.firstRead.failed(polled);
      return false;
    }
    const { startsOver, at, version } = polled;
    // Another program has written to the log.
    const isStuck = !startsOver && at <= this.#readVersion && at < version;
    this.#apply(polled, start);
    // Before the whole log is read, or after it was lost, there may be other entries.
    if (at >= version) this.#current = this.#mark !== UNKNOWN_MARK;
    if (at >= version || isStuck) this.firstRead.end('read');
    return (at < version && !isStuck) || this.#mark === UNKNOWN_MARK;
  }

  #apply(polled: ControlsPolled, asked: PollStart): void {
    const { startsOver, rows, at, version, mark } = polled;
    if (startsOver) {
      this.#isLogLost ||= this.#hasLostControls(polled, asked);
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
      // This process has changed the control since the poll started.
      if (known !== undefined && known.learnedAtEvent > asked.at && known.version > rowVersion) continue;
      if (what.kind === 'ended') {
        // The known control may have another id, because another process may have replaced the control in between.
        if (known !== undefined) ended.push(known.id);
        continue;
      }
      this.#reread?.add(name);
      const { control } = what;
      if (known?.id === control.id && known.version === rowVersion) continue;
      const learned = {
        expiresAtMicros: asked.micros + expiresAtMicros - polled.nowMicros,
        learnedAtEvent: asked.at,
      };
      set.set(name, { version: rowVersion, ...learned, ...control });
    }
    if (at >= version) {
      this.#mark = this.#lacksOwnChange(asked) ? UNKNOWN_MARK : mark;
      for (const { id } of this.#missingAfterReread(asked)) ended.push(id);
      if (this.#isLogLost) this.#emitLost(asked);
      this.#isLogLost = false;
      this.#reread = undefined;
    }
    this.#live.apply({ set, ended, touched });
  }

  /**
   * Returns whether the log has lost known controls. If it has not, the mark is missing only because this process did
   * not poll for longer than the log keeps entries.
   */
  #hasLostControls({ version }: ControlsPolled, asked: PollStart): boolean {
    if (this.#mark === '') return false;
    return (
      this.#mark === UNKNOWN_MARK ||
      version <= this.#readVersion ||
      asked.micros - this.#readMicros < KEPT_MICROS / 2
    );
  }

  #emitLost(asked: PollStart): void {
    const lost = { block: 0, allow: 0 };
    for (const { kind, expiresAtMicros } of this.#missingAfterReread(asked))
      if (expiresAtMicros > asked.micros) lost[kind]++;
    if (lost.block + lost.allow > 0) this.#lost.emit(lost);
  }

  /** Returns whether the log lacks a change of this process that it should contain. */
  #lacksOwnChange(asked: PollStart): boolean {
    let isLost = false;
    for (const [name, { learnedAtEvent }] of this.#unconfirmed) {
      if (learnedAtEvent > asked.at) continue;
      this.#unconfirmed.delete(name);
      isLost = this.#reread === undefined;
    }
    return isLost;
  }

  /** Yields the known controls that the log no longer contains after it was read again. */
  *#missingAfterReread(asked: PollStart): Generator<KeptControl> {
    if (this.#reread === undefined) return;
    for (const [name, control] of this.#live.all) {
      if (!this.#reread.has(name) && control.learnedAtEvent < asked.at) yield control;
    }
  }
}
