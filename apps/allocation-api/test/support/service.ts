import { afterAll } from 'vitest'
import { type Answer, type Api, request, startApi } from './api.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { expectContract } from './validate.ts'

export type Call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>

export interface Service {
  readonly database: TestDatabase
  readonly api: Api
  /** Each answer is held against the contract before it is returned. */
  readonly call: Call
}

/** Sends to an address; each answer is held against the contract before it is returned. */
export const callTo =
  (url: string): Call =>
  async (method, path, body, headers) => {
    const answer = await request(url + path, method, body, headers)
    expectContract(method, path, answer)
    return answer
  }

/** The sweeper runs once at start and then not within a test's time, so that what is expired stays in the table. */
const quiet = { PDM_SWEEPER_INTERVAL: '1h', DNSPROVIDER_RECORD_NAMES: '@,*' }

/** A fresh database and the API on it, for all tests of the calling file. */
export const startService = async (env: Record<string, string> = {}): Promise<Service> => {
  const database = await createTestDatabase({ connections: 2 })
  const api = await startApi(database.url, { ...quiet, ...env })
  afterAll(async () => {
    await api.process.stop()
    await database.drop()
  })
  return { database, api, call: callTo(api.url) }
}

export const pool = '/api/v1/pool/pool.test'

/** The time of a reservation when nothing else is configured. */
export const TTL_MS = 600_000

/** A UUID v4 that nobody was given. */
export const strangeToken = '11111111-2222-4333-8444-555555555555'

/** The steps that many tests begin with. Each fails when the name cannot be taken that far. */
export const stepsOf = (call: Call) => {
  const commitBody = (subdomain: string, reservationToken: string) => ({
    subdomain,
    reservationToken,
    sovereignFQDN: `${subdomain}.pool.test`,
    loadBalancerIP: '203.0.113.10',
  })
  const reserved = async (subdomain: string, more: object = {}) => {
    const answer = await call('POST', `${pool}/reserve`, { subdomain, ...more })
    if (answer.status !== 201) throw new Error(`reserve ${subdomain}: ${answer.status} ${answer.text}`)
    return answer.body as { reservationToken: string; reservedAt: string; expiresAt: string; createdBy: string }
  }
  const active = async (subdomain: string, more: object = {}) => {
    const { reservationToken } = await reserved(subdomain, more)
    const answer = await call('POST', `${pool}/commit`, commitBody(subdomain, reservationToken))
    if (answer.status !== 200) throw new Error(`commit ${subdomain}: ${answer.status} ${answer.text}`)
    return { reservationToken, allocation: answer.body }
  }
  const check = async (subdomain: string) => (await call('GET', `${pool}/check?sub=${subdomain}`)).body
  return { commitBody, reserved, active, check }
}
