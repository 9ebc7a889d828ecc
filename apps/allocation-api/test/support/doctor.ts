import { createDatabaseClient } from '@pool/runtime/database/client'
import { expect } from 'vitest'
import { migrateDatabase } from '../../src/database/schema.ts'
import { type DoctorIo, runDoctor } from '../../src/doctor/doctor.ts'

export type Env = Record<string, string>

/** A part of every secret in these tests. */
export const SECRET = 'mark-password'

/** What the doctor needs of a hanging test: an object storage that answers, or does not. */
const createGet =
  (failure: 'dns' | 'tls' | 'refused' | undefined): NonNullable<DoctorIo['createGet']> =>
  () =>
  async () =>
    failure
      ? { kind: 'failed', cause: failure }
      : { kind: 'response', status: 200, body: Buffer.from('<ListAllMyBucketsResult/>') }

const createResolver =
  (soa: number | string): NonNullable<DoctorIo['createResolver']> =>
  () => ({
    resolveNs: async () => ['ns1.test', 'ns2.test'],
    resolveSoa: async () => {
      if (typeof soa === 'string') throw Object.assign(new Error('querySoa'), { code: soa })
      return { nsname: 'ns1.test', hostmaster: 'x.test', serial: 1, refresh: 1, retry: 1, expire: 1, minttl: soa }
    },
  })

export interface DoctorRun {
  readonly args?: readonly string[]
  /** Why the object storage does not answer; undefined: it does. */
  readonly storageFailure?: 'dns' | 'tls' | 'refused' | undefined
  /** The minimum in the SOA of each zone, in seconds, or the code of the resolver's error; by default 60. */
  readonly soa?: number | string | undefined
  /** For servers that never answer. */
  readonly limits?: DoctorIo['limits'] | undefined
}

/** Runs the doctor in this process, without a network. No output contains `SECRET`. */
export const run = async (env: Env, { args = [], storageFailure, soa = 60, limits }: DoctorRun = {}) => {
  let text = ''
  const print = (part: string): void => {
    text += part
  }
  const code = await runDoctor({
    env,
    args,
    print,
    createGet: createGet(storageFailure),
    createResolver: createResolver(soa),
    ...(limits ? { limits } : {}),
  })
  expect(text).not.toContain(SECRET)
  return { code, text }
}

interface Line {
  readonly check: string
  readonly state: string
  readonly text: string
  readonly advice?: string
}

export const findProblems = async (env: Env, options: Omit<DoctorRun, 'args'> = {}) => {
  const { code, text } = await run(env, { args: ['--json'], ...options })
  const { problems, findings } = JSON.parse(text) as { problems: number; findings: readonly Line[] }
  const bad = findings.filter(({ state }) => state === 'bad')
  expect(problems).toBe(bad.length)
  return { code, bad, findings }
}

/** Expects one bad line, of this check, which names the fix. */
export const expectOneProblem = async (env: Env, check: string, fix: RegExp, options: Omit<DoctorRun, 'args'> = {}) => {
  const { code, bad } = await findProblems(env, options)
  expect(bad).toMatchObject([{ check, advice: expect.stringMatching(/\S/) }])
  expect(`${bad[0]?.text}; ${bad[0]?.advice}`).toMatch(fix)
  return code
}

const withDatabase = async (url: string, work: (sql: ReturnType<typeof createDatabaseClient>) => Promise<unknown>) => {
  const sql = createDatabaseClient(url, { maxConnections: 1, applicationName: 'tests' })
  await work(sql).finally(() => sql.end({ timeout: 1 }))
}

export interface RoleDatabaseOptions {
  /** False: the database is empty. */
  readonly migrates?: boolean
  /** The name of a role and its database, whose tables are copied, which is faster than migrations. */
  readonly copyOf?: string
  /** Executed in the database as a superuser. */
  readonly sql?: string
}

/** Creates a role that owns a new database of the same name. Returns the connection string of the role. */
export const createRoleDatabase = async (
  superuserUrl: string,
  name: string,
  { migrates = true, copyOf, sql: more = '' }: RoleDatabaseOptions = {},
): Promise<string> => {
  const isCopy = migrates && copyOf !== undefined
  await withDatabase(superuserUrl, async sql => {
    await sql.unsafe(`create role ${name} login password '${SECRET}'`)
    await sql.unsafe(`create database ${name} owner ${name}${isCopy ? ` template ${copyOf}` : ''}`)
  })
  const own = Object.assign(new URL(superuserUrl), { pathname: `/${name}` })
  const url = Object.assign(new URL(own), { username: name, password: SECRET }).href
  if (isCopy) await withDatabase(own.href, sql => sql.unsafe(`reassign owned by ${copyOf} to ${name}`))
  else if (migrates) await withDatabase(url, migrateDatabase)
  if (more !== '') await withDatabase(own.href, sql => sql.unsafe(more))
  return url
}
