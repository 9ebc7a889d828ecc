import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startDynadotDouble } from '@pool/test-kit/dns/dynadot-double.ts'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { missingPrometheus, startPrometheus } from '@pool/test-kit/prometheus.ts'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { type Api, smallPoolEnv, startApi, startReplicas, startWitness } from '@pool/test-kit/services.ts'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { createTestDatabase } from '../support/database.ts'
import { listMetrics, readAlerts, readRules } from '../support/monitoring.ts'
import { check, commit, pool, release, reserve } from '../support/operations.ts'

const root = new URL('../../../../', import.meta.url)
const ruleFiles = ['alerts.yaml', 'recording-rules.yaml'].map(file =>
  fileURLToPath(new URL(`infra/chart/files/${file}`, root)),
)

const panel = z.object({
  type: z.enum(['row', 'timeseries']),
  title: z.string(),
  fieldConfig: z.object({ defaults: z.object({ noValue: z.string().optional() }) }).default({ defaults: {} }),
  targets: z.array(z.object({ expr: z.string() })).default([]),
})
type Panel = z.infer<typeof panel>
const { panels } = z
  .object({ panels: z.array(panel) })
  .parse(JSON.parse(readFileSync(new URL('infra/chart/files/dashboard.json', root), 'utf8')))

/** A panel with a text for the case of no data may have none. */
const mayBeEmpty = ({ fieldConfig }: Panel) => fieldConfig.defaults.noValue !== undefined

/** Metrics of rules that have a sample only in the situation that the alert reports, or after a first request. */
const OPTIONAL_METRICS = new Set([
  'pdm_credential_validations_total',
  'pdm_deployments',
  'pdm_deployments_dir_free_bytes',
  'pdm_dns_zone_stopped',
  'pdm_pool_draining',
])

/** Milliseconds for which a fact may take on a busy machine. */
const PATIENCE_MS = 100_000
const ROUNDS = 30

/** One client of the API, and one of the witness: each round grants, publishes and releases a name, and renews a lease. */
const sendTraffic = async (apis: readonly Api[], witnessUrl: string, beforeRound: (round: number) => Promise<void>) => {
  let generation = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    await beforeRound(round)
    const api = apis[round % apis.length]
    if (!api) throw new Error('no replica')
    const name = `name-${round}`
    await check(api, name)
    const { body } = await reserve(api, name)
    await reserve(api, name)
    await commit(api, name, body.reservationToken)
    // The double accepts 100 records, as Dynadot does.
    if (round % 10 !== 0 || round > 500) await release(api, name)
    const headers = {
      Authorization: `Bearer ${TOKEN}`,
      'If-Match': String(generation),
      'X-Holder': 'region-a',
    }
    const { status } = await fetch(`${witnessUrl}/lease/dashboard`, { method: 'PUT', headers })
    if (status === 200) generation += 1
  }
}

test.skipIf(shouldSkip(missingPrometheus))(
  'a Prometheus that scrapes the services has data for every query of the dashboard, and evaluates every rule',
  async () => {
    await using cleanup = new AsyncDisposableStack()
    const database = await createTestDatabase({ connections: 2 })
    cleanup.defer(() => database.drop())
    const double = cleanup.use(await startDynadotDouble({ domains: [pool], apiKey: 'api-key-of-the-test' }))
    const fleet = await startReplicas(2, () =>
      startApi(database.url, {
        ...smallPoolEnv,
        DNSPROVIDER_KIND: 'dynadot',
        PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: double.url }),
        DNSPROVIDER_DYNADOT_API_KEY: 'api-key-of-the-test',
        DNSPROVIDER_MANAGED_DOMAINS: pool,
        DNSPROVIDER_RECORD_NAMES: '@',
        PDM_DNS_COMMIT_WAIT: '500ms',
        PDM_DRIFT_INTERVAL: '5s',
        PDM_SWEEPER_INTERVAL: '5s',
      }),
    )
    cleanup.use(fleet)
    const witnessDatabase = await createTestDatabase({ schema: false, connections: 1 })
    cleanup.defer(() => witnessDatabase.drop())
    const witness = cleanup.use(await startWitness(witnessDatabase.url))
    const prometheus = cleanup.use(
      await startPrometheus(
        [
          { name: 'allocation-api', targets: fleet.replicas.map(({ url }) => new URL(url).host) },
          { name: 'lease-witness', targets: [new URL(witness.url).host], token: TOKEN },
        ],
        ruleFiles,
      ),
    )
    await until('both jobs are scraped', async () => (await prometheus.query('up == 1')).length === 3, PATIENCE_MS)
    // The DNS provider does not respond in the second third.
    await sendTraffic(fleet.replicas, witness.url, async round => {
      if (round === Math.floor(ROUNDS / 3)) await double.stop()
      if (round === Math.floor((2 * ROUNDS) / 3)) {
        const isOpen = async () => (await prometheus.query('max(pdm_dns_circuit_open) == 1')).length > 0
        await until('the circuit is open', isOpen, PATIENCE_MS)
        await double.start()
      }
    })
    await until(
      'all names are published',
      async () => (await prometheus.query('max(pdm_dns_pending_names) == 0')).length === 1,
      PATIENCE_MS,
    )

    const queries = panels.filter(each => !mayBeEmpty(each)).flatMap(({ targets }) => targets.map(({ expr }) => expr))
    expect(queries.length).toBeGreaterThan(30)
    for (const expr of queries) {
      await until(`data of ${expr}`, async () => (await prometheus.query(expr)).length > 0, PATIENCE_MS)
    }
    // Prometheus rejects a query with an error.
    for (const { expr } of panels.filter(mayBeEmpty).flatMap(({ targets }) => targets)) await prometheus.query(expr)

    const rules = [...readAlerts(), ...readRules('recording-rules.yaml')]
    const metrics = [...new Set(rules.flatMap(({ expr }) => listMetrics(expr)))].filter(
      name => !OPTIONAL_METRICS.has(name),
    )
    for (const name of metrics) {
      const selector = `{__name__=~"${name}(_count)?"}`
      await until(`data of ${name}`, async () => (await prometheus.query(selector)).length > 0, PATIENCE_MS)
    }
    const evaluated = z
      .object({
        data: z.object({
          groups: z.array(z.object({ rules: z.array(z.object({ name: z.string(), health: z.string() })) })),
        }),
      })
      .parse(await prometheus.get('/api/v1/rules'))
      .data.groups.flatMap(group => group.rules)
    expect(evaluated).toHaveLength(rules.length)
    expect(evaluated.filter(({ health }) => health !== 'ok')).toEqual([])

    reportProof(`dashboard: ${queries.length} queries and ${rules.length} rules have data after ${ROUNDS} rounds`)
  },
  600_000,
)
