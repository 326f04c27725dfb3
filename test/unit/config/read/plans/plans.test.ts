import { renameSync, utimesSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { loadPolicies } from '../../../../../src/config/files/load-policies.js';
import { formatProblem } from '../../../../../src/config/yaml/config-problem.js';
import type { CompiledPolicy } from '../../../../../src/policy/compiled-policy.js';
import { describeRate } from '../../../../../src/policy/describe.js';
import { cases } from '../../../../support/assert/cases.js';
import { entries, parse, policyOf } from '../../../../support/policy/policies.js';
import { PolicyDir } from '../../../../support/policy/policy-dir.js';

const PLANS =
  'plans: { by: tenant, from: rows.csv, default: free, define: { free: { burst: 2 }, gold: { burst: 9 }, ' +
  'evil: { blocked: true }, staff: { unlimited: true } } }';
const LIMIT = 'token_bucket: { max_tokens: { plan: burst }, fill_interval: 1s }';
const POLICY = `domain: d\n${PLANS}\ndescriptors: [{ key: tenant, rate_limit: { ${LIMIT} } }]\n`;

function limitOf(policy: CompiledPolicy | undefined, ...texts: readonly string[]): string {
  const rules = policy?.match(entries(...texts)).rules ?? [];
  return rules.map(({ rate }) => describeRate(rate)).join(' | ');
}

function withRows(rows: string, policy = POLICY, file = 'rows.csv'): CompiledPolicy {
  return policyOf(policy.replace('rows.csv', file), { [file]: rows });
}

/** Returns the errors of a policy, and the warnings of its rows. */
function problemsOf(policy: string, rows = 'tenant,plan\nacme,gold\n', file = 'rows.csv'): readonly string[] {
  const { problems, tableFiles } = parse(policy.replace('rows.csv', file), { [file]: rows });
  return [...problems.errors, ...tableFiles.flatMap(({ errors, warnings }) => [...errors, ...warnings])].map(
    formatProblem,
  );
}

describe('a table', () => {
  test.each([
    ['rows.csv', 'burst,plan,tenant\r\n,gold,acme\r\n\n# no row\n5,"gold" ,"a ""b"", c"\n'],
    ['rows.jsonl', '{"tenant":"acme","plan":"gold"}\n\n{"plan":"gold","burst":5,"tenant":"a \\"b\\", c"}\n'],
    ['rows.yaml', 'acme: gold\n\'a "b", c\': { plan: gold, burst: 5 }\n'],
    ['rows.json', '{"acme": "gold", "a \\"b\\", c": {"burst": 5}}'],
  ])('is read from %s', (file, rows) => {
    const policy = withRows(rows, POLICY, file);
    expect(policy.plans?.rowCount).toBe(2);
    expect(limitOf(policy, 'tenant=acme')).toBe('token bucket: 9 tokens, 1 every 1s');
    expect(limitOf(policy, 'tenant=a "b", c')).toBe('token bucket: 5 tokens, 1 every 1s');
    expect(limitOf(policy, 'tenant=other')).toBe('token bucket: 2 tokens, 1 every 1s');
    expect(limitOf(policy, `tenant=${'x'.repeat(500)}`)).toBe('token bucket: 2 tokens, 1 every 1s');
  });

  test('can have more different values than weir keeps nodes for', () => {
    const rows = Array.from({ length: 9000 }, (_, i) => `t${i},${i + 1}\n`);
    const policy = withRows(`tenant,burst\n${rows.join('')}`);
    for (const round of [1, 2]) {
      for (const i of [0, 1, 807, 8191, 8192, 8999]) {
        const shown = [round, limitOf(policy, `tenant=t${i}`)];
        expect(shown).toEqual([round, `token bucket: ${i + 1} token${i === 0 ? '' : 's'}, 1 every 1s`]);
      }
    }
  });

  test('finds each of many keys, and no other', () => {
    const keys = Array.from({ length: 3000 }, (_, i) => (i % 2 === 0 ? `t${i}` : `${i}é`.padStart(256, 'a')));
    const policy = withRows(`tenant,burst\n${keys.map((key, i) => `${key},${i + 3}\n`).join('')}`);
    const found = keys.map((key) => limitOf(policy, `tenant=${key}`));
    expect(found).toEqual(keys.map((_, i) => `token bucket: ${i + 3} tokens, 1 every 1s`));
    for (const other of ['t1', 't3000', 't', '', 'a'.repeat(256), 'a'.repeat(257)]) {
      expect(limitOf(policy, `tenant=${other}`)).toBe('token bucket: 2 tokens, 1 every 1s');
    }
  });

  test('has keys with any characters', () => {
    const policy = withRows('tenant,plan\nZoë,gold\n東京,gold\n😀,gold\n');
    for (const name of ['Zoë', '東京', '😀']) {
      expect(limitOf(policy, `tenant=${name}`)).toBe('token bucket: 9 tokens, 1 every 1s');
    }
    expect(limitOf(policy, 'tenant=京東')).toBe('token bucket: 2 tokens, 1 every 1s');
  });

  test('can block customers, free them from limits, and set the phase', () => {
    const rows = 'tenant,plan,phase\nevil,evil,\nstaff,staff,\nnew,gold,monitoring\n';
    const policy = withRows(rows);
    expect(limitOf(policy, 'tenant=evil')).toBe('blocked: no requests');
    expect(limitOf(policy, 'tenant=staff')).toBe('unlimited');
    const [rule] = policy.match(entries('tenant=new')).rules;
    expect(rule?.phase).toEqual({ gracePeriodAtMicros: Infinity, activeAtMicros: Infinity });
  });

  test('applies to each field, and to each limit of a list by itself', () => {
    const policy = withRows(
      'tenant,calls,window,burst,slots,bulk\nacme,7,hour,3,5,2s\n',
      'domain: d\nplans: { by: tenant, from: rows.csv }\ndescriptors:\n' +
        '  - key: tenant\n    rate_limits:\n' +
        '      - { unit: { plan: window, default: minute }, requests_per_unit: { plan: calls, default: 1 } }\n' +
        '      - unit: { plan: window, default: day }\n        requests_per_unit: { plan: calls, default: 1 }\n' +
        '        algorithm: token_bucket\n        burst: { plan: burst, default: 1 }\n' +
        '      - { concurrency: { max: { plan: slots, default: 1 } } }\n' +
        '      - token_bucket:\n            max_tokens: 6\n' +
        '            tokens_per_fill: { plan: burst, default: 1 }\n' +
        '            fill_interval: { plan: bulk, default: 1s }\n' +
        '      - { unit: month, requests_per_unit: 100 }\n',
    );
    expect(limitOf(policy, 'tenant=acme')).toBe(
      'window: 7 per hour | token bucket: 3 tokens, 7 every 1h | concurrency: 5 requests | ' +
        'token bucket: 6 tokens, 3 every 2s | window: 100 per month',
    );
    expect(limitOf(policy, 'tenant=x')).toBe(
      'window: 1 per minute | token bucket: 1 token, 1 every 24h | concurrency: 1 request | ' +
        'token bucket: 6 tokens, 1 every 1s | window: 100 per month',
    );
  });

  test('leaves the other limits of a list to unlimited customers', () => {
    const policy = withRows(
      'tenant,unlimited,burst\nacme,true,\n',
      'domain: d\nplans: { by: tenant, from: rows.csv }\ndescriptors:\n  - key: tenant\n    rate_limits:\n' +
        '      - { unit: minute, requests_per_unit: { plan: burst, default: 1 } }\n' +
        '      - { name: fixed, unit: month, requests_per_unit: 100 }\n',
    );
    const { rules, keys, statNames } = policy.match(entries('tenant=acme'));
    expect(rules.map(({ path }) => path)).toEqual(['tenant[fixed]']);
    expect(keys).toEqual(['1:d6:tenant4:acme~5:fixed%2592000']);
    expect(statNames).toEqual(['d.tenant.fixed']);
  });
});

test('an unlimited plan of customers without a row causes a warning if rows can be missing', () => {
  const warningsOf = (policy: string): readonly string[] =>
    parse(policy, { 'rows.csv': 'tenant,plan\nacme,gold\n' }).problems.warnings.map(formatProblem);
  const unlimited = POLICY.replace('default: free', 'default: staff');
  expect(warningsOf(unlimited)).toEqual([
    'policy.yaml:2:47: plans.default: "staff" is unlimited, so no customer has a limit if the rows cannot be ' +
      'read after a start; choose a plan with limits as the default, and assign this plan to customers in the rows',
  ]);
  expect(warningsOf(unlimited.replace('from: rows.csv, ', ''))).toEqual([]);
  expect(warningsOf(POLICY)).toEqual([]);
});

describe('limits without a customer', () => {
  const extra = [
    '  - { key: path, rate_limit: { unit: day, requests_per_unit: 1 } }',
    '  - { key: free }',
    '  - { key: tenant, value: x, descriptors: [{ key: path, rate_limit: { unit: day, requests_per_unit: 1 } }] }',
    '  - { key: a, descriptors: [{ key: b, rate_limit: { unit: day, requests_per_unit: 1 } }] }\n',
  ].join('\n');
  const policy = `domain: d\n${PLANS}\ndescriptors:\n  - { key: tenant, rate_limit: { ${LIMIT} } }\n${extra}`;
  const warningsOf = (text: string): readonly string[] =>
    parse(text, { 'rows.csv': 'tenant,plan\nacme,gold\n' }).problems.warnings.map(formatProblem);

  test('cause a warning if a plan or a row blocks customers', () => {
    expect(warningsOf(policy)).toEqual([
      'policy.yaml:2:14: plans.by: "blocked" has no effect at 2 descriptors with limits, because no descriptor from ' +
        'the top to there has the key "tenant": policy.yaml:5:5, policy.yaml:8:29; to block customers there as well, ' +
        'add the key above these limits, or send another descriptor with it in the same requests',
    ]);
    expect(warningsOf(policy.replace('evil: { blocked: true }', 'evil: { burst: 1 }'))).toEqual([]);
    expect(warningsOf(POLICY)).toEqual([]);
  });
});

test('a changed row blocks its customer at limits of one shared bucket, and frees it', () => {
  const dir = new PolicyDir();
  const policy =
    `domain: d\n${PLANS}\ndescriptors:\n  - { key: tenant, rate_limit: { ${LIMIT} } }\n` +
    '  - { key: tenant, value: "t*", share_threshold: true, rate_limit: { unit: day, requests_per_unit: 5 } }\n';
  const limitsWith = (rows: string): readonly string[] => {
    const loaded = dir.load({ 'd.yaml': policy, 'rows.csv': `tenant,plan\na,gold\n${rows}` });
    return ['t1', 't2', 't1'].map((name) => limitOf(loaded.policySet.domains.get('d'), `tenant=${name}`));
  };
  const [open, blocked] = ['window: 5 per day', 'blocked: no requests'];
  expect(limitsWith('t1,gold\nt2,gold\n')).toEqual([open, open, open]);
  expect(limitsWith('t1,evil\nt2,gold\n')).toEqual([blocked, open, blocked]);
  expect(limitsWith('t1,gold\nt2,staff\n')).toEqual([open, open, open]);
  dir.dir.remove();
});

describe('a cell without a value', () => {
  // property/plans/cells.property.test.ts has the other kinds of limits.
  const WITH_NUMBER =
    'domain: d\nplans: { by: tenant, from: rows.csv, default: free, define: { free: { n: 1 }, gold: { n: 3 } } }\n' +
    'descriptors: [{ key: tenant, rate_limit: { requests_per_unit: { plan: n }, unit: minute } }]\n';
  const nulls = ['', '~', 'null', 'Null', 'NULL'];
  const files = nulls.flatMap((text): readonly (readonly [string, string])[] => [
    ['rows.csv', `tenant,plan,n\nacme,gold,${text}\nother,${text},\n`],
    ['rows.csv', `tenant;plan;n\nacme;gold; ${text} \nother;${text};\n`],
    ['rows.yaml', `acme: { plan: gold, n: ${text} }\nother: ${text}\n`],
  ]);

  test.each([
    ...files,
    ['rows.csv', 'tenant,plan,n\nacme,"gold",""\n"other","",""\n'],
    ['rows.jsonl', '{"tenant":"acme","plan":"gold","n":null}\n{"tenant":"other","plan":null}\n'],
    ['rows.json', '[{"tenant":"acme","plan":"gold","n":null},{"tenant":"other","plan":null}]'],
    ['rows.json', '{ "acme": { "plan": "gold", "n": null }, "other": null }'],
  ] as const)('in %s is one that is empty or null: %j', (file, rows) => {
    const policy = withRows(rows, WITH_NUMBER, file);
    expect(policy.plans).toMatchObject({ rowCount: 2, refused: 0 });
    expect(limitOf(policy, 'tenant=acme')).toBe('window: 3 per minute');
    expect(limitOf(policy, 'tenant=other')).toBe('window: 1 per minute');
  });

  const quotedIn = (text: string) => cases<[string, string, string]>`
    rows.jsonl
      {"tenant":"ok"}\n{"tenant":"acme","n":"${text}"}\n{"tenant":"other","plan":"${text}"}\n
      ${text}
    rows.json
      [{"tenant":"ok"},{"tenant":"acme","n":"${text}"},{"tenant":"other","plan":"${text}"}]
      ${text}
    rows.yaml => ok: gold\nacme: { n: "${text}" }\nother: { plan: '${text}' }\n => ${text}
    rows.json => { "ok": "gold", "acme": { "n": "${text}" }, "other": "${text}" } => ${text}
  `;

  test.each([
    ...nulls.flatMap(quotedIn),
    ...nulls.slice(1).map((text) => {
      return ['rows.csv', `tenant,plan,n\nok,gold,\nacme,,"${text}"\nother,"${text}",\n`, text] as const;
    }),
  ])('in %s is not one with a text in quotes: %j', (file, rows, text) => {
    const policy = withRows(rows, WITH_NUMBER, file);
    expect(policy.plans).toMatchObject({ rowCount: 1, refused: 2 });
    expect(problemsOf(WITH_NUMBER, rows, file)).toEqual([
      expect.stringContaining(`n: "n" is the string "${text}"; write a whole number from 0 to 4294967295`),
      expect.stringContaining('plan: the row does not name a plan of "define"; the plans are free, gold'),
    ]);
  });

  test.each([
    ['rows.csv', 'tenant,plan\nnull,gold\nNULL,gold\n~,gold\n'],
    ['rows.jsonl', ['null', 'NULL', '~'].map((name) => `{"tenant":"${name}","plan":"gold"}\n`).join('')],
    ['rows.yaml', 'null: gold\nNULL: gold\n~: gold\n'],
    ['rows.json', '{ "null": "gold", "NULL": "gold", "~": "gold" }'],
  ])('does not concern the customers in %s, who can be called null', (file, rows) => {
    const policy = withRows(rows, WITH_NUMBER, file);
    for (const name of ['null', 'NULL', '~']) {
      expect(limitOf(policy, `tenant=${name}`)).toBe('window: 3 per minute');
    }
  });

  test('can be a flag, or a value of a plan', () => {
    const policy = POLICY.replace('gold: { burst: 9 }', 'gold: { burst: 9, unlimited: NULL, phase: ~ }');
    const rows = withRows('tenant,plan,unlimited,blocked,phase\nacme,gold,NULL,~,null\n', policy);
    expect(limitOf(rows, 'tenant=acme')).toBe('token bucket: 9 tokens, 1 every 1s');
    expect(rows.match(entries('tenant=acme')).rules[0]?.phase).toEqual(
      rows.match(entries('tenant=x')).rules[0]?.phase,
    );
  });

  test('needs a plan with another name, unless the plans are the rows', () => {
    const policy = POLICY.replace('gold: {', '"null": {');
    expect(problemsOf(policy, 'tenant,plan\nacme,free\n').join('\n')).toContain(
      'plans.define.null: in rows, "null" without quotes means that there is no plan; rename the plan',
    );
    expect(limitOf(policyOf(policy.replace(' from: rows.csv,', '')), 'tenant=null')).toBe(
      'token bucket: 9 tokens, 1 every 1s',
    );
  });
});

describe('a value', () => {
  const WITH_NUMBER = POLICY.replace('gold: { burst: 9 }', 'gold: { burst: VALUE }');

  test.each([
    ['1000.0', 'token bucket: 1000 tokens, 1 every 1s'],
    ['1e3', 'token bucket: 1000 tokens, 1 every 1s'],
  ])('of %s is the same in tables, plans and limits', (written, limit) => {
    const tables = [
      ['rows.csv', `tenant,burst\nacme,${written}\n`],
      ['rows.csv', `"tenant","burst"\n"acme","${written}"\n`],
      ['rows.jsonl', `{"tenant":"acme","burst":${written}}`],
      ['rows.jsonl', `{"tenant":"acme","burst":"${written}"}`],
      ['rows.json', `[{"tenant":"acme","burst":${written}}]`],
      ['rows.yaml', `acme: { burst: ${written} }`],
    ] as const;
    for (const [file, rows] of tables) {
      expect([file, limitOf(withRows(rows, POLICY, file), 'tenant=acme')]).toEqual([file, limit]);
    }
    const plan = withRows('tenant,plan\nacme,gold\n', WITH_NUMBER.replace('VALUE', written));
    expect(limitOf(plan, 'tenant=acme')).toBe(limit);
    const byDefault = POLICY.replace(PLANS, 'plans: { by: tenant, from: rows.csv }').replace(
      '{ plan: burst }',
      `{ plan: burst, default: ${written} }`,
    );
    expect(limitOf(withRows('tenant,burst\nx,1\n', byDefault), 'tenant=acme')).toBe(limit);
    expect(limitOf(policyOf(POLICY.replace(PLANS, '').replace('{ plan: burst }', written)), 'tenant=a')).toBe(
      limit,
    );
  });

  test.each([
    ['many', 'plans.define.gold.burst: "burst" is "many"; write a whole number from 1 to 4294967295'],
    ['1.000', 'plans.define.gold.burst: "burst" is 1.000; write a whole number from 1 to 4294967295'],
    ['"9"', 'plans.define.gold.burst: "burst" is the string "9"'],
    ['[9]', 'plans.define.gold.burst: "burst" is a list; write a whole number'],
    ['0', 'plans.define.gold.burst: "max_tokens" is 0'],
    ['9, blocked: maybe', 'plans.define.gold.blocked: "blocked" is "maybe"; write true or false'],
    ['9, phase: actve', '"actve" is not one of monitoring, grace_period, active; did you mean "active"?'],
  ])('of %s in "define" is one error', (written, message) => {
    const policy = WITH_NUMBER.replace('VALUE', written);
    expect(problemsOf(policy)).toEqual([expect.stringContaining(message)]);
    // The plan of customers without a row describes the limit.
    const [first = ''] = problemsOf(policy.replace('default: free', 'default: gold'));
    expect(first).toContain(message.replace(/^plans.*burst: "max_tokens"/, '"max_tokens"'));
  });

  test('needs no valid number in a row that blocks its customer, or frees it', () => {
    const rows = 'tenant,plan,burst,blocked\nevil,,many,true\nstaff,staff,0,\nmallory,evil,"NULL",\n';
    const policy = withRows(rows);
    expect(policy.plans).toMatchObject({ rowCount: 3, refused: 0, hasBlocked: true });
    const limits = ['evil', 'staff', 'mallory'].map((tenant) => limitOf(policy, `tenant=${tenant}`));
    expect(limits).toEqual(['blocked: no requests', 'unlimited', 'blocked: no requests']);
  });
});

describe('a table as other programs write it', () => {
  const gold = 'token bucket: 9 tokens, 1 every 1s';
  const five = 'token bucket: 5 tokens, 1 every 1s';

  test.each([
    ['semicolons', 'rows.csv', 'tenant;plan;burst\nacme;gold;\n"b;, c";;5\n'],
    ['tabs', 'rows.csv', 'tenant\tplan\tburst\nacme\tgold\t\n"b;, c"\t\t5\n'],
    ['the ending .tsv', 'rows.TSV', 'tenant\tplan\tburst\nacme\tgold\t\nb;, c\t\t5\n'],
    ['a header in quotes', 'rows.csv', '"tenant";"plan";"burst"\n"acme";"gold";""\n"b;, c";"";"5.0"\n'],
    ['a byte order mark', 'rows.csv', '\ufefftenant,plan,burst\nacme,gold,\n"b;, c",,5\n'],
    ['CRLF', 'rows.csv', 'tenant,plan,burst\r\n"acme","gold",""\r\n"b;, c",,5\r\n'],
    ['empty rows', 'rows.csv', '\n \ntenant,plan,burst\nacme,gold,\n,,\n"b;, c",,5\n , ,\n'],
    ['a list', 'rows.json', '\ufeff [ {"tenant":"acme","plan":"gold"},\n{"tenant":"b;, c","burst":5}\n]\n'],
    [
      'marks in lines',
      'rows.jsonl',
      '\ufeff{"tenant":"acme","plan":"gold"}\r\n{"tenant":"b;, c","burst":5.0}\r\n',
    ],
    ['marks in YAML', 'rows.yaml', '\ufeffacme: gold\r\n"b;, c": { burst: 5.0 }\r\n'],
    ['marks in a mapping', 'rows.json', '\ufeff{"acme":"gold",\r\n"b;, c":{"burst":5.0}}\r\n'],
  ])('may have %s', (_what, file, rows) => {
    const policy = withRows(rows, POLICY, file);
    expect(policy.plans).toMatchObject({ rowCount: 2, refused: 0 });
    expect(['acme', 'b;, c'].map((tenant) => limitOf(policy, `tenant=${tenant}`))).toEqual([gold, five]);
  });

  test.each([
    ['', 'the file has no rows'],
    ['{"tenant":"acme","plan":"gold"}', 'the list does not end; write the whole file, up to the last "]"'],
    ['{"tenant":"acme","plan":"gold"}] [', 'text follows the list'],
    ['{"tenant":"acme","plan":"go]', 'the list does not end'],
    ['{"tenant":"a","plan":"gold"},{"tenant":"b","plan":"gold"}}', 'the list does not end'],
  ])('is invalid as the list [%s', (rest, message) => {
    const rows = rest === '' ? '[]' : `[${rest}`;
    expect(problemsOf(POLICY, rows, 'rows.json').join('\n')).toContain(message);
  });

  test('refuses elements of a list that are no objects, each at its place', () => {
    const rows =
      '[{"tenant":"ok"}, 5,\n  {"tenant":"a","x":[1,2]},, {"tenant":"b","burst":"x]"}\n{"tenant":"c"}]';
    expect(problemsOf(POLICY, rows, 'rows.json').map((problem) => problem.split('; until')[0])).toEqual([
      'rows.json:1:19: the row is not a JSON object; write an object for each customer',
      expect.stringContaining(
        'rows.json:2:3: no limit uses the value "x"; the known columns are plan, unlimited',
      ),
      expect.stringMatching(/^rows\.json:2:28: the row is not a JSON object/),
      expect.stringMatching(/^rows\.json:2:30: the row is not a JSON object/),
    ]);
  });
});

describe('"columns" of "plans"', () => {
  const columns = (names: string, policy = POLICY): string =>
    policy.replace('from:', `columns: [${names}], from:`);
  const limitsOf = (rows: string, file: string, names = 'plan'): readonly (string | number | undefined)[] => {
    const policy = withRows(rows, columns(names), file);
    return [policy.plans?.rowCount, policy.plans?.refused, limitOf(policy, 'tenant=acme')];
  };
  const gold = 'token bucket: 9 tokens, 1 every 1s';

  test.each([
    ['rows.csv', 'id,tenant,plan,burst,id\n1,acme,gold,many,1\n2,b,free,0,2\n'],
    ['rows.csv', 'notes;tenant;plan;burst\n"two\r\nlines, ""5""";acme;gold;many\n;"b";free;0\n'],
    [
      'rows.jsonl',
      '{"id":1,"tenant":"acme","tags":["x"],"plan":"gold","burst":{}}\n{"tenant":"b","plan":"free"}\n',
    ],
    ['rows.json', '[{"id":1,"tenant":"acme","tags":["x"],"plan":"gold"},\n{"tenant":"b","plan":"free"}]'],
    ['rows.yaml', 'acme: { id: 1, tags: [x], plan: gold, burst: many }\nb: free\n'],
  ])('names those to read in %s: %j', (file, rows) => {
    expect(limitsOf(rows, file)).toEqual([2, 0, gold]);
  });

  test('names those to read in Redis', () => {
    const address = 'redis://h:1/rows';
    const rows =
      '["acme","{\\"id\\":1,\\"plan\\":\\"gold\\",\\"tenant\\":\\"x\\"}"]\n["b","free"]\n["c","NULL"]\n';
    const policy = policyOf(columns('plan').replace('rows.csv', `"${address}"`), { [address]: rows });
    expect(policy.plans).toMatchObject({ rowCount: 3, refused: 0 });
    expect(limitOf(policy, 'tenant=acme')).toBe(gold);
  });

  test('may have the lines of a cell in a column that is ignored, and only there', () => {
    const rows = 'tenant,plan,notes\nacme,gold,"a\nb"\nevil,"evil\nstaff,staff,"x\ny"\nlast,gold\n';
    expect(problemsOf(columns('plan'), rows)).toEqual([
      expect.stringContaining('rows.csv:4:1: a quote is not closed on this line'),
      expect.stringContaining(
        'rows.csv:7:1: the row has 2 columns, but the first line has 3; correct the commas',
      ),
    ]);
    const policy = withRows(rows, columns('plan'));
    expect(limitOf(policy, 'tenant=staff')).toBe('unlimited');
    // The lines in these quotes are rows, so a quote is forgotten.
    for (const hidden of ['b,gold,6', 'b,gold,6\nc,free,7']) {
      const open = `tenant,plan,notes\nacme,gold,"open\n${hidden}\nd,free,"\ne,gold,x\n`;
      expect(problemsOf(columns('plan'), open)[0]).toMatch(/^rows\.csv:2:1: a quote is not closed/);
      expect(limitOf(withRows(open, columns('plan')), 'tenant=b')).toBe(gold);
    }
    const short = 'tenant,plan,notes\nacme,gold,"open\nb,gold,"\n';
    expect(problemsOf(columns('plan'), short).join('\n')).toContain('rows.csv:2:1: a quote is not closed');
  });

  test.each([
    ...cases`
      brust => "brust"; did you mean "burst"?
      plan, burst => rows.csv:1:1: the column "burst" is missing; add it to the first line, or remove it from
      [plan] => plans.columns[0]: each item of "columns" must be a non-empty string
    `,
    ['', 'plans.columns: the list "columns" is empty; add an item, or remove the list'],
  ])('cannot be [%s]', (names, message) => {
    expect(problemsOf(columns(names)).join('\n')).toContain(message);
  });

  test('with an unknown name is one error', () => {
    expect(problemsOf(columns('plan, brust'))).toEqual([
      expect.stringContaining('plans.columns[1]: no limit uses the column "brust"; did you mean "burst"?'),
    ]);
  });

  test('needs a table', () => {
    expect(problemsOf(columns('plan').replace('from: rows.csv, ', '')).join('\n')).toContain(
      '"columns" names columns of a table; add "from", or remove "columns"',
    );
  });

  test.each([
    ['rows.csv', 'tenant,plan,burst,blocked\nacme,gold,5,true\n'],
    ['rows.yaml', 'acme: { plan: gold, burst: 5, blocked: true }\n'],
  ])('warns if it leaves out a column with a meaning in %s', (file, rows) => {
    const why = 'has no effect in this file, because "plans.columns" does not list it; add it there';
    expect(problemsOf(columns('burst'), rows, file)).toEqual([
      `${file}: "plan" ${why}`,
      `${file}: "blocked" ${why}`,
    ]);
    expect(limitsOf(rows, file, 'burst')).toEqual([1, 0, 'token bucket: 5 tokens, 1 every 1s']);
  });

  test('is the remedy for an unknown column', () => {
    const remedy = 'To ignore other columns, list those to read as "columns" of "plans"';
    expect(problemsOf(POLICY, 'tenant,plan,id\nacme,gold,1\n')).toEqual([
      'rows.csv:1:13: no limit uses column 3 of the first line; the known columns are tenant, plan, unlimited, ' +
        `blocked, phase, burst. ${remedy}`,
    ]);
    expect(problemsOf(POLICY, '{"tenant":"ok"}\n{"tenant":"acme","brust":1}\n', 'rows.jsonl')).toEqual([
      `rows.jsonl:2:1: no limit uses the value "brust"; did you mean "burst"? ${remedy}; until then, the customer ` +
        'has the default limits',
    ]);
  });
});

describe('a table that two domains share', () => {
  test('has the problems that each of them finds', () => {
    const directory = new PolicyDir();
    const { errors, warnings } = directory.load({
      'rows.csv': 'tenant,plan\nacme,gold\nb,evil\n',
      'a.yaml': POLICY,
      'z.yaml': POLICY.replace('domain: d', 'domain: z').replace(
        'evil: { blocked: true }',
        'e: { burst: 1 }',
      ),
    });
    expect(errors).toEqual([]);
    expect(warnings.map(formatProblem)).toEqual([
      expect.stringMatching(
        /rows\.csv:3:3: plan: the row does not name a plan of "define"; the plans are free, gold, e, staff/,
      ),
    ]);
  });
});

describe('wrong quotes in a CSV file', () => {
  test.each(['"gold', '"gold"x', 'go"ld'])('refuse only their row: %s', (cell) => {
    const rows = `tenant,plan\nacme,${cell}\nevil,evil\n`;
    expect(problemsOf(POLICY, rows)).toEqual([
      'rows.csv:2:1: a quote is not closed on this line, or text follows it; close the quotes, and write "" for a ' +
        'quote in a cell; until then, the customer has the default limits',
    ]);
    expect(limitOf(withRows(rows), 'tenant=evil')).toBe('blocked: no requests');
  });
});

test('a limit with values from plans counts no denied requests, and blocks without a store', () => {
  const policy = withRows(
    'tenant,plan\nevil,evil\n',
    POLICY.replace(LIMIT, 'on_store_failure: allow, unit: day, requests_per_unit: { plan: burst }'),
  );
  const rulesOf = (tenant: string) => policy.match(entries(`tenant=${tenant}`)).rules;
  expect(rulesOf('x')).toMatchObject([{ rate: { countsOnlyAllowed: true }, onStoreFailure: 'allow' }]);
  expect(rulesOf('evil')).toMatchObject([{ onStoreFailure: 'deny' }]);
});

test('an estimate can come from a plan, and each row is checked against its own limit', () => {
  const limit =
    'unit: day, requests_per_unit: { plan: burst }, max_debt: 0, hold: { amount: { plan: estimate, default: 2 } }';
  const held = POLICY.replace(LIMIT, limit);
  const policy = withRows('tenant,plan,estimate\nacme,gold,7\nevil,evil,\nme,staff,\n', held);
  const holdOf = (tenant: string) => policy.match(entries(`tenant=${tenant}`)).rules[0]?.hold?.amount;
  expect(['acme', 'x', 'evil', 'me'].map(holdOf)).toEqual([7, 2, undefined, undefined]);
  expect(problemsOf(held, 'tenant,plan,estimate\nacme,gold,10\n').join('\n')).toContain(
    'rows.csv:2:11: estimate: "amount" is 10, but the limit never allows more than 9 hits',
  );
});

describe('an invalid policy with plans', () => {
  test.each([
    ['plans: { by: tenant, from: rows.csv }', 'customers without a row have no value "burst"'],
    ['plans: { by: tenant, define: {} }', '"plans" has no rows'],
    ['plans: { from: rows.csv }', '"by" is missing'],
    [PLANS.replace('default: free', 'default: fre'), '"fre" is not a plan of "define"; did you mean "free"?'],
    [
      PLANS.replace('gold: { burst', 'gold: { brust'),
      'no limit uses the value "brust"; did you mean "burst"?',
    ],
    [PLANS.replace('burst: 9', 'burst: 0'), 'plans.define.gold.burst: "max_tokens" is 0'],
    [PLANS.replace('by: tenant', 'by: user'), 'no descriptor from the top to here has the key "user"'],
    [PLANS.replace('by: tenant', 'by: api_key'), 'the values of "api_key" are secrets'],
    [PLANS.replace('blocked: true', 'blocked: true, unlimited: yes'), 'both "unlimited" and "blocked"'],
    [PLANS.replace('from: rows.csv', 'from: rows.txt'), 'the format of the file is unknown'],
    ['', 'the value comes from a plan, but the policy has no "plans"'],
  ])('%s: %s', (plans, message) => {
    const rows = plans.includes('rows.txt') ? 'rows.txt' : 'rows.csv';
    expect(problemsOf(POLICY.replace(PLANS, plans), undefined, rows).join('\n')).toContain(message);
  });

  test.each(['unit: {}, requests_per_unit: 1', 'unit: { default: day }, requests_per_unit: 1'])(
    'a value without a name is one error without plans: %s',
    (limit) => {
      expect(problemsOf(`domain: d\ndescriptors: [{ key: k, rate_limit: { ${limit} } }]\n`)).toEqual([
        expect.stringContaining('rate_limit.unit.plan: "plan" is missing; write the name of a value'),
      ]);
    },
  );

  test.each([
    ['{ plan: burst, deflt: 1 }', 'unknown key "deflt"'],
    ['{ default: 1 }', '"plan" is missing'],
    ['{ plan: blocked }', '"blocked" cannot be the name of a value'],
    ['{ plan: burst, default: [1] }', '"default" is a list; write a whole number'],
  ])('has no value %s', (value, message) => {
    expect(problemsOf(POLICY.replace('{ plan: burst }', value)).join('\n')).toContain(message);
  });

  test.each(cases`
    token_bucket: { max_tokens: { plan: burst }, fill_interval: 1s }, hold: { amount: 1 }
      .hold: "hold" cannot be combined with a token bucket whose numbers come from a plan
    algorithm: token_bucket, unit: day, requests_per_unit: { plan: burst }, hold: { amount: 1 }
      .hold: "hold" cannot be combined with a token bucket
    unit: { plan: unit, default: day }, requests_per_unit: { plan: burst }, hold: { amount: 1 }
      .unit: "unit" cannot come from a plan if the limit has "hold"
    unit: day, requests_per_unit: { plan: burst }, hold: { amount: 1 }
      .rate_limit.max_debt: if the limit has "hold" and a value from a plan, "max_debt" must be 0
    unit: day, requests_per_unit: { plan: burst }, hold: { amount: 3 }
      "amount" is 3, but the limit never allows more than 2 hits
    unit: day, requests_per_unit: 9, hold: { amount: { plan: burst }, expires_after: { plan: time } }
      .hold.expires_after: "expires_after" cannot take a value from a plan; write the value
    concurrency: { max: { plan: burst }, expires_after: { plan: time } }
      .concurrency.expires_after: "expires_after" cannot take a value from a plan
    unit: day, requests_per_unit: { plan: burst }, unit_multiplier: { plan: burst }
      .unit_multiplier: "unit_multiplier" cannot take a value from a plan
    token_bucket: { plan: burst } => .token_bucket: "token_bucket" cannot take a value from a plan
  `)('cannot have the limit %s', (limit, message) => {
    const [problem = '', ...others] = problemsOf(POLICY.replace(LIMIT, limit));
    expect(problem).toContain(message);
    expect(others.join('\n')).not.toContain('rate_limit');
  });

  test('cannot combine values with a shared bucket', () => {
    const shared = POLICY.replace('key: tenant, ', 'key: tenant, value: "*", share_threshold: true, ');
    expect(problemsOf(shared).join('\n')).toContain('share one bucket here');
    // The first entry selects the row.
    const twice = POLICY.replace(
      'key: tenant, ',
      'key: tenant, value: "*", share_threshold: true, descriptors: [{ key: tenant, ',
    ).replace(' }]', ' }] }]');
    expect(problemsOf(twice).join('\n')).toContain('share one bucket here');
  });

  test('cannot have a plan whose name is too long for a row', () => {
    for (const name of ['""', 'x'.repeat(257)]) {
      const problems = problemsOf(POLICY.replace('gold: {', `${name}: {`), 'tenant,plan\nacme,free\n');
      expect(problems.join('\n')).toContain('the name of a plan must have 1 to 256 characters');
    }
  });

  test('cannot use one value in two ways', () => {
    const both = POLICY.replace('fill_interval: 1s', 'fill_interval: { plan: burst }');
    expect(problemsOf(both).join('\n')).toContain(
      'another limit uses the value "burst" as a value of another type',
    );
  });
});

describe('a row that is invalid', () => {
  const FATE = '; until then, the customer has the default limits';

  test.each([
    ...cases`
      tenant,plan\nok,gold\nacme,gld => rows.csv:3:6: plan: "gld" is not a plan of "define"
      tenant,burst\nok,1\nacme,-5
        rows.csv:3:6: burst: "burst" is -5; write a whole number from 1 to 4294967295
      tenant,burst\nok,1\nacme,0 => rows.csv:3:6: burst: "max_tokens" is 0
      tenant,burst\nok,1\nacme,1000.5 => rows.csv:3:6: burst: "burst" is 1000.5; write a whole number
      tenant;burst\nok;1\nacme;1000,0 => rows.csv:3:6: burst: "burst" is "1000,0"; write a whole number
      tenant,burst\nok,1\n,5 => rows.csv:3:1: tenant: the customer is missing
      tenant,burst\nok,1\nacme,5,6 => rows.csv:3:1: the row has 3 columns, but the first line has 2
      tenant,blocked\nok,true\nacme,maybe => rows.csv:3:6: blocked: "blocked" is "maybe"; write true or false
      tenant,phase\nok,active\nacme,actve => rows.csv:3:6: phase: "actve" is not one of
      tenant,burst\nok,1\n${'x'.repeat(300)},5 => the customer has more than 256 characters
    `,
    ...['010', '0x10', '1_000', '1.000'].map((text) => [
      `tenant,burst\nok,10\nacme,${text}`,
      `rows.csv:3:6: burst: "burst" is "${text}"; write digits only, without leading zeros and separators`,
    ]),
  ])('%j is refused: %s', (rows, message) => {
    const { policy, problems, tableFiles } = parse(POLICY, { 'rows.csv': rows });
    expect(problems.errors).toEqual([]);
    const [warning = ''] = tableFiles[0]?.warnings.map(formatProblem) ?? [];
    expect(warning).toContain(message);
    expect(warning.endsWith(FATE)).toBe(true);
    expect(policy?.plans).toMatchObject({ refused: 1 });
    expect(limitOf(policy, 'tenant=acme')).toBe('token bucket: 2 tokens, 1 every 1s');
  });

  test('is the second one of the same customer', () => {
    const { policy, tableFiles } = parse(POLICY, { 'rows.csv': 'tenant,plan\nacme,gold\nacme,free\n' });
    expect(tableFiles[0]?.warnings.map(formatProblem)).toEqual([
      'rows.csv:3:1: tenant: line 2 has a row for the same customer, which weir uses; remove one of the two rows',
    ]);
    expect(limitOf(policy, 'tenant=acme')).toBe('token bucket: 9 tokens, 1 every 1s');
  });

  test.each(cases`
    rows.jsonl => {"tenant":"ok"}\n[]\n => rows.jsonl:2:1: the row is not a JSON object
    rows.jsonl
      {"tenant":"ok"}\n{"tenant":"a","burts":1}
      no limit uses the value "burts"; did you mean "burst"?
    rows.jsonl => {"tenant":"ok"}\n{"tenant":"a","burst":{}} => "burst" must be a single value
    rows.jsonl
      {"tenant":"ok"}\n{"tenant":90071992547409931}
      rows.jsonl:2:1: tenant: the customer is not a whole number below 2^53; write it in quotes
    rows.jsonl
      {"tenant":"ok","plan":"a: \\"b\\":"}\n{"tenant":"a","burst":1,"burst":9}
      rows.jsonl:2:1: the row has two values with the same name
    rows.yaml => ok: free\nacme: [gold]\n => rows.yaml:2:7: the row must be the name of a plan
  `)('in %s is refused: %j', (file, rows, message) => {
    expect(problemsOf(POLICY, rows, file).join('\n')).toContain(message);
  });

  test('never shows its customer', () => {
    const rows = 'tenant,plan\nok,gold\nsk-secret,gld\nsk-secret,gold\nsk-secret\n';
    expect(problemsOf(POLICY, rows).join('\n')).not.toContain('sk-secret');
  });
});

describe('a file that is invalid', () => {
  test.each(cases`
    tenant,brust\nacme,1\n => rows.csv:1:8: no limit uses the column "brust"; did you mean "burst"?
    tenant|plan\nacme|gold\n => no limit uses column 1 of the first line; the known columns are tenant, plan
    tenant,"plan\nacme,gold\n => rows.csv:1:1: a quote is not closed on this line
    plan,burst\ngold,1\n => the column "tenant" is missing
    tenant,plan,plan\na,gold,gold\n => two columns are named "plan"
  `)('%j', (rows, message) => {
    const { policy, tableFiles } = parse(POLICY, { 'rows.csv': rows });
    expect(policy).toBeUndefined();
    expect(tableFiles[0]?.errors.map(formatProblem).join('\n')).toContain(message);
  });
});

test('a missing file is named with its path relative to the policy', () => {
  const text = POLICY.replace('rows.csv', 'none.csv');
  const directory = new PolicyDir();
  directory.dir.write('d.yaml', text);
  const path = relative(process.cwd(), directory.dir.path);
  const [error] = loadPolicies([join(path, 'd.yaml')]).errors;
  expect(error?.message).toBe(
    `"${join(path, 'none.csv')}" does not exist: "none.csv" is relative to the policy file; check the path`,
  );
  directory.dir.remove();
});

describe('a reload', () => {
  const limitIn = (dir: PolicyDir, files: Readonly<Record<string, string | undefined>>) => {
    const loaded = dir.load(files);
    return {
      loaded,
      limit: (tenant: string) => limitOf(loaded.policySet.domains.get('d'), `tenant=${tenant}`),
    };
  };

  test('acts on a changed row, and keeps the values of invalid ones', () => {
    const dir = new PolicyDir();
    limitIn(dir, { 'd.yaml': POLICY, 'rows.csv': 'tenant,plan,burst\nacme,gold,\nb,evil,\nc,gold,5\n' });
    const { loaded, limit } = limitIn(dir, {
      'rows.csv': 'tenant,plan,burst\nacme,free,\nb,evl,\nc,gold,0\n',
    });
    expect(loaded.errors).toEqual([]);
    expect(loaded.warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('until then, the row keeps its previous values'),
      expect.stringContaining('until then, the row keeps its previous values'),
    ]);
    expect(limit('acme')).toBe('token bucket: 2 tokens, 1 every 1s');
    expect(limit('b')).toBe('blocked: no requests');
    expect(limit('c')).toBe('token bucket: 5 tokens, 1 every 1s');
    const again = limitIn(dir, { 'rows.csv': 'tenant,plan,burst\nacme,gold,\nb,evl,\nc,gold,0\n' });
    expect(again.limit('b')).toBe('blocked: no requests');
    dir.restart();
    expect(limitIn(dir, {}).limit('b')).toBe('token bucket: 2 tokens, 1 every 1s');
    dir.dir.remove();
  });

  test('keeps the rows in effect if the file is gone, empty, or lacks too many rows', () => {
    const dir = new PolicyDir();
    const rows = Array.from({ length: 20 }, (_, i) => `t${i},gold\n`);
    const file = (count: number): string => `tenant,plan\n${rows.slice(0, count).join('')}`;
    limitIn(dir, { 'd.yaml': POLICY, 'rows.csv': file(20) });
    for (const [bad, message] of [
      [undefined, 'does not exist'],
      ['tenant,plan\n', 'the file has no rows'],
      [file(15), '5 of 20 rows are gone, more than 20 %'],
    ] as const) {
      const { loaded, limit } = limitIn(dir, { 'rows.csv': bad });
      expect(dir.errorsOf(loaded).join()).toContain(message);
      expect(loaded.domains).toMatchObject([{ domain: 'd', state: 'kept' }]);
      expect(limit('t19')).toBe('token bucket: 9 tokens, 1 every 1s');
      limitIn(dir, { 'rows.csv': file(20) });
    }
    expect(limitIn(dir, { 'rows.csv': file(16) }).limit('t19')).toBe('token bucket: 2 tokens, 1 every 1s');
    const all = POLICY.replace('from:', 'max_drop: 100, from:');
    const { loaded, limit } = limitIn(dir, { 'd.yaml': all, 'rows.csv': file(1) });
    expect(loaded.errors).toEqual([]);
    expect(limit('t5')).toBe('token bucket: 2 tokens, 1 every 1s');
    dir.dir.remove();
  });

  describe('of a table that is written in place', () => {
    const half = 'tenant,plan\na,gold\n';
    let dir: PolicyDir;
    let pauses: number;
    /** Calls `act` whenever the reader waits for another write. */
    const onPause = (act: () => void): void => {
      jest.spyOn(Atomics, 'wait').mockImplementation(() => {
        pauses++;
        act();
        return 'timed-out';
      });
    };
    const write = (text: string): void => {
      dir.dir.write('rows.csv', text);
      // A loaded machine may need long to read the file.
      const later = Date.now() / 1000 + 60 + pauses;
      utimesSync(dir.join('rows.csv'), later, later);
    };
    const load = () => {
      const loaded = dir.load({});
      return {
        errors: dir.errorsOf(loaded).join(),
        rows: loaded.policySet.domains.get('d')?.plans?.rowCount,
      };
    };
    beforeEach(() => {
      dir = new PolicyDir({ rows: new Map() });
      pauses = 0;
      // The policy itself is complete.
      utimesSync(dir.dir.write('d.yaml', POLICY), 0, 0);
      write(half);
    });
    afterEach(() => void jest.restoreAllMocks());

    test('waits until it is complete', () => {
      onPause(() => {
        if (pauses <= 3) write(`${half}b,gold\n${pauses < 3 ? '' : 'c,gold\n'}`);
      });
      expect(load()).toEqual({ errors: '', rows: 3 });
    });

    test('keeps the rows in effect if the writes do not end', () => {
      onPause(() => {});
      expect(load()).toEqual({ errors: '', rows: 1 });
      onPause(() => write(`${half}b,gold\n${'c,gold\n'.repeat(pauses)}`));
      write(half);
      const { errors, rows } = load();
      expect(errors).toContain('changed while weir read it; rename a complete new file to this name');
      expect(rows).toBe(1);
    });

    test('takes a file that was renamed meanwhile for another version', () => {
      onPause(() => {
        if (pauses === 1) renameSync(dir.dir.write('new.csv', `${half}b,gold\n`), dir.join('rows.csv'));
      });
      expect(load()).toEqual({ errors: '', rows: 1 });
      expect(load()).toEqual({ errors: '', rows: 2 });
    });
  });

  test('counts the rows that are gone, also in another file', () => {
    const dir = new PolicyDir();
    const policy = POLICY.replace('from:', 'max_drop_from: 5, from:');
    limitIn(dir, { 'd.yaml': policy, 'rows.csv': 'tenant,plan\na,gold\nb,gold\nc,gold\nd,gold\ne,gold\n' });
    const moved = { 'd.yaml': policy.replace('rows.csv', 'new.csv') };
    const few = limitIn(dir, { ...moved, 'new.csv': 'tenant,plan\na,gold\nb,gold\nc,gold\n' });
    expect(few.loaded.errors.map(({ message }) => message).join()).toContain('2 of 5 rows are gone');
    const { loaded } = limitIn(dir, { 'new.csv': 'tenant,plan\na,gold\nb,gold\nc,gold\nd,gld\n' });
    expect(loaded.policySet.domains.get('d')?.plans).toMatchObject({ refused: 1, lost: 1 });
    expect(limitOf(loaded.policySet.domains.get('d'), 'tenant=d')).toBe('token bucket: 9 tokens, 1 every 1s');
    dir.dir.remove();
  });

  test('may remove any rows of a small table, but not all', () => {
    for (const [count, from, isRefused] of [
      [4, '', false],
      [19, '', false],
      [20, '', true],
      [20, 'max_drop_from: 21, ', false],
      [4, 'max_drop_from: 4, ', true],
      [4, 'max_drop_from: 5, ', false],
    ] as const) {
      const dir = new PolicyDir();
      const file = (length: number): string =>
        `tenant,plan\n${Array.from({ length }, (_, i) => `t${i},gold\n`).join('')}`;
      limitIn(dir, { 'd.yaml': POLICY.replace('from:', `${from}from:`), 'rows.csv': file(count) });
      const { loaded } = limitIn(dir, { 'rows.csv': file(1) });
      expect([count, from, loaded.errors.length > 0]).toEqual([count, from, isRefused]);
      expect(limitIn(dir, { 'rows.csv': file(0) }).loaded.errors.join()).not.toBe('');
      dir.dir.remove();
    }
  });

  test('keeps no value of a column that has another type now', () => {
    const dir = new PolicyDir();
    limitIn(dir, { 'd.yaml': POLICY, 'rows.csv': 'tenant,burst\na,7\nb,5\n' });
    const limit = 'token_bucket: { max_tokens: 3, fill_interval: { plan: burst, default: 1h } }';
    const plans = 'plans: { by: tenant, from: rows.csv }';
    const { limit: now } = limitIn(dir, {
      'd.yaml': POLICY.replace(PLANS, plans).replace(LIMIT, limit),
      'rows.csv': 'tenant,burst\na,x\nb,5s\n',
    });
    expect(now('a')).toBe('token bucket: 3 tokens, 1 every 1h');
    expect(now('b')).toBe('token bucket: 3 tokens, 1 every 5s');
    dir.dir.remove();
  });

  test('takes the file in a directory of policies for no policy', () => {
    const dir = new PolicyDir();
    const { loaded, limit } = limitIn(dir, {
      'd.yaml': POLICY.replace('rows.csv', 'rows.yaml'),
      'rows.yaml': 'acme: gold\n',
    });
    expect(loaded.errors).toEqual([]);
    expect(loaded.warnings).toEqual([]);
    expect(limit('acme')).toBe('token bucket: 9 tokens, 1 every 1s');
    dir.dir.remove();
  });
});
