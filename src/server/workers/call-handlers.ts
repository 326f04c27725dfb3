import type { TopAsk } from '../../admin/top/top-ask.js';
import { CALL_BOUNDS, type CallAnswer, type CallMessage, type CallName, type Calls } from './calls.js';
import { machineMicros } from './channel.js';

/** Sends a part of an answer; resolves once it is on its way. */
export type SendPart<Name extends CallName> = (part: Calls[Name]['part']) => Promise<void>;

/** Answers calls in a worker that were on their way for `delayMicros`; with undefined where it has nothing to tell. */
export type CallHandlers = {
  readonly [Name in CallName]: (
    ask: Calls[Name]['ask'],
    sendPart: SendPart<Name>,
    delayMicros: number,
  ) => MaybePromise<Calls[Name]['answer'] | undefined>;
};

type MaybePromise<T> = T | Promise<T>;

/** So many rows go into a part. */
export const ROWS_PER_PART = 64;

/** Tells rows in parts. */
export async function sendRows<Row>(
  rows: readonly Row[],
  sendPart: (part: readonly Row[]) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < rows.length; at += ROWS_PER_PART) await sendPart(rows.slice(at, at + ROWS_PER_PART));
}

/** Answers a call in a worker with one of `handlers`; `send` resolves once a message is on its way. */
export async function answerCall(
  handlers: CallHandlers,
  { id, name, ask, sentMicros }: CallMessage,
  send: (message: CallAnswer) => Promise<void>,
): Promise<void> {
  const delayMicros = machineMicros() - sentMicros;
  if (delayMicros > CALL_BOUNDS[name].maxDelayMs * 1000) return send({ kind: 'late', id });
  // The compiler does not see that a name goes with what is asked under it.
  const handle = handlers[name] as CallHandlers['top'];
  const answer = await handle(ask as TopAsk, (part) => send({ kind: 'part', id, part }), delayMicros);
  return send({ kind: 'answer', id, answer });
}
