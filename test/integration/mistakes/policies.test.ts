/*
 * Tests the output of the process weir check-config for invalid and missing domains, and for warnings. A start prints
 * the same lines. The texts themselves are in unit/config/read/ and unit/policy/.
 */
import { describe } from '@jest/globals';
import { type BadPolicy, checked, LIMIT, node, testMistakes } from './table.js';

const POLICIES: readonly BadPolicy[] = [
  {
    what: 'a mistyped key',
    policy: `domain: shop\ndescriptors:\n  - kye: customer\n${LIMIT}`,
    prints: `shop.yaml:3:5: descriptors[0].kye: unknown key "kye"; did you mean "key"?
shop.yaml:3:5: descriptors[0].key: "key" is missing; write the key of the entry that this descriptor matches
domains that would fail to load: shop
2 errors
`,
  },
  {
    what: 'no domain',
    policy: `descriptors:\n  - key: customer\n${LIMIT}`,
    prints: `shop.yaml:1:1: domain: "domain" is missing or empty; write the domain that Envoy sends, as in domain: shop
1 error
`,
  },
  {
    what: 'quotes of a word processor',
    policy: `${node('value: “ann”').replace('shop', '“shop”').replace('key: customer', 'key: ‘customer’')}`,
    warning: true,
    prints: `warning: shop.yaml:1:9: domain: "domain" begins with “ and ends with ”, which YAML treats as part of the text; use straight quotes (") instead, or quote the whole text if requests contain these characters
warning: shop.yaml:3:10: descriptors[0].key: "key" begins with ‘ and ends with ’, which YAML treats as part of the text; use straight quotes (") instead, or quote the whole text if requests contain these characters
warning: shop.yaml:4:12: descriptors[0].value: "value" begins with “ and ends with ”, which YAML treats as part of the text; use straight quotes (") instead, or quote the whole text if requests contain these characters
ok: 1 file, '“shop”' (1 rule)
`,
  },
];

describe('weir check-config reports a policy', () => {
  testMistakes(POLICIES.map(checked));
});
