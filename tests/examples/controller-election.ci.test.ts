import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { startWitness } from '@pool/testing'
import { expect, test } from 'vitest'
import { runElection, runTypeScript } from './support/election.ts'

const LEASE_SECONDS = 4

test('no two TypeScript controllers lead at the same time', { timeout: 1_200_000 }, async () => {
  await using witness = await startWitness({ env: { MAX_REQUESTS_PER_MINUTE: '0' } })
  const { tenures, overlaps, blocked, rejected } = await runElection({
    witnessUrl: witness.url,
    tenures: proofSize(100, 8),
    marginMs: (LEASE_SECONDS * 1_000) / 3,
    createCommand: ({ region, witnessUrl, resourceUrl }) =>
      runTypeScript(
        'controller/src/main.ts',
        { WITNESS_TOKEN: witness.token },
        ...['--witness', witnessUrl, '--resource', resourceUrl, '--region', region],
        ...['--lease-seconds', String(LEASE_SECONDS)],
      ),
  })
  reportProof(
    `the TypeScript controller: ${tenures} tenures of two candidates, ${overlaps.length} overlaps, ${blocked} blocked tenures, ${rejected} late requests rejected`,
  )
  expect(overlaps).toEqual([])
})
