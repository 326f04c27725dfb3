import { expect, test } from '@jest/globals';
import { freePorts } from '../../support/process/free-port.js';

test('a test process chooses ports that no other process of the run chooses, and each only once', async () => {
  const ports = await freePorts(50);
  expect(new Set(ports).size).toBe(50);
  const lane = Number(process.env['JEST_WORKER_ID']) % 16;
  expect(new Set(ports.map((port) => port % 16))).toEqual(new Set([lane]));
  // The second port of a node of a Redis Cluster is in the same lane.
  const [port = 0] = await freePorts(1, 10_000);
  expect([port % 16, (port + 10_000) % 16]).toEqual([lane, lane]);
});
