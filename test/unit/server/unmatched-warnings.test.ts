import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/limiter/entry.js';
import type { PolicySet } from '../../../src/policy/compiled-policy.js';
import {
  MAX_LINES,
  MAX_LINES_PER_HOUR,
  openUnmatchedWarnings,
  UnmatchedWarnings,
} from '../../../src/server/decision-warnings.js';
import type { Logger } from '../../../src/telemetry/logger.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { entries, setOf } from '../../support/policy/policies.js';

const RULE = 'rate_limit: { unit: day, requests_per_unit: 1 }';

const SHOP = setOf(`domain: shop\ndescriptors: [{ key: tenant, ${RULE} }]\n`, 'domain: bank\n');

/** Creates a log that keeps its warnings. */
function keepingLog(): { readonly log: Logger; readonly lines: [Record<string, unknown>, string][] } {
  const lines: [Record<string, unknown>, string][] = [];
  const log = {
    isLevelEnabled: () => false,
    warn: (fields: Record<string, unknown>, text: string) => lines.push([fields, text]),
  };
  return { log: log as unknown as Logger, lines };
}

function open(policies: PolicySet = SHOP, maxSeries = 10_000) {
  const { log, lines } = keepingLog();
  const memoryStats = () => ({ size: 0, bytes: 0, evictions: 0, holdCount: 0, refusedHolds: 0 });
  const metrics = new Metrics({ maxSeries, version: 'test', memoryStats });
  const warnings = new UnmatchedWarnings(log, () => policies);
  const observer = {
    unmatched(domain: string, all: readonly Entry[], meant: boolean): void {
      const series = metrics.unmatched(domain, all);
      if (!meant) warnings.unmatched(domain, all, series);
    },
    unknownDomain: (domain: string, descriptors: number) =>
      warnings.unknownDomain(domain, metrics.unknownDomain(domain, descriptors)),
  };
  return { lines, warnings, observer };
}

describe('a descriptor that no rule matches', () => {
  test('is reported once with its keys and the nearest keys, never with a value', () => {
    const { lines, observer } = open();
    for (let i = 0; i < 1000; i++) observer.unmatched('shop', entries(`tenat=secret${i}`), false);
    expect(lines).toEqual([
      [
        { domain: 'shop', keys: 'tenat' },
        'no rule matches this descriptor, so weir allows the descriptor without a limit: did you mean ' +
          'tenant? Run weir explain to see how far the descriptor matches. If the descriptor should have ' +
          'no limit, set on_unmatched: ignore in the policy',
      ],
    ]);
  });

  test('is shown after derive', () => {
    const derived = setOf(
      `domain: shop\nderive: [{ entry: tenant, from: [api_key], sha256: {} }]\ndescriptors: [{ key: plan, ${RULE} }]\n`,
    );
    const { lines, observer } = open(derived);
    observer.unmatched('shop', entries('tenant=sha256:0'), false);
    expect(lines[0]?.[1]).toMatch(
      /^no rule matches this descriptor \(with derived entries\), .*: rules exist for plan\. Run weir/,
    );
  });

  test('is reported again in the next hour if it still occurs', () => {
    const { lines, observer, warnings } = open();
    for (let hour = 1; hour <= 3; hour++) {
      for (let i = 0; i < 1000; i++) observer.unmatched('shop', entries('a=b', 'c d=e'), false);
      expect(lines.map(([{ keys }]) => keys)).toEqual(new Array(hour).fill("a 'c d'"));
      warnings.newHour();
    }
  });

  test('is not reported with on_unmatched: ignore', () => {
    const { lines, observer } = open();
    for (let i = 0; i < 10; i++) observer.unmatched('shop', entries('free=x'), true);
    expect(lines).toEqual([]);
    observer.unmatched('shop', entries('free=x'), false);
    observer.unmatched('shop', entries('free=x'), true);
    expect(lines.length).toBe(1);
  });

  test('is reported again after a policy change', () => {
    const { lines, observer, warnings } = open();
    for (let i = 0; i < 3; i++) {
      for (let n = 0; n < 3; n++) observer.unmatched('shop', entries('a=b'), false);
      warnings.policyChanged();
    }
    expect(lines.length).toBe(3);
  });

  test('shows a limited number of keys', () => {
    const { lines, observer } = open();
    const many = Array.from({ length: 500 }, (_, i) => `${'k'.repeat(500)}${i}=v`);
    observer.unmatched('shop', entries(...many), false);
    const [[fields, text] = [{}, '']] = lines;
    expect(fields['keys']).toMatch(/^('k{100}…' ){16}… \(484 more\)$/);
    expect(text.length).toBeLessThan(400);
  });

  test('is shown in a line of bounded length for any keys', () => {
    const odd = '\ud800\u0007'.repeat(100);
    const { lines, observer } = open();
    observer.unmatched('shop', entries(...Array.from({ length: 20 }, (_, i) => `${odd}${i}=v`)), false);
    observer.unknownDomain(odd, 1);
    expect(lines.map(([{ keys, domain }]) => keys ?? domain)).toEqual([
      expect.stringMatching(/more characters\) … \(4 more\)$/),
      expect.stringContaining('U0000d800'),
    ]);
    for (const line of lines) expect(JSON.stringify(line).length).toBeLessThan(6000);
  });
});

describe('a domain that no policy has', () => {
  test.each([
    ['shopp', SHOP, 'did you mean shop?'],
    ['nowhere', SHOP, 'the loaded domains are shop, bank.'],
    ['shop', setOf(), 'no domain is loaded.'],
  ])('%s', (domain, policies, hint) => {
    const { lines, observer } = open(policies);
    for (let i = 0; i < 5; i++) observer.unknownDomain(domain, 1);
    expect(lines).toEqual([
      [
        { domain },
        `no policy has this domain, so its requests are not overLimit: ${hint} If the domain should have no ` +
          'limits, create a policy file with on_unmatched: ignore',
      ],
    ]);
  });
});

describe('the number of lines is bounded for any requests', () => {
  test('with one policy', () => {
    const { lines, observer, warnings } = open();
    for (let i = 0; i < 3000; i++) {
      observer.unmatched('shop', entries(`made-up-${i}=x`), false);
      observer.unknownDomain(`made-up-${i}`, 1);
    }
    const more = lines.flatMap(([, text]) => /^more (?:key sequences|domains)/.exec(text) ?? []);
    expect([lines.length, more]).toEqual([2 * MAX_LINES + 2, ['more key sequences', 'more domains']]);
    warnings.newHour();
    lines.length = 0;
    // A further sequence of keys fits.
    observer.unmatched('shop', entries('tenat=x'), false);
    observer.unknownDomain('shopp', 1);
    expect(lines.map(([, text]) => /did you mean \w+/.exec(text)?.[0])).toEqual([
      'did you mean tenant',
      'did you mean shop',
    ]);
  });

  test('without free series', () => {
    const { lines, observer, warnings } = open(SHOP, 10);
    for (let i = 0; i < 1000; i++) observer.unmatched('shop', entries(`made-up-${i}=x`), false);
    expect(lines.length).toBe(11);
    warnings.newHour();
    observer.unmatched('shop', entries('another=x'), false);
    expect(lines.length).toBe(12);
  });

  test('in an hour with many policies', () => {
    const { lines, observer, warnings } = open();
    for (let i = 0; i < 1000; i++) {
      observer.unmatched('shop', entries('tenat=x'), false);
      warnings.policyChanged();
    }
    // The last line says that further requests are not logged.
    expect(lines.length).toBe(MAX_LINES_PER_HOUR + 1);
    warnings.newHour();
    observer.unmatched('shop', entries('tenat=x'), false);
    expect(lines.length).toBe(MAX_LINES_PER_HOUR + 2);
  });
});

test('a reload without changes repeats no warning', async () => {
  const { log, lines } = keepingLog();
  let current = SHOP;
  const listeners: ((success: boolean) => void)[] = [];
  const ends: (() => Promise<void>)[] = [];
  const provider = {
    current: () => current,
    onReload: (listener: (success: boolean) => void) => listeners.push(listener),
  };
  const warnings = openUnmatchedWarnings(log, provider, { add: (end) => ends.push(end) });
  const series = [0, 0];
  const reload = (): void => {
    for (const listener of listeners) listener(true);
    warnings.unmatched('shop', entries('tenat=x'), series);
  };
  reload();
  reload();
  expect(lines.length).toBe(1);
  current = { ...SHOP, version: 'w' };
  reload();
  expect(lines.length).toBe(2);
  for (const end of ends) await end();
});
