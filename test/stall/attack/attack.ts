/** Data that an attacker sends. The bytes are prepared in advance, so that the attacker's thread needs little CPU. */
export type Attack = GrpcAttack | HttpAttack | FrameAttack;

/** ShouldRateLimit calls by a client that obeys flow control. A new call starts as soon as an earlier call ends. */
export interface GrpcAttack {
  readonly kind: 'grpc';
  /** Encoded requests, sent in rotation. */
  readonly messages: readonly Uint8Array[];
  /** Whether the messages are already compressed. */
  readonly gzip?: boolean;
  /** Number of concurrent calls on each connection. */
  readonly streams: number;
  /** Value of the grpc-timeout header, such as `1S`. */
  readonly timeout?: string;
  /** Whether each call stops one byte before its end and stays open. */
  readonly incomplete?: boolean;
  /** Maximum number of calls on each connection. Unlimited if absent. */
  readonly calls?: number;
}

/** Pipelined HTTP/1.1 requests. The next batch is sent when all requests of a batch are answered. */
export interface HttpAttack {
  readonly kind: 'http';
  /** weir's port, or `other` for the port in the AttackOrder. */
  readonly port: 'http' | 'debug' | 'other';
  readonly request: Uint8Array;
  /** Number of requests in a batch. */
  readonly pipelined: number;
  /** Whether the attacker never reads the answers. */
  readonly unread?: boolean;
  /** Maximum number of batches on each connection. Unlimited if absent. */
  readonly batches?: number;
}

/** HTTP/2 frames, repeated as fast as the socket accepts them, by a client that ignores flow control and settings. */
export interface FrameAttack {
  readonly kind: 'frames';
  /** Frames that are sent once, after the preface and SETTINGS. */
  readonly once?: Uint8Array;
  /** Complete frames. Each repetition uses new stream ids. */
  readonly repeated: Uint8Array;
  /** Maximum number of repetitions on a connection. Unlimited if absent. */
  readonly times?: number;
  /** Whether the attacker never reads the server's frames. */
  readonly unread?: boolean;
}

/** An attack with its target and duration. */
export interface AttackOrder {
  readonly attack: Attack;
  /** Target port on 127.0.0.1. */
  readonly port: number;
  readonly connections: number;
  /** Duration, unless all data is sent and answered earlier. */
  readonly ms: number;
}

/** Results of an attack. */
export interface AttackResult {
  /** Number of bytes that the kernel accepted. */
  readonly bytes: number;
  /** Number of opened connections, including those that replaced connections closed by the server. */
  readonly opened: number;
  /** Count of each answer: a grpc-status, an HTTP status, `reset` or `closed`. */
  readonly answers: Readonly<Record<string, number>>;
}

/** One connection of an attacker. */
export interface AttackConnection {
  /** Starts no new calls, requests or repetitions. */
  stop(): void;
  /** Closes the connection. */
  destroy(): void;
  /** Number of bytes that the kernel accepted so far, including earlier connections that the server closed. */
  readonly bytes: number;
  readonly opened: number;
  /** Whether the whole attack is sent and answered. */
  readonly done: boolean;
  /** Whether all started data is sent and, if the attack waits for answers, answered. */
  readonly idle: boolean;
}

/** Counts answers by their status. */
export class Tally {
  readonly counts: Record<string, number> = {};

  add(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }
}
