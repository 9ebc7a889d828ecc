import { createPrng } from '@pool/test-kit/prng.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { expect, test } from 'vitest'
import { useTestDatabase } from '../support/database.ts'
import { createTenants, present, put } from '../support/tenant-fixture.ts'

const database = await useTestDatabase({ connections: 6 })
const ROUNDS = proofSize(1_000, 80)

test(`${ROUNDS} releases against writes: no record and no token of a former holder stays`, {
  timeout: 600_000,
}, async () => {
  const { sql } = database
  const [holder, writer, other] = [createTenants(sql), createTenants(sql), createTenants(sql)]
  const prng = createPrng('tenant races')
  const kinds = new Map<string, number>()
  for (let round = 0; round < ROUNDS; round += 1) {
    const name = `n${round % 100}`
    const fqdn = `${name}.pool.test`
    await holder.activate(name)
    const token = await holder.mint(name)
    await holder.change(token, put(`a.${fqdn}`, 'A', '192.0.2.9'))
    const pause = async () => {
      for (let turns = prng.below(8); turns > 0; turns -= 1) await new Promise(setImmediate)
    }
    const [released, ...written] = await Promise.all([
      pause().then(() => holder.release(name)),
      pause().then(() => writer.change(token, put(`b.c.${fqdn}`, 'TXT', 't'))),
      pause().then(() => other.change(token, present(fqdn, 'v'))),
      // An operator mints at the same time.
      pause().then(() => other.tryMint(name, null)),
    ])
    expect(released.kind).toBe('released')
    for (const { kind } of written) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    expect(await holder.desired(name)).toEqual([])
    expect(await sql`select from tenant_records`).toHaveLength(0)
    expect(await sql`select from record_tokens`).toHaveLength(0)
    expect(await writer.change(token, present(fqdn, 'late'))).toEqual({ kind: 'unauthorized' })
  }
  reportProof(`${ROUNDS} releases against writes: ${JSON.stringify(Object.fromEntries(kinds))}`)
  expect(kinds.get('changed')).toBeGreaterThan(0)
  expect(kinds.get('unauthorized')).toBeGreaterThan(0)
})
