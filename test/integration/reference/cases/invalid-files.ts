/** A policy file that is rejected. */
export interface InvalidFile {
  readonly name: string;
  /** `<domain>` is replaced by a separate domain. */
  readonly text: string;
  /** Error text of the reference. */
  readonly reference: RegExp;
  /** Line of the mistake, which weir names. */
  readonly line?: number;
}

const RULE = 'rate_limit: { unit: hour, requests_per_unit: 3 }';

function descriptors(text: string): string {
  return `domain: <domain>\ndescriptors:\n${text}`;
}

/** Files that the reference rejects. */
export const INVALID_FILES: readonly InvalidFile[] = [
  { name: 'not YAML', text: '"""', reference: /error loading config file: yaml/ },
  {
    name: 'an open bracket',
    text: 'domain: <domain>\ndescriptors: [',
    reference: /error loading config file: yaml/,
  },
  {
    name: 'a tab for indentation',
    text: 'domain: <domain>\ndescriptors:\n\t- key: a\n',
    reference: /error loading config file: yaml/,
    line: 3,
  },
  { name: 'an empty file', text: '', reference: /config file cannot have empty domain/ },
  {
    name: 'no domain',
    text: 'descriptors:\n  - key: a\n',
    reference: /config file cannot have empty domain/,
  },
  {
    name: 'an empty domain',
    text: 'domain: ""\ndescriptors:\n  - key: a\n',
    reference: /config file cannot have empty domain/,
    line: 1,
  },
  {
    name: 'a list at the top',
    text: '- domain: <domain>\n',
    reference: /error loading config file/,
    line: 1,
  },
  { name: 'a text at the top', text: 'hello\n', reference: /error loading config file/, line: 1 },
  { name: 'no key', text: descriptors('  - value: x\n'), reference: /descriptor has empty key/, line: 3 },
  {
    name: 'an empty key',
    text: descriptors('  - key: ""\n'),
    reference: /descriptor has empty key/,
    line: 3,
  },
  {
    name: 'no key on an inner level',
    text: descriptors(`  - key: a\n    descriptors:\n      - ${RULE}\n`),
    reference: /descriptor has empty key/,
    line: 5,
  },
  {
    name: 'a key twice',
    text: descriptors(`  - key: a\n    ${RULE}\n  - key: a\n`),
    reference: /duplicate descriptor composite key '[^']*\.a'/,
    line: 5,
  },
  {
    name: 'a key and value twice',
    text: descriptors(`  - key: a\n    value: x\n  - key: a\n    value: x\n`),
    reference: /duplicate descriptor composite key '[^']*\.a_x'/,
    line: 6,
  },
  {
    name: 'a pattern twice',
    text: descriptors(`  - key: a\n    value: x*\n  - key: a\n    value: x*\n`),
    reference: /duplicate descriptor composite key/,
    line: 6,
  },
  {
    name: 'a duplicate on an inner level',
    text: descriptors('  - key: a\n    descriptors:\n      - key: b\n      - key: b\n'),
    reference: /duplicate descriptor composite key '[^']*\.a\.b'/,
    line: 6,
  },
  {
    name: 'an invalid unit',
    text: descriptors('  - key: a\n    rate_limit:\n      unit: fortnight\n      requests_per_unit: 3\n'),
    reference: /invalid rate limit unit 'fortnight'/,
    line: 5,
  },
  {
    name: 'the unit unknown',
    text: descriptors('  - key: a\n    rate_limit:\n      unit: unknown\n      requests_per_unit: 3\n'),
    reference: /invalid rate limit unit 'unknown'/,
    line: 5,
  },
  {
    name: 'a plural unit',
    text: descriptors('  - key: a\n    rate_limit:\n      unit: hours\n      requests_per_unit: 3\n'),
    reference: /invalid rate limit unit 'hours'/,
    line: 5,
  },
  {
    name: 'no unit',
    text: descriptors('  - key: a\n    rate_limit:\n      requests_per_unit: 3\n'),
    reference: /invalid rate limit unit ''/,
  },
  {
    name: 'an empty rate limit',
    text: descriptors('  - key: a\n    rate_limit: {}\n'),
    reference: /invalid rate limit unit ''/,
    line: 4,
  },
  {
    name: 'unlimited with a unit',
    text: descriptors('  - key: a\n    rate_limit:\n      unlimited: true\n      unit: hour\n'),
    reference: /should not specify rate limit unit when unlimited/,
  },
  {
    name: 'a rule that replaces itself',
    text: descriptors(
      '  - key: a\n    rate_limit: { name: me, unit: hour, requests_per_unit: 3, replaces: [{ name: me }] }\n',
    ),
    reference: /replaces should not contain name of same descriptor/,
    line: 4,
  },
  {
    name: 'an empty entry in replaces',
    text: descriptors(
      '  - key: a\n    rate_limit: { unit: hour, requests_per_unit: 3, replaces: [{ name: }] }\n',
    ),
    reference: /should not have an empty replaces entry/,
    line: 4,
  },
  {
    name: 'share_threshold without a star',
    text: descriptors(`  - key: a\n    value: x\n    share_threshold: true\n    ${RULE}\n`),
    reference: /share_threshold can only be used with wildcard values/,
  },
  {
    name: 'share_threshold without a value',
    text: descriptors(`  - key: a\n    share_threshold: true\n    ${RULE}\n`),
    reference: /share_threshold can only be used with wildcard values/,
  },
  {
    name: 'a word that is not rate_limit',
    text: descriptors('  - key: a\n    ratelimit: { unit: hour, requests_per_unit: 3 }\n'),
    reference: /config error, unknown key 'ratelimit'/,
    line: 4,
  },
  {
    name: 'a word that is not requests_per_unit',
    text: descriptors('  - key: a\n    rate_limit:\n      unit: hour\n      request_per_unit: 3\n'),
    reference: /config error, unknown key 'request_per_unit'/,
    line: 6,
  },
  {
    name: 'an unknown word at the top',
    text: 'domain: <domain>\ndescriptor:\n  - key: a\n',
    reference: /config error, unknown key 'descriptor'/,
    line: 2,
  },
  {
    name: 'a number as a word',
    text: 'domain: <domain>\n0.5: x\n',
    reference: /config error, key is not of type string: 0.5/,
    line: 2,
  },
  {
    name: 'texts where descriptors should be',
    text: descriptors('  - a\n  - b\n'),
    reference: /yaml file contains list of type other than map/,
    line: 3,
  },
  {
    name: 'a map where descriptors should be',
    text: 'domain: <domain>\ndescriptors:\n  key: a\n',
    reference: /error loading config file/,
    line: 3,
  },
  {
    name: 'a negative limit',
    text: descriptors('  - key: a\n    rate_limit: { unit: hour, requests_per_unit: -1 }\n'),
    reference: /error loading config file/,
    line: 4,
  },
  {
    name: 'a limit beyond 32 bits',
    text: descriptors('  - key: a\n    rate_limit: { unit: hour, requests_per_unit: 4294967296 }\n'),
    reference: /error loading config file/,
    line: 4,
  },
  {
    name: 'a limit with a fraction',
    text: descriptors('  - key: a\n    rate_limit: { unit: hour, requests_per_unit: 1.5 }\n'),
    reference: /error checking config/,
    line: 4,
  },
  {
    name: 'a limit as a text',
    text: descriptors('  - key: a\n    rate_limit: { unit: hour, requests_per_unit: "3" }\n'),
    reference: /error loading config file/,
    line: 4,
  },
  {
    name: 'a text for true',
    text: descriptors(`  - key: a\n    shadow_mode: "true"\n    ${RULE}\n`),
    reference: /error loading config file/,
    line: 4,
  },
  {
    name: 'an alias of nothing',
    text: descriptors('  - key: a\n    rate_limit: *missing\n'),
    reference: /error loading config file/,
    line: 4,
  },
  {
    name: 'metadata that is no map',
    text: descriptors(`  - key: a\n    metadata: [1]\n    ${RULE}\n`),
    reference: /error loading config file/,
    line: 4,
  },
];
