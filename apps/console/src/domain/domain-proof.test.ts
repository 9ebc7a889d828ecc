import { expect, test } from 'vitest'
import { describeProof } from './domain-proof.ts'

test.each([
  [{ proof: 'proven' }, 'ok', 'is proven'],
  [{ proof: 'missing', proofDetail: 'Create it.' }, 'busy', 'not visible yet'],
  [{ proof: 'unknown', proofDetail: 'It could not be looked up (ESERVFAIL).' }, 'bad', 'ESERVFAIL'],
  [{ proof: 'not-required' }, 'idle', 'does not require'],
] as const)('%j', (check, tone, text) => {
  expect(describeProof(check)).toEqual({ tone, text: expect.stringContaining(text) })
})
