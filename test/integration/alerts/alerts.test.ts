/*
 * Tests the alerts of deploy/prometheus/rules.yaml. Each scene puts a real weir into states that must raise an alert.
 * The output of /metrics in both states becomes a test series of promtool, as if Prometheus had scraped it every
 * minute. The good state, in which nothing fires, lasts 40 minutes, and the bad state lasts 45.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { runToEnd } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { optionalToolPath, toolPath } from '../../support/process/tools.js';
import {
  checkRules,
  RULES,
  type RuleTest,
  sentAlerts,
  shippedAlerts,
} from '../../support/prometheus/rule-tests.js';
import { clusterScene } from './scenes/cluster.js';
import { filesScene } from './scenes/files.js';
import { holdsScene } from './scenes/holds.js';
import { memoryScene } from './scenes/memory.js';
import { redisScene } from './scenes/redis.js';
import { workersScene } from './scenes/workers.js';

const scenes = [memoryScene(), holdsScene(), filesScene(), redisScene(), workersScene(), clusterScene()];
const folder = new TempDir();

test('every alert has a scenario', () => {
  const fired = new Set(scenes.flatMap(({ scenarios }) => scenarios.flatMap(({ fires }) => fires)));
  expect([...fired].sort()).toEqual(
    shippedAlerts()
      .map(({ alert }) => alert)
      .sort(),
  );
});

(optionalToolPath('promtool') === undefined ? describe.skip : describe)('promtool', () => {
  const observed: RuleTest[] = [];

  test('accepts the rules', async () => {
    const { code, stdout, stderr } = await runToEnd(toolPath('promtool'), ['check', 'rules', RULES]);
    expect({ code, output: stdout + stderr }).toMatchObject({ code: 0 });
  });

  describe.each(scenes)('$name', ({ open, scenarios }) => {
    beforeAll(open);

    test.each(scenarios)('$name: $fires', async ({ name, fires, observe }) => {
      const one: RuleTest = { name, fires, observation: await observe() };
      observed.push(one);
      const { code, output } = await checkRules(folder, one);
      expect(code === 0 ? '' : output).toBe('');
    });
  });

  test('texts of alerts contain all names and numbers', async () => {
    const sent = await sentAlerts(folder, observed);
    const names = new Set(sent.map(({ labels }) => labels['alertname']));
    expect([...names].sort()).toEqual([...new Set(observed.flatMap(({ fires }) => fires))].sort());
    for (const { annotations } of sent) {
      expect(Object.keys(annotations).sort()).toEqual(['description', 'runbook', 'summary']);
      for (const text of Object.values(annotations)) {
        // A template without a value leaves two spaces, a bracket or an isolated character.
        expect(text).not.toMatch(/ {2}|<no value>|<error|\{\{|\(\)|NaN|^ | [.,)]/);
      }
    }
  });
});
