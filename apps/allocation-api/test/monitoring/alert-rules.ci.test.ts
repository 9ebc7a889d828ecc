import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPrometheus, runPromtool } from '@pool/test-kit/prometheus.ts'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { expect, test } from 'vitest'
import { alertCases } from '../support/alert-cases.ts'
import { readAlerts } from '../support/monitoring.ts'

const rules = ['alerts.yaml', 'recording-rules.yaml'].map(file =>
  fileURLToPath(new URL(`../../../../infra/chart/files/${file}`, import.meta.url)),
)

/** The file of promtool with two tests for each case. */
const toPromtoolTests = () => {
  const severities = new Map(readAlerts().map(({ alert, labels }) => [alert, labels?.severity]))
  const tests = alertCases.flatMap(({ alert, at, labels, fires, silent }) => {
    const job = alert.startsWith('LeaseWitness') ? 'lease-witness' : 'allocation-api'
    const selected = { alertname: alert, alertstate: 'firing' }
    const toTest = (name: string, series: Readonly<Record<string, string>>, samples: readonly object[]) => ({
      name: `${alert} ${name}`,
      interval: '1m',
      input_series: Object.entries(series).map(([key, values]) => ({ series: withJob(key, job), values })),
      promql_expr_test: [{ expr: `ALERTS${toMatcher(selected)}`, eval_time: at, exp_samples: samples }],
    })
    const firing = { ...selected, severity: severities.get(alert) ?? '', ...labels }
    return [
      toTest('fires', fires, [{ labels: `ALERTS${toMatcher(firing)}`, value: 1 }]),
      toTest('does not fire', silent, []),
    ]
  })
  return { rule_files: rules, evaluation_interval: '1m', tests }
}

const toMatcher = (labels: Readonly<Record<string, string>>): string =>
  `{${Object.entries(labels).map(([name, value]) => `${name}="${value}"`)}}`

const withJob = (series: string, job: string): string => {
  const [metric = '', labels = '}'] = series.split('{')
  return labels.includes('job=') ? series : `${metric}{job="${job}",${labels}`
}

test.skipIf(shouldSkip(missingPrometheus))('promtool accepts the rules', async () => {
  const { code, output } = await runPromtool(['check', 'rules', ...rules])
  expect([code, output]).toEqual([0, expect.stringContaining('SUCCESS')])
})

test.skipIf(shouldSkip(missingPrometheus))('each alert fires when it should, and only then', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'alerts-'))
  const file = join(directory.path, 'alerts.test.yaml')
  await writeFile(file, JSON.stringify(toPromtoolTests()))
  const { code, output } = await runPromtool(['test', 'rules', file])
  expect([code, output]).toEqual([0, expect.stringContaining('SUCCESS')])
  reportProof('promtool: every alert has fired in its case, and in no other')
})
