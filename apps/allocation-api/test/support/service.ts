import { afterAll } from 'vitest'
import { type Api, type ApiResponse, sendRequest, startApi } from './api.ts'
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
  /** Each answer is held against the contract before it is returned. */
  readonly call: ContractCall
}

/** Sends to an address; each answer is held against the contract before it is returned. */
export const createContractCall =
  (url: string): ContractCall =>
  async (method, path, body, headers) => {
    const answer = await sendRequest(url + path, method, body, headers)
    expectContract(method, path, answer)
    return answer
  }

/** The sweeper runs once at start and then not within a test's time, so that what is expired stays in the table. */
const withoutSweeper = { PDM_SWEEPER_INTERVAL: '1h', DNSPROVIDER_RECORD_NAMES: '@,*' }

/** A fresh database and the API on it, for all tests of the calling file. */
export const startTestService = async (env: Record<string, string> = {}): Promise<TestService> => {
  const database = await createTestDatabase({ connections: 2 })
  const api = await startApi(database.url, { ...withoutSweeper, ...env })
  afterAll(async () => {
    await api.process.stop()
    await database.drop()
  })
  return { database, api, call: createContractCall(api.url) }
}

export const poolPath = '/api/v1/pool/pool.test'

/** The time of a reservation when nothing else is configured. */
export const DEFAULT_RESERVATION_TTL_MS = 600_000

/** A UUID v4 that nobody was given. */
export const unknownToken = '11111111-2222-4333-8444-555555555555'

/** The steps that many tests begin with. Each fails when the name cannot be taken that far. */
export const createSteps = (call: ContractCall) => {
  const commitBody = (subdomain: string, reservationToken: string) => ({
    subdomain,
    reservationToken,
    sovereignFQDN: `${subdomain}.pool.test`,
    loadBalancerIP: '203.0.113.10',
  })
  const reserveName = async (subdomain: string, more: object = {}) => {
    const answer = await call('POST', `${poolPath}/reserve`, { subdomain, ...more })
    if (answer.status !== 201) throw new Error(`reserve ${subdomain}: ${answer.status} ${answer.text}`)
    return answer.body as { reservationToken: string; reservedAt: string; expiresAt: string; createdBy: string }
  }
  const reserveAndCommit = async (subdomain: string, more: object = {}) => {
    const { reservationToken } = await reserveName(subdomain, more)
    const answer = await call('POST', `${poolPath}/commit`, commitBody(subdomain, reservationToken))
    if (answer.status !== 200) throw new Error(`commit ${subdomain}: ${answer.status} ${answer.text}`)
    return { reservationToken, allocation: answer.body }
  }
  const check = async (subdomain: string) => (await call('GET', `${poolPath}/check?sub=${subdomain}`)).body
  return { commitBody, reserveName, reserveAndCommit, check }
}
