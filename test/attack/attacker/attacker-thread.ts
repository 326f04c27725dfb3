/*
 * The attacker's thread. After an AttackOrder, it attacks and replies when no data or answer is pending. A Pace changes
 * the rate of a paced attack. After `finish`, it closes the connections and replies with the result.
 */
import { parentPort } from 'node:worker_threads';
import {
  type AimedAttack,
  type AttackConnection,
  type AttackOrder,
  type AttackResult,
  connectionsOf,
  type Pace,
  Tally,
} from './attack.js';
import { FrameFlood } from './frame-flood.js';
import { GrpcFlood } from './grpc-flood.js';
import { HttpFlood } from './http-flood.js';

/** Returns connection number `n` of an attack. A paced connection starts a call only after `startOne`. */
function connection({ attack, port }: AimedAttack, isPaced: boolean, n: number): AttackConnection {
  switch (attack.kind) {
    case 'grpc':
      return new GrpcFlood(port, isPaced ? { ...attack, calls: 0 } : attack, tally, n);
    case 'http':
      return new HttpFlood(port, isPaced ? { ...attack, batches: 0 } : attack, tally);
    case 'frames':
      return new FrameFlood(port, attack, tally);
  }
}

const POLL_MS = 5;
const PACE_MS = 1;
/** Maximum wait for pending data and answers after the end of an attack. */
const SETTLE_MS = 3000;

let connections: AttackConnection[] = [];
let tally = new Tally();
let callsPerSecond = 0;

/** Starts the calls that are due, one connection after the other. Returns the timer. */
function startPacing(): NodeJS.Timeout {
  let before = performance.now();
  let due = 0;
  let next = 0;
  return setInterval(() => {
    const now = performance.now();
    due += ((now - before) / 1000) * callsPerSecond;
    before = now;
    for (; due >= 1; due--) connections[next++ % connections.length]?.startOne();
  }, PACE_MS);
}

function result(): AttackResult {
  return {
    bytes: connections.reduce((sum, { bytes }) => sum + bytes, 0),
    opened: connections.reduce((sum, { opened }) => sum + opened, 0),
    answers: tally.counts,
  };
}

parentPort?.on('message', (order: AttackOrder | Pace | 'finish') => {
  if (order === 'finish') {
    const reply = { result: result() };
    for (const one of connections) one.destroy();
    parentPort?.postMessage(reply);
    return;
  }
  if ('callsPerSecond' in order) {
    callsPerSecond = order.callsPerSecond;
    return;
  }
  tally = new Tally();
  callsPerSecond = 0;
  const isPaced = order.isPaced === true;
  connections = order.attacks.flatMap((aimed) =>
    Array.from({ length: connectionsOf(aimed.attack) }, (_, n) => connection(aimed, isPaced, n)),
  );
  const pacing = isPaced ? startPacing() : undefined;
  const end = performance.now() + order.ms;
  let stopped = false;
  const poll = setInterval(() => {
    const now = performance.now();
    if (now < end && (isPaced || !connections.every(({ done }) => done))) return;
    clearInterval(pacing);
    if (!stopped) for (const one of connections) one.stop();
    stopped = true;
    if (now < end + SETTLE_MS && !connections.every(({ idle }) => idle)) return;
    clearInterval(poll);
    parentPort?.postMessage('stopped');
  }, POLL_MS);
});
