import { describe, expect, test } from '@jest/globals';
import {
  type ClusterView,
  newestView,
  readView,
  redirectedEndpoint,
} from '../../../../../src/storage/redis/cluster/cluster-view.js';
import { RedisReplyError } from '../../../../../src/storage/redis/connection/redis-error.js';

const ASKED = { host: '10.0.0.9', port: 7000 };
const INFO = 'cluster_state:ok\r\ncluster_current_epoch:12\r\n';

/** The reply to CLUSTER SLOTS of a master with all slots. */
const rowOf = (...master: unknown[]): unknown[] => [[0, 16_383, master]];

describe('the view of a node', () => {
  test('contains masters, slots, ids and epoch', () => {
    const slots = [
      [0, 99, ['10.0.0.1', 7001, 'one', []], ['10.0.0.2', 7002, 'two', []]],
      [100, 199, ['::1', 7003, 'three', []]],
    ];
    expect(readView(ASKED, slots, INFO)).toEqual({
      from: '10.0.0.9:7000',
      epoch: 12,
      ids: new Set(['one', 'two', 'three']),
      ranges: [
        { first: 0, last: 99, master: { host: '10.0.0.1', port: 7001 } },
        { first: 100, last: 199, master: { host: '::1', port: 7003 } },
      ],
    });
  });

  test.each([
    ['null', null, [], '10.0.0.9'],
    ['an empty text', '', [], '10.0.0.9'],
    ['a question mark', '?', [], '10.0.0.9'],
    ['a question mark and an address', '?', ['ip', '10.0.0.3'], '10.0.0.3'],
    ['a name and an address', 'redis-1', ['ip', '10.0.0.3'], 'redis-1'],
  ])('contains a host that is %s', (_, host, more, expected) => {
    const { ranges } = readView(ASKED, rowOf(host, 7001, 'id', more), INFO);
    expect(ranges[0]?.master).toEqual({ host: expected, port: 7001 });
  });

  test('contains addresses if there are no ids', () => {
    expect(readView(ASKED, rowOf('10.0.0.1', 7001), '').ids).toEqual(new Set(['10.0.0.1:7001']));
  });

  test('has the oldest epoch if the node reports none', () => {
    expect(readView(ASKED, rowOf('10.0.0.1', 7001, 'id'), '').epoch).toBe(0);
  });

  test('cannot be read if it is no list of slots', () => {
    for (const slots of ['OK', [7]])
      expect(() => readView(ASKED, slots, INFO)).toThrow('unexpected reply to CLUSTER SLOTS');
  });
});

test.each([
  ['127.0.0.1:7000', { host: '127.0.0.1', port: 7000 }],
  ['::1:7000', { host: '::1', port: 7000 }],
  ['redis.example:7000', { host: 'redis.example', port: 7000 }],
  [':7000', { host: '10.0.0.9', port: 7000 }],
  ['?:7000', undefined],
  ['', undefined],
])('the address %j in a redirect', (address, endpoint) => {
  expect(redirectedEndpoint(address, '10.0.0.9')).toEqual(endpoint);
});

describe('the newest view', () => {
  const SEEDS = [ASKED, { host: '10.0.0.8', port: 7000 }];
  const view = (epoch: number, ...ids: string[]): ClusterView => ({
    ...{ from: ids.join(), epoch, ids: new Set(ids) },
    ranges: [{ first: 0, last: 16_383, master: ASKED }],
  });
  const NONE = { ...view(9, 'a'), ranges: [] };
  const answers = (known: ClusterView | undefined, ...views: (ClusterView | Error)[]) => {
    const left = [...views];
    return newestView(SEEDS, known, async () => {
      const answer = left.shift() ?? new Error('refused');
      if (answer instanceof Error) throw answer;
      return answer;
    });
  };

  test('has the largest epoch', async () => {
    expect(await answers(undefined, view(1, 'a'), view(2, 'a', 'b'))).toEqual(view(2, 'a', 'b'));
  });

  test('is the known one if a partitioned node answers', async () => {
    const known = view(3, 'a', 'b');
    expect(await answers(known, view(2, 'a'))).toBe(known);
  });

  test('is that of another cluster if no node belongs to the known one', async () => {
    expect(await answers(view(3, 'a'), view(1, 'b'))).toEqual(view(1, 'b'));
  });

  test('comes from the seeds if no master answers', async () => {
    expect(await answers(view(3, 'a'), new Error('refused'), view(4, 'a'))).toEqual(view(4, 'a'));
  });

  test.each<[string, (ClusterView | Error)[], string]>([
    ['the seeds belong to two clusters', [view(1, 'a'), view(1, 'b')], 'a and b belong to different Redis'],
    ['no node has slots', [NONE, NONE], 'no node of the Redis Cluster has slots'],
    ['no node answers', [new Error('x'), new Error('x')], 'no node of the Redis Cluster answers: x'],
    ['a node refuses the query', [new Error('x'), new RedisReplyError('NOPERM no')], 'NOPERM no'],
  ])('is unknown if %s', async (_, views, message) => {
    await expect(answers(undefined, ...views)).rejects.toThrow(message);
  });
});
