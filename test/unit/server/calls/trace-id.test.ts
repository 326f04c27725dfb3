import { expect, test } from '@jest/globals';
import { headerLookup, traceIdOf } from '../../../../src/server/calls/call-trace.js';

const ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const OTHER = '0af7651916cd43dd8448eb211c80319c';
const SPAN = '00f067aa0ba902b7';

test.each<[Record<string, string>, string]>([
  [{}, ''],
  [{ traceparent: `00-${ID}-${SPAN}-01` }, ID],
  // Later versions of the header may add fields.
  [{ traceparent: `cc-${ID}-${SPAN}-00-more` }, ID],
  [{ traceparent: `ff-${ID}-${SPAN}-01` }, ''],
  [{ traceparent: `00-${'0'.repeat(32)}-${SPAN}-01` }, ''],
  [{ traceparent: `00-${ID.toUpperCase()}-${SPAN}-01` }, ''],
  [{ traceparent: `00-${ID}-${SPAN}-01,00-${OTHER}-${SPAN}-01` }, ''],
  [{ b3: `${ID}-${SPAN}-1` }, ID],
  [{ b3: `${SPAN}-${SPAN}` }, `0000000000000000${SPAN}`],
  [{ b3: '0' }, ''],
  [{ b3: 'nonsense', 'x-b3-traceid': ID.toUpperCase() }, ID],
  [{ traceparent: `00-${ID}-${SPAN}-01`, b3: `${OTHER}-${SPAN}-1` }, OTHER],
  [{ traceparent: `00-${ID}-${SPAN}-01`, b3: 'd' }, ID],
])('%j contains the trace ID %j', (headers, id) => {
  expect(traceIdOf(headerLookup(headers))).toBe(id);
});
