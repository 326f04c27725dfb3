import { drain, NONE, ok, over, type ReferenceCase } from '../case.js';

/** Patterns in values, and thresholds that all values of a pattern share. */
export const WILDCARDS: readonly ReferenceCase[] = [
  {
    name: 'a star at the end',
    rules: `
  - key: path
    value: /img/*
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'path=/img/a.png', get: [ok('3/hour', 2)] },
      { ask: 'path=/img/', get: [ok('3/hour', 2)] },
      { ask: 'path=/im', get: [NONE] },
      { ask: 'path=x/img/a.png', get: [NONE] },
    ],
    stats: { 'path_/img/*.total_hits': 2, 'path_/img/*.within_limit': 2 },
  },
  {
    name: 'a star at the beginning',
    rules: `
  - key: host
    value: "*.example"
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'host=www.example', get: [ok('3/hour', 2)] },
      { ask: 'host=.example', get: [ok('3/hour', 2)] },
      { ask: 'host=www.example.org', get: [NONE] },
    ],
  },
  {
    name: 'a star in the middle needs the text on both sides',
    rules: `
  - key: path
    value: /users/*/photo
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'path=/users/7/photo', get: [ok('3/hour', 2)] },
      { ask: 'path=/users/7/8/photo', get: [ok('3/hour', 2)] },
      { ask: 'path=/users//photo', get: [ok('3/hour', 2)] },
      { ask: 'path=/users/7/photos', get: [NONE] },
      { ask: 'path=/user/7/photo', get: [NONE] },
    ],
  },
  {
    name: 'several stars match in order',
    rules: `
  - key: route
    value: /v*/item/*/buy
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'route=/v1/item/9/buy', get: [ok('3/hour', 2)] },
      { ask: 'route=/v1/item/item/buy', get: [ok('3/hour', 2)] },
      { ask: 'route=/v1/buy/9/item', get: [NONE] },
      { ask: 'route=/v1/item/buy', get: [NONE] },
    ],
  },
  {
    name: 'text before and after a star may not overlap',
    rules: `
  - key: word
    value: aba*aba
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'word=aba', get: [NONE] },
      { ask: 'word=ababa', get: [NONE] },
      { ask: 'word=abaaba', get: [ok('3/hour', 2)] },
      { ask: 'word=aba-aba', get: [ok('3/hour', 2)] },
    ],
  },
  {
    name: 'stars beside each other are one star',
    rules: `
  - key: word
    value: a**c
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'word=abc', get: [ok('3/hour', 2)] },
      { ask: 'word=ac', get: [ok('3/hour', 2)] },
      { ask: 'word=a', get: [NONE] },
    ],
  },
  {
    name: 'a star alone matches every value and the empty one',
    rules: `
  - key: word
    value: "*"
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'word=', get: [ok('3/hour', 2)] },
      { ask: 'word=x', get: [ok('3/hour', 2)] },
      { ask: 'other=x', get: [NONE] },
    ],
  },
  {
    name: 'letters that mean something in regular expressions mean themselves',
    rules: `
  - key: word
    value: "a.b[c]+(d)?$*"
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'word=axb', get: [NONE] },
      { ask: 'word=a.b[c]+(d)?$', get: [ok('3/hour', 2)] },
      { ask: 'word=a.b[c]+(d)?$!', get: [ok('3/hour', 2)] },
    ],
  },
  {
    name: 'the exact value goes before a pattern wherever it stands',
    rules: `
  - key: path
    value: /a*
    rate_limit: { unit: hour, requests_per_unit: 3 }
  - key: path
    value: /ab
    rate_limit: { unit: hour, requests_per_unit: 9 }
`,
    steps: [
      { ask: 'path=/ab', get: [ok('9/hour', 8)] },
      { ask: 'path=/abc', get: [ok('3/hour', 2)] },
    ],
  },
  {
    name: 'the first pattern of the file that matches wins',
    rules: `
  - key: path
    value: /a/*
    rate_limit: { unit: hour, requests_per_unit: 3 }
  - key: path
    value: /a/b/*
    rate_limit: { unit: hour, requests_per_unit: 9 }
  - key: path
    value: "/*"
    rate_limit: { unit: hour, requests_per_unit: 11 }
`,
    steps: [
      { ask: 'path=/a/b/c', get: [ok('3/hour', 2)] },
      { ask: 'path=/x', get: [ok('11/hour', 10)] },
    ],
  },
  {
    name: 'a pattern goes before the key without value',
    rules: `
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 9 }
  - key: path
    value: /a*
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'path=/abc', get: [ok('3/hour', 2)] },
      { ask: 'path=/xyz', get: [ok('9/hour', 8)] },
    ],
  },
  {
    name: 'a pattern without rate_limit exempts what it matches',
    rules: `
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: path
    value: /health*
`,
    steps: [{ ask: 'path=/healthz', times: 3, get: [NONE] }, ...drain('path=/x', '1/hour')],
  },
  {
    name: 'a pattern closes the way to the default beside it',
    rules: `
  - key: app
    value: s*
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: app
    descriptors:
      - key: path
        rate_limit: { unit: hour, requests_per_unit: 6 }
`,
    steps: [
      { ask: 'app=shop path=/', get: [NONE] },
      { ask: 'app=shop user=ann', get: [ok('5/hour', 4)] },
      { ask: 'app=blog path=/', get: [ok('6/hour', 5)] },
    ],
  },
  {
    name: 'patterns on an inner level',
    rules: `
  - key: app
    value: shop
    descriptors:
      - key: path
        value: /c*
        rate_limit: { unit: hour, requests_per_unit: 4 }
`,
    steps: [
      { ask: 'app=shop path=/cart', get: [ok('4/hour', 3)] },
      { ask: 'app=shop path=/cash', get: [ok('4/hour', 3)] },
      { ask: 'app=shop path=/', get: [NONE] },
    ],
  },
  {
    name: 'each value of a pattern has a counter of its own',
    rules: `
  - key: file
    value: f/*
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [...drain('file=f/a', '2/hour'), ...drain('file=f/b', '2/hour')],
    stats: {
      'file_f/*.total_hits': 6,
      'file_f/*.over_limit': 2,
      'file_f/*.near_limit': 2,
      'file_f/*.within_limit': 4,
    },
  },
  {
    name: 'values of a pattern with share_threshold share one counter',
    rules: `
  - key: file
    value: f/*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'file=f/a', get: [ok('3/hour', 2)] },
      { ask: 'file=f/b', get: [ok('3/hour', 1)] },
      { ask: 'file=f/', get: [ok('3/hour', 0)] },
      { ask: 'file=f/c', get: [over('3/hour')] },
      { ask: 'file=f/a', get: [over('3/hour')] },
    ],
    stats: {
      'file_f/*.total_hits': 5,
      'file_f/*.over_limit': 2,
      'file_f/*.near_limit': 1,
      'file_f/*.within_limit': 3,
    },
  },
  {
    name: 'share_threshold false is as if it were not there',
    rules: `
  - key: file
    value: f/*
    share_threshold: false
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [...drain('file=f/a', '1/hour'), ...drain('file=f/b', '1/hour')],
  },
  {
    name: 'an exact value beside a shared pattern keeps its own counter',
    rules: `
  - key: file
    value: f/special
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: file
    value: f/*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      ...drain('file=f/special', '2/hour'),
      { ask: 'file=f/a', get: [ok('2/hour', 1)] },
      { ask: 'file=f/b', get: [ok('2/hour', 0)] },
    ],
  },
  {
    name: 'levels below a shared pattern keep their own values',
    rules: `
  - key: area
    value: eu-*
    share_threshold: true
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'area=eu-north user=ann', get: [ok('2/hour', 1)] },
      { ask: 'area=eu-south user=ann', get: [ok('2/hour', 0)] },
      { ask: 'area=eu-west user=ann', get: [over('2/hour')] },
      { ask: 'area=eu-west user=bob', get: [ok('2/hour', 1)] },
    ],
    stats: {
      'area_eu-*.user.total_hits': 4,
      'area_eu-*.user.over_limit': 1,
      'area_eu-*.user.near_limit': 1,
      'area_eu-*.user.within_limit': 3,
    },
  },
  {
    name: 'a shared pattern below one that is not shared',
    rules: `
  - key: area
    value: eu-*
    descriptors:
      - key: file
        value: f*
        share_threshold: true
        rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'area=eu-north file=f1', get: [ok('2/hour', 1)] },
      { ask: 'area=eu-north file=f2', get: [ok('2/hour', 0)] },
      { ask: 'area=eu-south file=f1', get: [ok('2/hour', 1)] },
    ],
  },
  {
    name: 'shared patterns on two levels with the same key',
    rules: `
  - key: part
    value: top/*
    share_threshold: true
    descriptors:
      - key: part
        value: sub/*
        share_threshold: true
        rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'part=top/1 part=sub/1', get: [ok('3/hour', 2)] },
      { ask: 'part=top/2 part=sub/2', get: [ok('3/hour', 1)] },
      { ask: 'part=top/1', get: [NONE] },
    ],
  },
  {
    name: 'share_threshold with a star in the middle and with several',
    rules: `
  - key: path
    value: /api/*/list
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: call
    value: svc*op*v2
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'path=/api/a/list', get: [ok('2/hour', 1)] },
      { ask: 'path=/api/b/list', get: [ok('2/hour', 0)] },
      { ask: 'call=svc1op1v2', get: [ok('2/hour', 1)] },
      { ask: 'call=svc2op2v2', get: [ok('2/hour', 0)] },
      { ask: 'call=svc3op3v2', get: [over('2/hour')] },
    ],
  },
  {
    name: 'two shared patterns have a counter each',
    rules: `
  - key: file
    value: a*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: file
    value: b*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'file=a1', get: [ok('2/hour', 1)] },
      { ask: 'file=b1', get: [ok('2/hour', 1)] },
      { ask: 'file=a2', get: [ok('2/hour', 0)] },
    ],
  },
];
