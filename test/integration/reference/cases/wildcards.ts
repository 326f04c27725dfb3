import { drain, NONE, ok, over, type ReferenceCase } from '../case.js';

/** Patterns in values, and thresholds that all values of a pattern share. */
export const WILDCARDS: readonly ReferenceCase[] = [
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
    name: 'the exact value takes precedence over a pattern, whatever their order',
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
    name: 'a pattern takes precedence over the node without a value on its level',
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
    name: 'each value of a pattern has a separate counter',
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
    name: 'an exact value on the same level as a shared pattern has a separate counter',
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
];
