/* Changes during calls: reloads, updates of a management server, and a log that is not read. */
import { RATE_LIMIT_CONFIG_TYPE } from '../../../src/config/xds/discovery.js';
import { encodeConfig } from '../../support/xds/xds-server.js';
import type { Attack } from '../attack/attack.js';
import { anyValuePolicy, INNOCENT, largePolicy } from '../policy-texts.js';
import type { StallGroup } from '../stall-case.js';
import { descriptor, field, repeat, request } from '../wire.js';

const RULES = 10_000;
const PAUSE_MS = 300;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

const usualCalls = (domain: string): Attack => ({
  kind: 'grpc',
  messages: Array.from({ length: 100 }, (_, n) => request(domain, descriptor(['v', `v${n}`]))),
  streams: 2,
});

export const RELOAD_GROUP: StallGroup = {
  setup: { name: '10,000 rules', files: { 'large.yaml': largePolicy('large', RULES) } },
  cases: [
    {
      name: 'reload of 10,000 rules beside calls',
      attack: () => usualCalls('large'),
      connections: [1],
      beside: async ({ policies }, ended) => {
        let bytes = 0;
        for (let turn = 0; !ended(); turn++) {
          const text = largePolicy('large', RULES - (turn % 2), String(turn));
          policies.write('large.yaml', text);
          bytes += text.length;
          await pause();
        }
        return bytes;
      },
    },
  ],
};

/** google.protobuf.Any, as a field of DiscoveryResponse. */
const resource = (config: Uint8Array): Buffer =>
  field(2, Buffer.concat([field(1, RATE_LIMIT_CONFIG_TYPE), field(2, config)]));

const EMPTY_RESOURCE = Buffer.of(0x12, 0);
const UPDATE_BYTES = 4_194_000;

/** DiscoveryResponse of resources that are encoded already. */
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

/** Sends an update again and again, each as a version of its own, but never more than one that was not acknowledged. */
function updates(resources: () => Uint8Array): NonNullable<StallGroup['cases'][number]['beside']> {
  return async ({ ads }, ended) => {
    const peer = ads?.peers.at(-1);
    if (peer === undefined) throw new Error('weir asks no management server');
    const all = resources();
    let bytes = 0;
    for (let turn = 0; !ended(); turn++) {
      const asked = peer.requests.length;
      const message = update(`${turn}`, all);
      peer.sendBytes(message);
      bytes += message.length;
      while (!ended() && peer.requests.length === asked) await pause();
    }
    return bytes;
  };
}

export const XDS_GROUP: StallGroup = {
  setup: { name: 'policies of a management server', files: {}, xds: true },
  cases: [
    {
      name: 'xDS, 10,000 resources',
      connections: [1],
      beside: updates(() =>
        Buffer.concat([
          resource(innocentConfig()),
          ...Array.from({ length: RULES }, (_, n) =>
            resource(encodeConfig({ name: `c${n}`, domain: `d${n}`, descriptors: [{ key: 'k' }] }).bytes),
          ),
        ]),
      ),
    },
    {
      name: 'xDS, 20,000 bad resources',
      connections: [1],
      beside: updates(() =>
        Buffer.concat([
          resource(innocentConfig()),
          ...Array.from({ length: 20_000 }, (_, n) =>
            resource(encodeConfig({ name: `b${n}`, domain: '', descriptors: [{ key: '' }] }).bytes),
          ),
        ]),
      ),
    },
    {
      name: 'xDS, 4 MB of empty resources',
      connections: [1],
      beside: updates(() => repeat(EMPTY_RESOURCE, UPDATE_BYTES)),
    },
  ],
};

export const LOG_GROUP: StallGroup = {
  setup: {
    name: 'a debug log that nobody reads',
    files: { 'any.yaml': anyValuePolicy('any') },
    env: { LOG_LEVEL: 'debug' },
    readsOutput: false,
  },
  cases: [
    {
      name: 'debug log, nobody reads',
      attack: () => ({ ...usualCalls('any'), streams: 64 }) as Attack,
    },
    {
      name: 'debug log, nobody reads, values of 60 KB',
      attack: () => ({
        kind: 'grpc',
        messages: [request('any', descriptor(['v', 'v'.repeat(61_440)]))],
        streams: 4,
      }),
    },
  ],
};
