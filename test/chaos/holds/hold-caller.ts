import type { Random } from '../../fuzz/random.js';
import { readAnswer } from '../calls/answer.js';
import type { CallerEvents } from '../calls/caller.js';
import { type ClientOptions, PacedClient } from '../calls/paced-client.js';
import type { HoldRounds } from './hold-rounds.js';

/** Starts and ends the requests of {@link HoldRounds}. Several callers share them, so any caller may end a request. */
export class HoldCaller extends PacedClient {
  readonly options: ClientOptions;
  private readonly rounds: HoldRounds;
  private readonly events: CallerEvents;

  constructor(options: ClientOptions, random: Random, events: CallerEvents, rounds: HoldRounds) {
    super(random, (caller, reason) => events.connectionLost(caller, reason));
    this.options = options;
    this.events = events;
    this.rounds = rounds;
  }

  protected override sendNext(connection: number): void {
    const { message, requested, isEnd, answered } = this.rounds.next(performance.now());
    this.call(connection, message, (reply) => {
      const answer = readAnswer(requested, reply);
      answered(reply, answer);
      if (isEnd) return;
      const { sentMs, endMs } = reply;
      this.events.answered({ caller: this, connection, requested, sentMs, endMs, answer });
    });
  }
}
