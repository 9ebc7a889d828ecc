import { expect, test } from 'vitest'
import { createClient, leaseOf } from './support/client.ts'
import { startWitness, temporaryFolder } from './support/witness.ts'

test('a lease outlives a stop and a start', async () => {
  using folder = temporaryFolder()
  {
    await using witness = await startWitness(folder.path)
    using client = createClient(witness.port)
    const answer = await client.send('PUT', '/lease/a%2Fb', { 'If-Match': '0', 'X-Holder': 'region-a' })
    expect(leaseOf(answer)).toMatchObject({ holder: 'region-a', generation: 1 })
  }
  await using witness = await startWitness(folder.path)
  using client = createClient(witness.port)
  expect(leaseOf(await client.send('GET', '/lease/a/b'))).toMatchObject({ holder: 'region-a', generation: 1 })
})
