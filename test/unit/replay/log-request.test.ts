import { expect, test } from '@jest/globals';
import { decisionReader, LogFacts, mappedReader } from '../../../src/replay/log-request.js';
import { type LogMap, readReplayMap } from '../../../src/replay/replay-map.js';
import { TempDir } from '../../support/process/temp-dir.js';

const folder = new TempDir();
const TIME = '2026-11-20T09:00:00Z';
const MICROS = Date.parse(TIME) * 1000;

function mapOf(more = '', descriptors = '[[{ key: tenant, from: tenant }]]'): LogMap {
  const text = `domain: shop\ntime: time\ndescriptors: ${descriptors}\n${more}`;
  const map = readReplayMap(folder.write('map.yaml', text));
  if (!('domain' in map)) throw new Error(JSON.stringify(map));
  return map;
}

/** Reads a line with a map. */
function read(map: LogMap, line: object, facts = new LogFacts()) {
  return mappedReader(map, true, facts)(JSON.stringify({ time: TIME, tenant: 'acme', ...line }));
}

test('sends a descriptor only if all of its entries have values', () => {
  const map = mapOf(
    '',
    '[[{ key: tenant, from: tenant }, { key: path, from: path, or: "/" }], [{ key: user, from: user }]]',
  );
  const facts = new LogFacts();
  const call = read(map, {}, facts);
  expect(call).toMatchObject({
    timeMicros: MICROS,
    request: {
      domain: 'shop',
      descriptors: [
        {
          entries: [
            { key: 'tenant', value: 'acme' },
            { key: 'path', value: '/' },
          ],
          hitsAddend: undefined,
        },
      ],
    },
  });
  expect([...facts.members]).toEqual(['tenant']);
  expect(read(map, { tenant: null })).toBe('no_values');
  expect(read(map, { tenant: null, user: 5 })).toMatchObject({
    request: { descriptors: [{ entries: [{ key: 'user', value: '5' }] }] },
  });
});

const EXPLAINED = 'method: method\nstatus: status\nflags: flags\ndetails: details\n';

test.each([
  [{}, 'no_method'],
  [{ method: '-' }, 'no_method'],
  [{ method: 'GET', flags: 'NR', status: 404 }, 'not_reached'],
  [{ method: 'GET', flags: 'DPE' }, 'not_reached'],
  [{ method: 'GET', flags: 'UAEX' }, 'not_reached'],
  [{ method: 'GET', details: 'jwt_authn_access_denied{Jwt_is_missing}' }, 'not_reached'],
  [{ method: 'GET', details: 'rbac_access_denied_matched_policy[none]' }, 'not_reached'],
  [{ method: 'GET', details: 'ext_authz_denied' }, 'not_reached'],
  [{ method: 'GET', flags: 'RL', details: 'local_rate_limited', status: 429 }, 'not_reached'],
])('takes %j for no request of the limiter', (line, fault) => {
  expect(read(mapOf(EXPLAINED), line)).toBe(fault);
});

test.each([
  ['', { status: 429 }, false],
  ['status: status\n', { status: 429 }, true],
  ['status: status\n', { status: '429' }, true],
  ['status: status\n', { status: 200 }, false],
  ['status: status\nflags: flags\n', { status: 429, flags: '-' }, false],
  ['status: status\nflags: flags\n', { status: 429 }, false],
  ['flags: flags\n', { flags: 'RL' }, true],
  ['flags: flags\n', { flags: 'DC,RL' }, true],
  ['flags: flags\n', { flags: 'RateLimited' }, true],
  ['flags: flags\n', { flags: 'RLSE' }, false],
  ['status: status\ndetails: details\n', { status: 429, details: 'via_upstream' }, false],
  ['details: details\n', { details: 'request_rate_limited' }, true],
  [EXPLAINED, { method: 'GET', flags: 'RL', details: 'request_rate_limited' }, true],
  [EXPLAINED, { method: 'GET', flags: '-', details: 'via_upstream', status: 429 }, false],
])('with %j, %j was denied: %j', (more, line, denied) => {
  expect(read(mapOf(more), line)).toMatchObject({ denied });
});

test.each([
  ['hits: 3\n', {}, 3],
  ['hits: { from: weight }\n', { weight: 7 }, 7],
  ['hits: { from: weight }\n', { weight: '7' }, 7],
  ['hits: { from: weight }\n', {}, undefined],
])('with %j, %j has the hits %j', (more, line, hitsAddend) => {
  expect(read(mapOf(more), line)).toMatchObject({ request: { descriptors: [{ hitsAddend }] } });
});

test.each([{ weight: 'many' }, { weight: -1 }, { weight: 1.5 }])('rejects the hits %j', (line) => {
  expect(read(mapOf('hits: { from: weight }\n'), line)).toBe('bad_number');
});

test('reads the end of a request', () => {
  const more =
    'duration: took\nduration_unit: ms\n' +
    'at_end: { hits: { from: tokens }, descriptors: [[{ key: k, from: tenant }]] }\n';
  const facts = new LogFacts();
  expect(read(mapOf(more), { took: 5, tokens: 9 }, facts)).toMatchObject({
    end: {
      durationMicros: 5000,
      hits: 9,
      descriptors: [{ entries: [{ key: 'k', value: 'acme' }], hitsAddend: 9 }],
    },
  });
  expect(facts.badDurations).toBe(0);
  expect(read(mapOf(more), { took: 'soon' }, facts)).toMatchObject({
    end: { durationMicros: undefined, hits: undefined },
  });
  expect([facts.badDurations, facts.badDuration]).toEqual([1, 'soon']);
});

test.each([
  ['not JSON', 'not_json'],
  ['[]', 'not_json'],
  ['null', 'not_json'],
  ['{"tenant":"acme"}', 'no_time'],
  ['{"tenant":"acme","time":"yesterday"}', 'no_time'],
])('cannot read %j', (line, fault) => {
  expect(mappedReader(mapOf(), true, new LogFacts())(line)).toBe(fault);
});

/** Reads a line of the decision log. */
function readDecision(descriptors: unknown, more: object = {}, facts = new LogFacts()) {
  const line = {
    decision: 1,
    time: TIME,
    domain: 'shop',
    code: 'OK',
    sample: 1,
    micros: 9,
    descriptors,
    ...more,
  };
  return decisionReader(facts)(JSON.stringify(line));
}

const ENTRIES = [{ key: 'tenant', value: 'acme' }];

test('reads a line of the decision log', () => {
  const override = { requests_per_unit: 7, unit: 'HOUR' };
  const descriptor = { entries: ENTRIES, hits: 2, override, rule: 'tenant', code: 'OVER_LIMIT', limit: 1 };
  expect(readDecision([descriptor], { code: 'OVER_LIMIT' })).toEqual({
    timeMicros: MICROS,
    request: {
      domain: 'shop',
      descriptors: [
        { entries: ENTRIES, hitsAddend: 2, limit: { requestsPerUnit: 7, unit: 3 }, isNegativeHits: false },
      ],
      hitsAddend: 0,
    },
    denied: true,
    deniedBy: ['tenant'],
    end: undefined,
    holdIds: [],
    holdEnds: [],
  });
});

test('derives entries again only if the log shows all values', () => {
  const sent = [{ key: 'path', value: '/a' }];
  expect(readDecision([{ entries: ENTRIES, sent, hits: 1 }])).toMatchObject({
    request: { descriptors: [{ entries: sent }] },
  });
  const redacted = [{ key: 'api_key', value: '[redacted sha256:12345678]' }];
  expect(readDecision([{ entries: ENTRIES, sent: redacted, hits: 1 }])).toMatchObject({
    request: { descriptors: [{ entries: ENTRIES }] },
  });
});

test('joins the ends of holds with their starts', () => {
  const facts = new LogFacts();
  const placed = { event: 'placed', id: 'a1', rule: 'tenant', hits: 1 };
  expect(readDecision([{ entries: ENTRIES, hits: 1, holds: [placed] }], {}, facts)).toMatchObject({
    holdIds: ['a1'],
  });
  const token = [{ key: 'hold', value: '[hold token]' }];
  const slots = { event: 'settled', id: 'a1', rule: 'tenant', hits: 1, used: 1 };
  const reserved = { event: 'settled', id: 'b2', rule: 'tokens', hits: 10 };
  expect(
    readDecision([{ entries: token, hits: 7, holds: [slots, { ...reserved, used: 7 }] }], {}, facts),
  ).toMatchObject({
    request: { descriptors: [] },
    holdEnds: [{ ids: ['a1', 'b2'], used: 7 }],
  });
  expect(readDecision([{ entries: token, hits: 1, holds: [slots, reserved] }], {}, facts)).toMatchObject({
    holdEnds: [{ ids: ['a1', 'b2'], used: undefined }],
  });
  expect(facts.holdsWithoutId).toBe(0);
  readDecision(
    [{ entries: ENTRIES, hits: 1, holds: [{ event: 'placed', rule: 'tenant', hits: 1 }] }],
    {},
    facts,
  );
  expect(facts.holdsWithoutId).toBe(1);
});

test('notes samples and shortened lines', () => {
  const facts = new LogFacts();
  readDecision([{ entries: ENTRIES, hits: 1 }], { sample: 0.1, cut: true }, facts);
  expect([facts.sample, facts.cut]).toEqual([0.1, 1]);
});

test.each([
  [[{ entries: ENTRIES, hits: -1 }], {}, 'bad_number'],
  [[{ entries: ENTRIES, hits: 'x' }], {}, 'bad_number'],
  [[{ entries: 'x', hits: 1 }], {}, 'no_descriptors'],
  [[{ entries: [{ key: 1 }], hits: 1 }], {}, 'no_descriptors'],
  [[null], {}, 'no_descriptors'],
  [7, {}, 'no_descriptors'],
  [[], { domain: 7 }, 'no_descriptors'],
  [[], { time: 'soon' }, 'no_time'],
  [[], { reason: 'entries' }, 'above_bound'],
  [[], { decision: undefined }, 'no_descriptors'],
  [[], { decision: undefined, level: 'info' }, 'other_line'],
])('descriptors %j with %j: %s', (descriptors, more, fault) => {
  expect(readDecision(descriptors, more)).toBe(fault);
});
