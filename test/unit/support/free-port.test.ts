import { createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import { freePorts, LANE, LANES } from '../../support/process/free-port.js';

test('a test process chooses ports that no other process of the machine chooses, and each only once', async () => {
  const ports = await freePorts(50);
  expect(new Set(ports).size).toBe(50);
  expect(LANE).toBeGreaterThan(0);
  expect(new Set(ports.map((port) => port % LANES))).toEqual(new Set([LANE]));
  // The second port of a node of a Redis Cluster is in the same lane.
  const [port = 0] = await freePorts(1, 10_000);
  expect([port % LANES, (port + 10_000) % LANES]).toEqual([LANE, LANE]);
  const code = await new Promise((resolve) => {
    createServer()
      .once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
      .listen(`\0weir-test-ports-${LANE}`, () => resolve('not reserved'));
  });
  expect(code).toBe('EADDRINUSE');
});

test('calls at the same time choose different ports', async () => {
  const chosen = await Promise.all(Array.from({ length: 100 }, () => freePorts(1)));
  expect(new Set(chosen.flat()).size).toBe(100);
});

test('a long process gets the ports of stopped servers again', async () => {
  const ports: number[] = [];
  for (let i = 0; i < 8; i++) ports.push(...(await freePorts(100)));
  // A lane has about 450 ports.
  expect(ports).toHaveLength(800);
  expect(new Set(ports).size).toBeLessThan(800);
});
