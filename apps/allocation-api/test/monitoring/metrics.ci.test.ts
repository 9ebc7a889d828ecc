import { fileURLToPath } from 'node:url'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPrometheus, runPromtool } from '@pool/test-kit/prometheus.ts'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { expect, test } from 'vitest'
import { parseMetricsTable } from '../support/monitoring.ts'
import { createSteps, startTestService } from '../support/service.ts'

const directory = fileURLToPath(new URL('../../../../infra/monitoring', import.meta.url))

test.skipIf(shouldSkip(missingPrometheus))('promtool accepts the rules', async () => {
  const { code, output } = await runPromtool(
    ['check', 'rules', '../chart/files/alerts.yaml', '../chart/files/recording-rules.yaml'],
    {
      directory,
    },
  )
  expect([code, output]).toEqual([0, expect.stringContaining('SUCCESS')])
})

test.skipIf(shouldSkip(missingPrometheus))('each alert fires when it should, and only then', async () => {
  const { code, output } = await runPromtool(['test', 'rules', 'alerts.test.yaml'], { directory })
  expect([code, output]).toEqual([0, expect.stringContaining('SUCCESS')])
  reportProof('promtool: every alert has fired in its case, and in no other')
})

const { call } = await startTestService({ DNSPROVIDER_MANAGED_DOMAINS: 'pool.test' })
const { reserveAndCommit } = createSteps(call)

const scrape = async (): Promise<string> => (await call('GET', '/metrics')).text

test('before the first name, the zone and the counters that alerts use have samples', async () => {
  const text = await scrape()
  for (const sample of [
    'pdm_ready 1',
    'pdm_database_accepts_writes 1',
    'pdm_dns_oldest_pending_seconds{zone="pool.test"} 0',
    'pdm_dns_pending_names{zone="pool.test"} 0',
    'pdm_dns_failing_names{zone="pool.test",cause="foreign-record"} 0',
    'pdm_dns_drift_checks_total{zone="pool.test",outcome="unavailable"} 0',
    'pdm_dns_drifted_names_total{zone="pool.test"} 0',
    'pdm_dns_syncs_total{zone="pool.test",outcome="done"} 0',
    'pdm_dns_syncs_total{zone="pool.test",outcome="incomplete"} 0',
    'pdm_dns_circuit_open 0',
    'pdm_deployment_duration_seconds_count{outcome="failed"} 0',
  ]) {
    expect(text.split('\n')).toContain(sample)
  }
})

test('gauges of the database server, of the disk and of the process have values', async () => {
  const text = await scrape()
  const read = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  expect(read('pdm_database_connections')).toBeGreaterThan(0)
  expect(read('pdm_database_connections')).toBeLessThanOrEqual(read('pdm_database_max_connections'))
  expect(read('pdm_event_loop_active_seconds_total')).toBeGreaterThan(0)
  expect(read('pdm_sweeper_last_run_timestamp_seconds')).toBeGreaterThan(1e9)
})

test('a commit counts a sync of its zone', async () => {
  await reserveAndCommit('synced')
  expect(await scrape()).toMatch(/^pdm_dns_syncs_total\{zone="pool\.test",outcome="done"\} [1-9]/m)
})

test('docs/reference/metrics.md has exactly these metrics, with their types and labels', async () => {
  const documented = parseMetricsTable().filter(({ name }) => name.startsWith('pdm_'))
  const text = await scrape()
  const types = Array.from(text.matchAll(/^# TYPE (pdm_\S+) (\S+)$/gm), ([, name, type]) => `${name} ${type}`)
  expect(documented.map(({ name, type }) => `${name} ${type}`).toSorted()).toEqual(types.toSorted())
  for (const { name, labels } of documented) {
    const samples = text.match(new RegExp(`^${name}(?:_count)?(?:\\{.*\\})? `, 'gm')) ?? []
    for (const sample of samples) {
      expect([name, ...Array.from(sample.matchAll(/(\w+)=/g), ([, label]) => label)]).toEqual([name, ...labels])
    }
  }
})

test.skipIf(shouldSkip(missingPrometheus))('promtool finds no fault in the metrics', async () => {
  expect(await runPromtool(['check', 'metrics'], { input: await scrape() })).toEqual({ code: 0, output: '' })
})
