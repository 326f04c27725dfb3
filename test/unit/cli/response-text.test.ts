import { expect, test } from '@jest/globals';
import { responseText } from '../../../src/cli/ratelimit/ratelimit-client.js';
import { CODE, LIMIT_UNIT } from '../../../src/codec/messages.js';

test('prints an answer in the text format of protobuf', () => {
  const text = responseText({
    overallCode: CODE.OVER_LIMIT,
    statuses: [
      {
        code: CODE.OVER_LIMIT,
        currentLimit: { name: 'a "b"', requestsPerUnit: 5, unit: LIMIT_UNIT.minute },
        limitRemaining: 0,
        durationUntilResetSeconds: 30,
      },
      {
        code: CODE.OK,
        currentLimit: undefined,
        limitRemaining: 4,
        durationUntilResetSeconds: undefined,
      },
    ],
    responseHeadersToAdd: [{ key: 'RateLimit-Limit', value: '5' }],
    requestHeadersToAdd: [],
    rawBody: undefined,
    dynamicMetadata: { domain: 'd', hits: 2, deep: { flag: true }, list: [null] },
  });
  expect(text).toBe(
    'overall_code:OVER_LIMIT' +
      ' statuses:{code:OVER_LIMIT current_limit:{requests_per_unit:5 unit:MINUTE name:"a \\"b\\""} ' +
      'duration_until_reset:{seconds:30}}' +
      ' statuses:{code:OK limit_remaining:4}' +
      ' response_headers_to_add:{key:"RateLimit-Limit" value:"5"}' +
      ' dynamic_metadata:{fields:{key:"domain" value:{string_value:"d"}}' +
      ' fields:{key:"hits" value:{number_value:2}}' +
      ' fields:{key:"deep" value:{struct_value:{fields:{key:"flag" value:{bool_value:true}}}}}' +
      ' fields:{key:"list" value:{list_value:{values:{null_value:NULL_VALUE}}}}}',
  );
});

test('control characters from a server are escaped', () => {
  const text = responseText({
    overallCode: CODE.OK,
    statuses: [],
    responseHeadersToAdd: [{ key: 'a', value: '\u001b[2J\u009b2J' }],
    requestHeadersToAdd: [],
    rawBody: undefined,
    dynamicMetadata: undefined,
  });
  expect(text).toBe('overall_code:OK response_headers_to_add:{key:"a" value:"\\u001b[2J\\x9b2J"}');
});
