/*
 * The thread of an attacker: takes an AttackOrder at a time, says when nothing is under way any more, and lets go when
 * it is told to.
 */
import { parentPort } from 'node:worker_threads';
import { type AttackConnection, type AttackOrder, type AttackResult, Tally } from './attack.js';
import { FrameFlood } from './frame-flood.js';
import { GrpcFlood } from './grpc-flood.js';
import { HttpFlood } from './http-flood.js';

function connection({ attack, port }: AttackOrder, tally: Tally): AttackConnection {
  switch (attack.kind) {
    case 'grpc':
      return new GrpcFlood(port, attack, tally);
    case 'http':
      return new HttpFlood(port, attack, tally);
    case 'frames':
      return new FrameFlood(port, attack, tally);
  }
}

const LOOK_MS = 5;
/** How long what is under way at the end may take. */
const PATIENCE_MS = 3000;

let connections: AttackConnection[] = [];
let tally = new Tally();

function result(): AttackResult {
  return {
    bytes: connections.reduce((sum, { bytes }) => sum + bytes, 0),
    opened: connections.reduce((sum, { opened }) => sum + opened, 0),
    answers: tally.counts,
  };
}

parentPort?.on('message', (order: AttackOrder | 'let go') => {
  if (order === 'let go') {
    const found = result();
    for (const one of connections) one.destroy();
    parentPort?.postMessage({ result: found });
    return;
  }
  tally = new Tally();
  connections = Array.from({ length: order.connections }, () => connection(order, tally));
  const end = performance.now() + order.ms;
  let stopped = false;
  const look = setInterval(() => {
    const now = performance.now();
    if (now < end && !connections.every(({ done }) => done)) return;
    if (!stopped) for (const one of connections) one.stop();
    stopped = true;
    if (now < end + PATIENCE_MS && !connections.every(({ quiet }) => quiet)) return;
    clearInterval(look);
    parentPort?.postMessage('stopped');
  }, LOOK_MS);
});
