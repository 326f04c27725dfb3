/* Changes during calls: reloads and xDS updates. Also contains a debug log without a reader. */
import { renameSync } from 'node:fs';
import { RATE_LIMIT_CONFIG_TYPE } from '../../../src/config/xds/discovery.js';
import type { Attack } from '../../attack/attacker/attack.js';
import { anyValuePolicy, INNOCENT, largePolicy } from '../../attack/policy-texts.js';
import { descriptor, field, request } from '../../attack/wire.js';
import { encodeConfig } from '../../support/xds/xds-server.js';
import type { StallGroup } from '../stall-case.js';

const RULES = 10_000;
const PAUSE_MS = 300;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

const ordinaryCalls = (domain: string, streams: number): Attack[] => {
  const messages = Array.from({ length: 100 }, (_, n) => request(domain, descriptor(['v', `v${n}`])));
  return [{ kind: 'grpc', messages, streams, connections: 1 }];
};

export const RELOAD_GROUP: StallGroup = {
  setup: { name: '10,000 rules', files: { 'large.yaml': largePolicy('large', RULES) } },
  cases: [
    {
      name: 'reload of 10,000 rules during calls',
      attacks: () => ordinaryCalls('large', 2),
      background: async ({ policies }, ended) => {
        let bytes = 0;
        for (let reload = 0; !ended(); reload++) {
          const text = largePolicy('large', RULES - (reload % 2), String(reload));
          policies.write('large.yaml', text);
          bytes += text.length;
          await pause();
        }
        return bytes;
      },
    },
  ],
};

const ROWS = 1_000_000;
const PLANNED_POLICY = `
domain: planned
plans: { by: v, from: rows.csv, default: free, define: { free: { calls: 4000000000 }, gold: { calls: 4000000000 } } }
descriptors: [{ key: v, rate_limit: { unit: second, requests_per_unit: { plan: calls } } }]
`;
const planTable = (plan: string): string =>
  `v,plan\n${Array.from({ length: ROWS }, (_, n) => `v${n},${plan}\n`).join('')}`;

export const PLANS_GROUP: StallGroup = {
  setup: {
    name: '1,000,000 rows of plans',
    files: { 'planned.yaml': PLANNED_POLICY, 'rows.csv': planTable('free') },
  },
  cases: [
    {
      name: 'reload of 1,000,000 rows of plans during calls',
      attacks: () => ordinaryCalls('planned', 2),
      background: async ({ policies, weir }, ended) => {
        const reloads = (): number => weir.log().filter(({ msg }) => msg === 'policy reloaded').length;
        const texts = [planTable('gold'), planTable('free')];
        let bytes = 0;
        for (let reload = 0; !ended(); reload++) {
          const text = texts[reload % 2] as string;
          const before = reloads();
          renameSync(policies.write('rows.tmp', text), policies.join('rows.csv'));
          bytes += text.length;
          while (reloads() === before) await pause();
        }
        return bytes;
      },
    },
  ],
};

/** Encodes a google.protobuf.Any as a field of a DiscoveryResponse. */
const resource = (config: Uint8Array): Buffer =>
  field(2, Buffer.concat([field(1, RATE_LIMIT_CONFIG_TYPE), field(2, config)]));

/** Encodes a DiscoveryResponse whose resources are already encoded. */
function update(version: string, resources: Uint8Array): Buffer {
  return Buffer.concat([
    ...[field(1, version), resources],
    ...[field(4, RATE_LIMIT_CONFIG_TYPE), field(5, version)],
  ]);
}

const innocentConfig = (): Buffer =>
  encodeConfig({
    name: INNOCENT,
    domain: INNOCENT,
    descriptors: [{ key: 'caller', rate_limit: { unit: 'DAY', requests_per_unit: 4_000_000_000 } }],
  }).bytes;

/** Sends an update repeatedly, each time with a new version. Waits for weir's answer to each update. */
function updates(resources: () => Uint8Array): NonNullable<StallGroup['cases'][number]['background']> {
  return async ({ ads }, ended) => {
    const peer = ads?.peers.at(-1);
    if (peer === undefined) throw new Error('weir is not connected to the management server');
    const all = resources();
    let bytes = 0;
    for (let version = 0; !ended(); version++) {
      const received = peer.requests.length;
      const message = update(`${version}`, all);
      peer.sendBytes(message);
      bytes += message.length;
      while (!ended() && peer.requests.length === received) await pause();
    }
    return bytes;
  };
}

export const XDS_GROUP: StallGroup = {
  setup: { name: 'policies from a management server', files: {}, xds: true },
  cases: [
    {
      name: 'xDS, 10,000 resources',
      background: updates(() =>
        Buffer.concat([
          resource(innocentConfig()),
          ...Array.from({ length: RULES }, (_, n) =>
            resource(encodeConfig({ name: `c${n}`, domain: `d${n}`, descriptors: [{ key: 'k' }] }).bytes),
          ),
        ]),
      ),
    },
  ],
};

export const LOG_GROUP: StallGroup = {
  setup: {
    name: 'debug log without a reader',
    files: { 'any.yaml': anyValuePolicy('any') },
    env: { LOG_LEVEL: 'debug' },
    readsOutput: false,
  },
  cases: [
    {
      name: 'debug log without a reader',
      attacks: () => ordinaryCalls('any', 64),
    },
  ],
};
