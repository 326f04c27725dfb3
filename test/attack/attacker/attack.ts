/** Data that an attacker sends. The bytes are prepared in advance, so that the attacker's thread needs little CPU. */
export type Attack = (GrpcAttack | HttpAttack | FrameAttack) & { readonly connections?: number };

/** Number of connections of an attack that does not specify it. */
const CONNECTIONS = 16;

/** ShouldRateLimit calls by a client that obeys flow control. A new call starts as soon as an earlier call ends. */
export interface GrpcAttack {
  readonly kind: 'grpc';
  /** Encoded requests, sent in rotation. Each connection begins with another one. */
  readonly messages: readonly Uint8Array[];
  /** Whether the messages are already compressed. */
  readonly gzip?: boolean;
  /** Number of concurrent calls on each connection. */
  readonly streams: number;
  /** The grpc-timeout, in milliseconds. */
  readonly timeoutMs?: number;
  /** Whether each call stops one byte before its end and stays open. */
  readonly incomplete?: boolean;
  /** Maximum number of calls on each connection. Unlimited if absent. */
  readonly calls?: number;
}

/** Pipelined HTTP/1.1 requests. The next batch is sent when all requests of a batch are answered. */
export interface HttpAttack {
  readonly kind: 'http';
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

/** Attacks that run at the same time, and their duration. */
export interface AttackOrder {
  readonly attacks: readonly AimedAttack[];
  /** Duration, unless all data is sent and answered earlier. */
  readonly ms: number;
}

/** An attack with its target. */
export interface AimedAttack {
  readonly attack: Attack;
  /** Target port on 127.0.0.1. */
  readonly port: number;
}

export function connectionsOf(attack: Attack): number {
  return attack.connections ?? CONNECTIONS;
}

/** Results of an attack. */
export interface AttackResult {
  /** Number of bytes that the kernel accepted. */
  readonly bytes: number;
  /** Count of each answer: a grpc-status, with the overall code of a decision, an HTTP status, `reset`, or `closed`. */
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
