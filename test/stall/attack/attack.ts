/** Data of an attacker, prepared so that sending it uses little CPU. Bytes are passed to a separate thread. */
export type Attack = GrpcAttack | HttpAttack | FrameAttack;

/** Calls of ShouldRateLimit by a client that obeys flow control; as one is answered, the next goes out. */
export interface GrpcAttack {
  readonly kind: 'grpc';
  /** Encoded requests, taken in turns. */
  readonly messages: readonly Uint8Array[];
  /** The messages are compressed already. */
  readonly gzip?: boolean;
  /** Calls under way on each connection. */
  readonly streams: number;
  /** grpc-timeout, such as `1S`. */
  readonly timeout?: string;
  /** Each call stops one byte before its end and stays as it is. */
  readonly incomplete?: boolean;
  /** Calls on each connection; unlimited if absent. */
  readonly calls?: number;
}

/** HTTP/1.1 requests, so many at once on a connection; as all are answered, the next go out. */
export interface HttpAttack {
  readonly kind: 'http';
  /** Of weir; `other` where the order alone says where it goes. */
  readonly port: 'http' | 'debug' | 'other';
  readonly request: Uint8Array;
  readonly pipelined: number;
  /** Answers are never read. */
  readonly unread?: boolean;
  /** Batches on each connection; unlimited if absent. */
  readonly batches?: number;
}

/** HTTP/2 frames, repeated as fast as the socket takes them, by a client that obeys nothing. */
export interface FrameAttack {
  readonly kind: 'frames';
  /** After preface and SETTINGS. */
  readonly once?: Uint8Array;
  /** Whole frames; those of a stream get ids of their own in each repetition. */
  readonly repeated: Uint8Array;
  /** Repetitions on a connection; unlimited if absent. */
  readonly times?: number;
  /** What comes back is never read. */
  readonly unread?: boolean;
}

export interface AttackOrder {
  readonly attack: Attack;
  /** Target port on 127.0.0.1. */
  readonly port: number;
  readonly connections: number;
  /** How long anything new is begun, unless all has been sent and answered before. */
  readonly ms: number;
}

/** Results of an attack. */
export interface AttackResult {
  /** That the kernel took. */
  readonly bytes: number;
  /** Connections opened; more than ordered where the server ended some. */
  readonly opened: number;
  /** How often each grpc-status, HTTP status, `reset` or `closed` came. */
  readonly answers: Readonly<Record<string, number>>;
}

/** One connection of an attacker. */
export interface AttackConnection {
  /** Sends nothing new from now on. */
  stop(): void;
  /** Closes the connection. */
  destroy(): void;
  /** Bytes that the kernel took so far, over all times that it was opened anew. */
  readonly bytes: number;
  readonly opened: number;
  /** Whether all that was ordered is sent and answered. */
  readonly done: boolean;
  /** Whether nothing is under way: what was begun is sent and, where anybody waits for answers, answered. */
  readonly quiet: boolean;
}

/** Counts the answers. */
export class Tally {
  readonly counts: Record<string, number> = {};

  add(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }
}
