import type { TopRequest } from '../../admin/top/top-request.js';
import { CALL_BOUNDS, type CallAnswer, type CallMessage, type CallName, type Calls } from './calls.js';
import { machineMicros } from './machine-time.js';

/** Sends a part of an answer. Resolves once the part is sent. */
export type SendPart<Name extends CallName> = (part: Calls[Name]['part']) => Promise<void>;

/**
 * Handlers of a worker, by call name. `delayMicros` is the time that the call waited in the channel. A handler returns
 * undefined if it has no answer.
 */
export type CallHandlers = {
  readonly [Name in CallName]: (
    ask: Calls[Name]['ask'],
    sendPart: SendPart<Name>,
    delayMicros: number,
  ) => MaybePromise<Calls[Name]['answer'] | undefined>;
};

type MaybePromise<T> = T | Promise<T>;

/** Maximum number of rows in a part. */
export const ROWS_PER_PART = 64;

/** Sends rows in parts. */
export async function sendRows<Row>(
  rows: readonly Row[],
  sendPart: (part: readonly Row[]) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < rows.length; at += ROWS_PER_PART) await sendPart(rows.slice(at, at + ROWS_PER_PART));
}

/** Answers a call in a worker with one of `handlers`. `send` resolves once a message is sent. */
export async function answerCall(
  handlers: CallHandlers,
  { id, name, ask, sentMicros }: CallMessage,
  send: (message: CallAnswer) => Promise<void>,
): Promise<void> {
  const delayMicros = machineMicros() - sentMicros;
  if (delayMicros > CALL_BOUNDS[name].maxDelayMs * 1000) return send({ kind: 'late', id });
  // The compiler does not connect the type of `ask` with `name`.
  const handle = handlers[name] as CallHandlers['top'];
  const answer = await handle(ask as TopRequest, (part) => send({ kind: 'part', id, part }), delayMicros);
  return send({ kind: 'answer', id, answer });
}
