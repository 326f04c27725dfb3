import type { TopAsk } from '../../admin/top/top-ask.js';
import { CALL_BOUNDS, type CallAnswer, type CallMessage, type CallName, type Calls } from './calls.js';
import { machineMicros } from './channel.js';

/** Sends a part of an answer; resolves once it is on its way. */
export type TellPart<Name extends CallName> = (part: Calls[Name]['part']) => Promise<void>;

/** Answers calls in a worker that were on their way for `lateMicros`; with undefined where it has nothing to tell. */
export type CallHandlers = {
  readonly [Name in CallName]: (
    ask: Calls[Name]['ask'],
    tell: TellPart<Name>,
    lateMicros: number,
  ) => MaybePromise<Calls[Name]['answer'] | undefined>;
};

type MaybePromise<T> = T | Promise<T>;

/** So many rows go into a part. */
export const ROWS_A_PART = 64;

/** Tells rows in parts. */
export async function tellRows<Row>(
  rows: readonly Row[],
  tell: (part: readonly Row[]) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < rows.length; at += ROWS_A_PART) await tell(rows.slice(at, at + ROWS_A_PART));
}

/** Answers a call in a worker with one of `handlers`; `send` resolves once a message is on its way. */
export async function answerCall(
  handlers: CallHandlers,
  { id, name, ask, sentMicros }: CallMessage,
  send: (message: CallAnswer) => Promise<void>,
): Promise<void> {
  const lateMicros = machineMicros() - sentMicros;
  if (lateMicros > CALL_BOUNDS[name].readWithinMs * 1000) return send({ kind: 'late', id });
  // The compiler does not see that a name goes with what is asked under it.
  const handle = handlers[name] as CallHandlers['top'];
  const answer = await handle(ask as TopAsk, (part) => send({ kind: 'part', id, part }), lateMicros);
  return send({ kind: 'answer', id, answer });
}
