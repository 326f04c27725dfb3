import { stopAllProcesses } from '../support/process/processes.js';
import { toolPath } from '../support/process/tools.js';
import { measureBucketMemory } from '../support/redis/redis-memory.js';

/**
 * Measures the memory of a bucket in Redis. Creates 100,000 buckets of each kind, in the Redis of the tests and in the
 * oldest supported Redis, and prints the bytes of a bucket. To run it: `node build/test/bench/redis-memory.js`.
 */
const TENANTS = 100_000;
const NAME_LENGTHS = [8, 36];

async function main(): Promise<void> {
  for (const tool of ['redis-server', 'redis-server-old']) {
    console.log(`${tool}, ${TENANTS} tenants`);
    for (const { kind, nameLength, key, value, usageBytes, grownBytes } of await measureBucketMemory(
      toolPath(tool),
      TENANTS,
      NAME_LENGTHS,
    )) {
      const sizes = `MEMORY USAGE ${usageBytes} bytes, used_memory ${Math.round(grownBytes)} bytes each`;
      console.log(`${kind}, names of ${nameLength} characters: ${sizes}; ${key} = ${value}`);
    }
  }
  await stopAllProcesses();
}

void main();
