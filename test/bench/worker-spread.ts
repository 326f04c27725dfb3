import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { stopAllProcesses } from '../support/process/processes.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir } from '../support/weir/weir.js';

/**
 * Measures how evenly each WORKER_SCHEDULING distributes connections among 4 workers. Opens 4, 8 and 64 connections,
 * and prints the number of connections of each worker, in descending order, for three attempts. To run it: `node
 * build/test/bench/worker-spread.js`.
 */
const WORKERS = 4;
const POLICY = 'domain: d\ndescriptors: [{ key: k, rate_limit: { unlimited: true } }]\n';

async function connectionsPerWorker(
  scheduling: string,
  connections: number,
  redisPort: number,
): Promise<string> {
  const server = await startWeir({
    policy: POLICY,
    env: {
      REDIS_URL: `127.0.0.1:${redisPort}`,
      WORKERS: String(WORKERS),
      WORKER_SCHEDULING: scheduling,
      LOG_LEVEL: 'debug',
    },
  });
  await waitFor('all workers', () => server.log().some(({ msg }) => msg === 'weir serves') || undefined);
  const clients = Array.from({ length: connections }, () => new RlsClient(server.grpcPort));
  await Promise.all(clients.map((client) => client.ask('d', [descriptor(['k=v'])])));
  const decided = await waitFor('every decision in the log', () => {
    const workers = server.log().flatMap(({ msg, worker }) => (msg === 'decision' ? [Number(worker)] : []));
    return workers.length === connections ? workers : undefined;
  });
  for (const client of clients) client.close();
  await server.stop();
  const counts = Array.from({ length: WORKERS }, (_, i) => decided.filter((id) => id === i + 1).length);
  return counts.sort((a, b) => b - a).join('-');
}

async function main(): Promise<void> {
  const redis = await startRedis();
  console.log(`connections per worker, ${WORKERS} workers, Node ${process.version}`);
  for (const scheduling of ['round-robin', 'kernel', 'reuse-port']) {
    for (const connections of [4, 8, 64]) {
      const tries: string[] = [];
      for (let i = 0; i < 3; i++) tries.push(await connectionsPerWorker(scheduling, connections, redis.port));
      console.log(
        `${scheduling.padEnd(12)} ${String(connections).padStart(3)} connections: ${tries.join('   ')}`,
      );
    }
  }
  await stopAllProcesses();
  await redis.stop();
}

void main();
