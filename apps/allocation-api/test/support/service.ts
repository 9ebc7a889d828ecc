import { type Api, type ApiResponse, sendRequest, startApi } from '@pool/test-kit/services.ts'
import { afterAll } from 'vitest'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { expectContract } from './validate.ts'

export type ContractCall = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<ApiResponse>

export interface TestService {
  readonly database: TestDatabase
  readonly api: Api
  /** Checks each response against the contract. */
  readonly call: ContractCall
}

/** Sends requests to `url` and checks each response against the contract. */
export const createContractCall =
  (url: string): ContractCall =>
  async (method, path, body, headers) => {
    const response = await sendRequest(url + path, method, body, headers)
    expectContract(method, path, response)
    return response
  }

const defaultEnv = {
  DNSPROVIDER_RECORD_NAMES: '@,*',
  // The sweeper runs at start only, so that expired rows stay in the table.
  PDM_SWEEPER_INTERVAL: '1h',
  // On a busy machine, no statement and no wait for records ends with a response that the tests do not expect.
  PDM_DATABASE_TIMEOUT: '1m',
  PDM_DNS_COMMIT_WAIT: '1m',
}

/** Starts the API on a new database, for all tests of the calling file. */
export const startTestService = async (env: Record<string, string> = {}): Promise<TestService> => {
  const database = await createTestDatabase({ connections: 2 })
  const api = await startApi(database.url, { ...defaultEnv, ...env })
  afterAll(async () => {
    await api.process.stop()
    await database.drop()
  })
  return { database, api, call: createContractCall(api.url) }
}

export const poolPath = '/api/v1/pool/pool.test'

export const DEFAULT_RESERVATION_TTL_MS = 600_000

/** A well-formed token of no reservation. */
export const unknownToken = '11111111-2222-4333-8444-555555555555'

/** The first steps of many tests. Each throws if the name does not reach its state. */
export const createSteps = (call: ContractCall) => {
  const commitBody = (subdomain: string, reservationToken: string) => ({
    subdomain,
    reservationToken,
    sovereignFQDN: `${subdomain}.pool.test`,
    loadBalancerIP: '203.0.113.10',
  })
  const reserveName = async (subdomain: string, fields: object = {}) => {
    const response = await call('POST', `${poolPath}/reserve`, { subdomain, ...fields })
    if (response.status !== 201) throw new Error(`reserve ${subdomain}: ${response.status} ${response.text}`)
    return response.body as { reservationToken: string; reservedAt: string; expiresAt: string; createdBy: string }
  }
  const reserveAndCommit = async (subdomain: string, fields: object = {}) => {
    const { reservationToken } = await reserveName(subdomain, fields)
    const response = await call('POST', `${poolPath}/commit`, commitBody(subdomain, reservationToken))
    if (response.status !== 200) throw new Error(`commit ${subdomain}: ${response.status} ${response.text}`)
    return { reservationToken, allocation: response.body }
  }
  const check = async (subdomain: string) => (await call('GET', `${poolPath}/check?sub=${subdomain}`)).body
  return { commitBody, reserveName, reserveAndCommit, check }
}
