import { describe, expect, test } from '@jest/globals';
import { readView } from '../../../../../src/storage/redis/cluster/cluster-view.js';

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
    expect(readView('node', ASKED, slots, INFO)).toEqual({
      from: 'node',
      epoch: 12,
      slots: 200,
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
    const { ranges } = readView('node', ASKED, rowOf(host, 7001, 'id', more), INFO);
    expect(ranges[0]?.master).toEqual({ host: expected, port: 7001 });
  });

  test('contains addresses if there are no ids', () => {
    expect(readView('node', ASKED, rowOf('10.0.0.1', 7001), '').ids).toEqual(new Set(['10.0.0.1:7001']));
  });

  test('has the oldest epoch if the node reports none', () => {
    expect(readView('node', ASKED, rowOf('10.0.0.1', 7001, 'id'), '').epoch).toBe(0);
  });

  test.each([
    ['a text', 'OK'],
    ['an invalid row', [7]],
    ['one slot too many', [[0, 16_384, ['h', 1, 'id']]]],
    ['slots in reverse order', [[5, 4, ['h', 1, 'id']]]],
    ['no master', [[0, 5]]],
    ['no port', [[0, 5, ['h', 0, 'id']]]],
  ])('cannot be read if %s', (_, slots) => {
    expect(() => readView('node', ASKED, slots, INFO)).toThrow('the reply has an unknown format');
  });
});
