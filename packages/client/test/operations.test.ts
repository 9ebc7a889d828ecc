import { callOperations, type Operation, operations } from '@pool/contract'
import { leaseOperations } from '@pool/contract/lease-operations'
import { describe, expect, expectTypeOf, test } from 'vitest'
import * as z from 'zod'
import { AllocationClient, type Params, type Result } from '../src/index.ts'

const all = Object.values<Operation>(operations)

const toNames = (schema: z.ZodType | undefined): readonly string[] =>
  schema instanceof z.ZodObject ? Object.keys(schema.shape) : []

test('every operation has a method, but for those of other protocols', () => {
  const client: object = new AllocationClient({ baseUrl: 'http://localhost' })
  expect(all.map(({ id }) => id).filter(id => id in client)).toEqual(Object.keys(callOperations))
})

// The client finds the part of a request to which a field belongs by the name of the field.
test.each(all)('no two parts of $id have a field of the same name', ({ pathParams, query, body }) => {
  const names = [pathParams, query, body?.schema].flatMap(toNames)
  expect(names).toEqual([...new Set(names)])
})

// The client validates a response and returns it as it is.
test.each([...all, ...Object.values<Operation>(leaseOperations)])(
  'no schema of a response of $id changes the value',
  ({ responses }) => {
    for (const { schema } of Object.values(responses)) {
      if (!schema) continue
      const [input, output] = (['input', 'output'] as const).map(io =>
        z.toJSONSchema(schema, { io, unrepresentable: 'any' }),
      )
      // Only the output excludes fields that an object does not have.
      const toText = (value: unknown): string => JSON.stringify(value).replaceAll(',"additionalProperties":false', '')
      expect(toText(output)).toBe(toText(input))
    }
  },
)

describe('types of parameters and results', () => {
  test('a name', () => {
    expectTypeOf<Params<'reserveName'>>().toEqualTypeOf<{
      domain: string
      subdomain: string
      createdBy?: string | undefined
      reservationToken?: string | undefined
    }>()
    expectTypeOf<Result<'reserveName'>>().toHaveProperty('reservationToken').toEqualTypeOf<string>()
    expectTypeOf<Extract<Result<'commitName'>, { warning: string }>['warning']>().toEqualTypeOf<'dns-pending'>()
  })

  test('numbers and booleans of a query', () => {
    expectTypeOf<Params<'checkName'>>().toEqualTypeOf<{ domain: string; sub: string }>()
    expectTypeOf<Params<'listAllocations'>>().toEqualTypeOf<{
      domain: string
      state?: 'reserved' | 'active' | undefined
      limit?: number | undefined
      cursor?: string | undefined
    }>()
    expectTypeOf<Params<'resumeZone'>>().toEqualTypeOf<{
      domain: string
      dryRun?: boolean | undefined
      trust: 'database' | 'zone'
    }>()
  })

  test('a header, and a response without a body', () => {
    expectTypeOf<Params<'removeDeployment'>>().toEqualTypeOf<{
      id: string
      abandon?: boolean | undefined
      cancel?: boolean | undefined
      force?: boolean | undefined
      deploymentToken?: string | undefined
    }>()
    expectTypeOf<undefined>().toExtend<Result<'removeDeployment'>>()
    expectTypeOf<Result<'liftCoolOff'>>().toEqualTypeOf<undefined>()
  })

  test('a stream, and a status of 503 that is a result', () => {
    expectTypeOf<Result<'exportInstallation'>>().toEqualTypeOf<AsyncGenerator<Uint8Array, void>>()
    expectTypeOf<Result<'getHealth'>['status']>().toEqualTypeOf<'ok' | 'unhealthy'>()
  })
})
