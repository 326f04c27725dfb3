import type { Random } from '../../fuzz/random.js';
import { descriptor } from '../../support/policy/decider.js';
import { type Answer, readAnswer } from './answer.js';
import type { Bucket } from './buckets.js';
import { type ClientOptions, encodeCall, PacedClient } from './paced-client.js';

/** Options of a caller. */
export interface CallerOptions extends ClientOptions {
  /** Buckets of each kind of request. No other caller uses the first bucket of a request. */
  readonly requests: readonly (readonly Bucket[])[];
}

/** An answered call. Times are in milliseconds of the test's clock. */
export interface AnsweredCall {
  readonly caller: PacedClient;
  readonly connection: number;
  readonly requested: readonly Bucket[];
  readonly sentMs: number;
  readonly endMs: number;
  readonly answer: Answer;
}

/** Receives the answers. */
export interface CallerEvents {
  sent(requested: readonly Bucket[]): void;
  answered(answered: AnsweredCall): void;
  connectionLost(caller: PacedClient, reason: string): void;
}

/** Sends requests for its buckets, chosen at random. */
export class Caller extends PacedClient {
  readonly options: CallerOptions;
  private readonly events: CallerEvents;
  private readonly messages: readonly Buffer[];

  constructor(options: CallerOptions, random: Random, events: CallerEvents) {
    super(random, (caller, reason) => events.connectionLost(caller, reason));
    this.options = options;
    this.events = events;
    this.messages = options.requests.map((buckets) =>
      encodeCall(buckets.map(({ name }) => descriptor([`bucket=${name}`]))),
    );
  }

  protected override sendNext(connection: number): void {
    const { requests } = this.options;
    const shape = this.random.below(requests.length);
    const requested = requests[shape] as readonly Bucket[];
    this.events.sent(requested);
    this.call(connection, this.messages[shape] as Buffer, (reply) => {
      const { sentMs, endMs } = reply;
      const answer = readAnswer(requested, reply);
      this.events.answered({ caller: this, connection, requested, sentMs, endMs, answer });
    });
  }
}
