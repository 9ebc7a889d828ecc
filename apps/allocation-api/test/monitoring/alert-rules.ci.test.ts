import { fileURLToPath } from 'node:url'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPrometheus, runPromtool } from '@pool/test-kit/prometheus.ts'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { expect, test } from 'vitest'

const directory = fileURLToPath(new URL('../../../../infra/monitoring', import.meta.url))

test.skipIf(shouldSkip(missingPrometheus))('promtool accepts the rules', async () => {
  const { code, output } = await runPromtool(['check', 'rules', 'alerts.yaml', 'recording-rules.yaml'], { directory })
  expect([code, output]).toEqual([0, expect.stringContaining('SUCCESS')])
})

test.skipIf(shouldSkip(missingPrometheus))('each alert fires when it should, and only then', async () => {
  const { code, output } = await runPromtool(['test', 'rules', 'alerts.test.yaml'], { directory })
  expect([code, output]).toEqual([0, expect.stringContaining('SUCCESS')])
  reportProof('promtool: every alert has fired in its case, and in no other')
})
