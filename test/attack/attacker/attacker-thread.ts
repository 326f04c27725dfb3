/*
 * The attacker's thread. After an AttackOrder, it attacks and replies when no data or answer is pending. After
 * `finish`, it closes the connections and replies with the result.
 */
import { parentPort } from 'node:worker_threads';
import {
  type AimedAttack,
  type AttackConnection,
  type AttackOrder,
  type AttackResult,
  connectionsOf,
  Tally,
} from './attack.js';
import { FrameFlood } from './frame-flood.js';
import { GrpcFlood } from './grpc-flood.js';
import { HttpFlood } from './http-flood.js';

/** Returns connection number `n` of an attack. */
function connection({ attack, port }: AimedAttack, n: number): AttackConnection {
  switch (attack.kind) {
    case 'grpc':
      return new GrpcFlood(port, attack, tally, n);
    case 'http':
      return new HttpFlood(port, attack, tally);
    case 'frames':
      return new FrameFlood(port, attack, tally);
  }
}

const POLL_MS = 5;
/** Maximum wait for pending data and answers after the end of an attack. */
const SETTLE_MS = 3000;

let connections: AttackConnection[] = [];
let tally = new Tally();

function result(): AttackResult {
  return {
    bytes: connections.reduce((sum, { bytes }) => sum + bytes, 0),
    answers: tally.counts,
  };
}

parentPort?.on('message', (order: AttackOrder | 'finish') => {
  if (order === 'finish') {
    const reply = { result: result() };
    for (const one of connections) one.destroy();
    parentPort?.postMessage(reply);
    return;
  }
  tally = new Tally();
  connections = order.attacks.flatMap((aimed) =>
    Array.from({ length: connectionsOf(aimed.attack) }, (_, n) => connection(aimed, n)),
  );
  const end = performance.now() + order.ms;
  let stopped = false;
  const poll = setInterval(() => {
    const now = performance.now();
    if (now < end && !connections.every(({ done }) => done)) return;
    if (!stopped) for (const one of connections) one.stop();
    stopped = true;
    if (now < end + SETTLE_MS && !connections.every(({ idle }) => idle)) return;
    clearInterval(poll);
    parentPort?.postMessage('stopped');
  }, POLL_MS);
});
