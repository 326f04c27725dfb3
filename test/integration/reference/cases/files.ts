import { NONE, ok, type ReferenceCase } from '../case.js';

/** The texts of files, parsed as YAML. */
export const YAML_TEXTS: readonly ReferenceCase[] = [
  {
    name: 'values without quotes keep their text',
    rules: `
  - key: v
    value: 007
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: v
    value: yes
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: v
    value: 0x1F
    rate_limit: { unit: hour, requests_per_unit: 3 }
  - key: v
    value: 1_000
    rate_limit: { unit: hour, requests_per_unit: 4 }
  - key: v
    value: True
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: v
    value: 2026-01-02
    rate_limit: { unit: hour, requests_per_unit: 6 }
  - key: 404
    value: -1
    rate_limit: { unit: hour, requests_per_unit: 7 }
`,
    steps: [
      {
        ask: ['v=007', 'v=yes', 'v=0x1F', 'v=1_000', 'v=True', 'v=2026-01-02', '404=-1'],
        get: [1, 2, 3, 4, 5, 6, 7].map((max) => ok(`${max}/hour`, max - 1)),
      },
      { ask: ['v=7', 'v=true', 'v=31', 'v=1000'], get: [NONE, NONE, NONE, NONE] },
    ],
  },
  {
    name: 'numbers in the ways of YAML 1.1',
    rules: `
  - key: hex
    rate_limit: { unit: hour, requests_per_unit: 0x10 }
  - key: octal
    rate_limit: { unit: hour, requests_per_unit: 010 }
  - key: long
    rate_limit: { unit: hour, requests_per_unit: 1_000 }
`,
    steps: [
      {
        ask: ['hex=1', 'octal=1', 'long=1'],
        get: [ok('16/hour', 15), ok('8/hour', 7), ok('1000/hour', 999)],
      },
    ],
  },
  {
    name: 'true in the ways of YAML 1.1',
    rules: `
  - key: a
    shadow_mode: yes
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: b
    shadow_mode: On
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: c
    shadow_mode: TRUE
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: d
    shadow_mode: y
    rate_limit: { unit: hour, requests_per_unit: 0 }
`,
    steps: [
      {
        ask: ['a=1', 'b=1', 'c=1', 'd=1'],
        get: [ok('0/hour', 0), ok('0/hour', 0), ok('0/hour', 0), ok('0/hour', 0)],
      },
    ],
  },
  {
    name: 'an empty value is no value',
    rules: `
  - key: a
    value: ""
    rate_limit: { unit: hour, requests_per_unit: 3 }
  - key: b
    value:
    rate_limit: { unit: hour, requests_per_unit: 4 }
  - key: c
    value: ~
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [{ ask: ['a=1', 'b=2', 'c=3'], get: [ok('3/hour', 2), ok('4/hour', 3), ok('5/hour', 4)] }],
  },
  {
    name: 'anchors aliases and merge keys',
    rules: `
  - key: a
    rate_limit: &base
      unit: hour
      requests_per_unit: 3
  - key: b
    rate_limit: *base
  - key: c
    rate_limit:
      <<: *base
      requests_per_unit: 4
`,
    steps: [{ ask: ['a=1', 'b=1', 'c=1'], get: [ok('3/hour', 2), ok('3/hour', 2), ok('4/hour', 3)] }],
  },
  {
    name: 'quoted keys and texts over several lines',
    rules: `
  - "key": 'a'
    "value": "x\\ty"
    'rate_limit': { "unit": "hour", "requests_per_unit": 3 }
  - key: b
    value: >-
      two
      words
    rate_limit: { unit: hour, requests_per_unit: 4 }
`,
    steps: [
      {
        ask: [{ entries: [['a', 'x\ty']] }, { entries: [['b', 'two words']] }],
        get: [ok('3/hour', 2), ok('4/hour', 3)],
      },
    ],
  },
  {
    name: 'a file in JSON',
    files: {
      'as-json.yaml':
        '{"domain": "<domain>", "descriptors": [{"key": "a", "rate_limit": {"unit": "hour", "requests_per_unit": 3}}]}',
    },
    steps: [{ ask: 'a=1', get: [ok('3/hour', 2)] }],
  },
  {
    name: 'a file with carriage returns and comments',
    files: {
      'carriage.yaml':
        '# a comment\r\ndomain: <domain> # another\r\ndescriptors:\r\n  - key: a\r\n    ' +
        'rate_limit:\r\n      unit: hour\r\n      requests_per_unit: 3\r\n',
    },
    steps: [{ ask: 'a=1', get: [ok('3/hour', 2)] }],
  },
  {
    name: 'further documents of a file are dropped',
    files: {
      'two-documents.yaml': `---
domain: <domain>
descriptors:
  - key: a
    rate_limit: { unit: hour, requests_per_unit: 3 }
---
domain: <domain>-second
descriptors:
  - key: a
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    },
    steps: [
      { ask: 'a=1', get: [ok('3/hour', 2)] },
      { ask: 'a=1', domain: 'further-documents-of-a-file-are-dropped-second', get: [NONE] },
    ],
  },
  {
    name: 'a domain without descriptors is known',
    files: { 'bare.yaml': 'domain: <domain>\n', 'barer.yaml': 'domain: <domain>-2\ndescriptors:\n' },
    steps: [
      { ask: 'a=1', get: [NONE] },
      { ask: 'a=1', domain: 'a-domain-without-descriptors-is-known-2', get: [NONE] },
      { ask: { entries: 'a=1', limit: '3/hour' }, get: [ok('3/hour', 2)] },
    ],
    counters: {
      'ratelimit.service.rate_limit.a-domain-without-descriptors-is-known.domain_not_found': 0,
      'ratelimit.service.rate_limit.a-domain-without-descriptors-is-known-2.domain_not_found': 0,
    },
  },
  {
    name: 'of a word twice in one map the last counts',
    rules: `
  - key: a
    rate_limit: { unit: day, unit: hour, requests_per_unit: 3, requests_per_unit: 4 }
`,
    steps: [{ ask: 'a=1', get: [ok('4/hour', 3)] }],
    resetOf: 'hour',
  },
  {
    name: 'a rate limit of nothing is none',
    rules: `
  - key: a
    rate_limit:
  - key: b
    descriptors:
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [{ ask: ['a=1', 'b=1'], get: [NONE, ok('3/hour', 2)] }],
  },
  {
    name: 'domains and keys of letters of all kinds',
    files: {
      'letters.yaml': `
domain: "Gebühren/v1 (ü)"
descriptors:
  - key: "ключ.x"
    value: "日本*"
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    },
    steps: [
      {
        ask: { entries: [['ключ.x', '日本語']] },
        domain: 'Gebühren/v1 (ü)',
        get: [ok('3/hour', 2)],
      },
    ],
  },
  {
    name: 'two nodes that only read alike when joined are two',
    differs:
      'the reference joins key and value with an underscore and calls the second a duplicate of the first',
    notReference: true,
    rules: `
  - key: zone_eu
    rate_limit: { unit: hour, requests_per_unit: 3 }
  - key: zone
    value: eu
    rate_limit: { unit: hour, requests_per_unit: 4 }
`,
    steps: [{ ask: ['zone_eu=', 'zone=eu'], get: [ok('3/hour', 2), ok('4/hour', 3)] }],
  },
];

const ONE = (domain: string): string => `domain: ${domain}
descriptors:
  - key: a
    rate_limit: { unit: hour, requests_per_unit: 3 }
`;

/** The files that are read if RUNTIME_IGNOREDOTFILES is unset. */
export const ALL_FILES: readonly ReferenceCase[] = [
  {
    name: 'files of any name and hidden ones are read',
    files: {
      plain: ONE('no-extension'),
      'notes.txt': ONE('a-text-file'),
      '.hidden.yaml': ONE('a-hidden-file'),
      '.folder/x.yaml': ONE('a-hidden-folder'),
      'deep/er/x.yaml': ONE('a-nested-folder'),
    },
    steps: ['no-extension', 'a-text-file', 'a-hidden-file', 'a-hidden-folder', 'a-nested-folder'].map(
      (domain) => ({ ask: 'a=1', domain, get: [ok('3/hour', 2)] }),
    ),
  },
];

/** The files that are read with RUNTIME_IGNOREDOTFILES=true. */
export const NO_DOT_FILES: readonly ReferenceCase[] = [
  {
    name: 'hidden files and folders are not read',
    files: {
      'seen.yaml': ONE('a-seen-file'),
      '.hidden.yaml': ONE('a-hidden-file'),
      '..data/x.yaml': ONE('a-hidden-folder'),
      'deep/.hidden/x.yaml': ONE('a-deep-hidden-folder'),
      'deep/seen.yaml': ONE('a-deep-file'),
    },
    steps: [
      ...['a-seen-file', 'a-deep-file'].map((domain) => ({ ask: 'a=1', domain, get: [ok('3/hour', 2)] })),
      ...['a-hidden-file', 'a-hidden-folder', 'a-deep-hidden-folder'].map((domain) => ({
        ask: 'a=1',
        domain,
        get: [NONE],
      })),
    ],
  },
];

/** Files that are not in RUNTIME_APPDIRECTORY. */
export const OTHER_FILES: Readonly<Record<string, string>> = {
  'ratelimit/beside.yaml': ONE('beside-the-directory'),
  'ratelimit/other/x.yaml': ONE('another-directory'),
  'above.yaml': ONE('above-the-directory'),
};
export const ONLY_THE_DIRECTORY: readonly ReferenceCase[] = [
  {
    name: 'files next to the directory are not read',
    rules: `
  - key: a
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'a=1', get: [ok('3/hour', 2)] },
      ...['beside-the-directory', 'another-directory', 'above-the-directory'].map((domain) => ({
        ask: 'a=1',
        domain,
        get: [NONE],
      })),
    ],
  },
];

/** MERGE_DOMAIN_CONFIG=true. */
export const MERGED: readonly ReferenceCase[] = [
  {
    name: 'a domain in several files has the rules of all',
    files: {
      'm1.yaml':
        'domain: <domain>\ndescriptors:\n  - key: a\n    rate_limit: { unit: hour, requests_per_unit: 3 }\n',
      'm2.yaml':
        'domain: <domain>\ndescriptors:\n  - key: a\n    value: x\n    rate_limit: { unit: hour, ' +
        'requests_per_unit: 4 }\n  - key: b\n    rate_limit: { unit: day, requests_per_unit: 5 }\n',
      'deep/m3.yaml':
        'domain: <domain>\ndescriptors:\n  - key: c\n    descriptors:\n      - key: d\n        ' +
        'rate_limit: { unit: day, requests_per_unit: 6 }\n',
      'm4.yaml': 'domain: <domain>\n',
    },
    steps: [
      {
        ask: ['a=1', 'a=x', 'b=1', 'c=1 d=1'],
        get: [ok('3/hour', 2), ok('4/hour', 3), ok('5/day', 4), ok('6/day', 5)],
      },
    ],
  },
  {
    name: 'another domain stays on its own',
    rules: `
  - key: a
    rate_limit: { unit: hour, requests_per_unit: 9 }
`,
    steps: [{ ask: ['a=1', 'b=1'], get: [ok('9/hour', 8), NONE] }],
  },
];
