import { isAscii } from 'node:buffer';
import { on } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { assetPath } from '../../assets.js';
import { threadError } from '../../working-directory.js';
import type { Columns } from './columns.js';
import type { LogFormat } from './log-format.js';
import { LogError, type LoggedBatch, type LoggedRequest, type LogOptions } from './logged-request.js';
import type { PackedBatch } from './read/request-reader.js';

const THREAD = 'src/replay/log/reading-thread.js';

/** The first message of the thread: the formats of the files, and the members of their first lines. */
type OpenedLog = Pick<OpenLog, 'formats' | 'members'>;

/** A message of the thread that reads. */
export type ThreadMessage =
  | OpenedLog
  | { readonly batch: PackedBatch }
  | { readonly fault: string }
  | { readonly end: true };

/** A log whose formats are known. A thread reads it, some batches ahead. */
export class OpenLog {
  /** The formats of the files, each once. */
  readonly formats: readonly LogFormat[];
  /** Names of the members of the first lines, if they are JSON, with dots before those of nested objects. */
  readonly members: readonly string[];
  readonly #thread: Worker;
  readonly #messages: AsyncIterator<ThreadMessage>;

  /** Use {@link openLog}. */
  constructor(thread: Worker, messages: AsyncIterator<ThreadMessage>, opened: OpenedLog) {
    this.#thread = thread;
    this.#messages = messages;
    this.formats = opened.formats;
    this.members = opened.members;
  }

  /**
   * Reads the requests, with the values of `columns`. The last batch has the totals of the whole log. Call it once.
   * Throws {@link LogError}.
   */
  async *requests({ operators }: Columns): AsyncGenerator<LoggedBatch> {
    this.#thread.postMessage(operators);
    try {
      for (;;) {
        // Otherwise, signals would wait until no message is left.
        await setImmediate();
        const message = await nextMessage(this.#messages);
        if (!('batch' in message)) return;
        this.#thread.postMessage('next');
        yield unpack(message.batch, operators.length);
      }
    } finally {
      await this.close();
    }
  }

  /** Stops reading. */
  async close(): Promise<void> {
    await this.#thread.terminate();
  }
}

/**
 * Opens a log, and chooses the format of each file by its first lines. Throws {@link LogError}, also if `interrupt`
 * aborts the wait for them.
 */
export async function openLog(options: LogOptions, interrupt?: AbortSignal): Promise<OpenLog> {
  const thread = new Worker(assetPath(THREAD), { name: 'log', workerData: options });
  const messages = messagesOf(thread);
  const stop = (): void => void thread.terminate();
  interrupt?.addEventListener('abort', stop);
  try {
    const first = await nextMessage(messages);
    return new OpenLog(thread, messages, 'formats' in first ? first : { formats: [], members: [] });
  } catch (error) {
    await thread.terminate();
    if (interrupt?.aborted === true) throw new LogError('interrupted before the log had a line');
    throw error;
  } finally {
    interrupt?.removeEventListener('abort', stop);
  }
}

async function* messagesOf(thread: Worker): AsyncGenerator<ThreadMessage> {
  for await (const [message] of on(thread, 'message', { close: ['exit'] })) yield message as ThreadMessage;
}

async function nextMessage(messages: AsyncIterator<ThreadMessage>): Promise<ThreadMessage> {
  const next = await messages.next().catch((error: Error) => {
    throw threadError(error);
  });
  if (next.done === true) throw new Error('the thread that reads the log exited');
  if ('fault' in next.value) throw new LogError(next.value.fault);
  return next.value;
}

/** Returns the requests of a batch as objects. */
function unpack({ count, times, ends, bytes, totals }: PackedBatch, columns: number): LoggedBatch {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const encoding = isAscii(buffer) ? 'latin1' : 'utf8';
  const requests = new Array<LoggedRequest>(count);
  let start = 0;
  for (let i = 0; i < count; i++) {
    const end = ends[i] as number;
    // V8 stores a long part of a text as a reference to the whole text. A value that is kept longer than its batch then
    // keeps only the text of one request.
    const pieces = buffer.toString(encoding, start, end).split('\0');
    start = end;
    // Arrays that grow by push() reserve room for many more values.
    const values = new Array<string | undefined>(columns);
    for (let j = 0; j < columns; j++) {
      const piece = pieces[j] as string;
      values[j] = piece === '' ? undefined : piece === '\u0001' ? '' : piece;
    }
    requests[i] = {
      startMicros: times[2 * i] as number,
      precisionMicros: times[2 * i + 1] as number,
      values,
    };
  }
  return { requests, totals };
}
