import { parseArgs } from 'node:util'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import type { ConfigIssue, Env } from '@pool/runtime/service/env'
import { EXIT_FAILURE, EXIT_INVALID_CONFIG } from '@pool/runtime/service/run-service'
import { toPoolSizes } from '../config/config.ts'
import { createHttpsGet } from '../credentials/https-client.ts'
import { readSchema } from '../database/schema.ts'
import { createRemoteProvisioner } from '../deployments/remote-provisioner.ts'
import { createPrerequisites, findExposure } from '../deployments/terraform/terraform.ts'
import { redact } from '../observability/domain/redact.ts'
import { findConfigWarnings, findSecrets, readServiceConfig, type ServiceConfig } from '../service-config.ts'
import { checkDatabase } from './database.ts'
import { bad, countProblems, type Finding, good, notChecked, toJson, toText } from './domain/report.ts'
import { checkDeployments, checkRunner } from './machine.ts'
import { checkRecordsUrl, checkRecordsZone, createZoneResolver } from './records.ts'
import { findUnreachableStorage } from './storage.ts'
import { checkWitness } from './witness.ts'
import { type CheckedZone, checkZones, findHiddenNames } from './zones.ts'

interface Limits {
  /** Milliseconds for a statement, or the opening of a connection. */
  readonly statementMs: number
  /** Milliseconds for one zone, and for one region of the object storage. */
  readonly callMs: number
}

const LIMITS: Limits = { statementMs: 6_000, callMs: 8_000 }
/** For one group of checks, whose parts have shorter limits of their own. */
const GROUP_TIMEOUT_MS = 60_000

/** Whether an operator wants tenants to have records. The default permits them, and no tenant has to use it. */
const usesRecords = ({ env, records, recordsUrl }: ServiceConfig): boolean =>
  records.maxScope !== 'off' && Boolean(env.PDM_RECORDS?.trim() || recordsUrl)

const checkDns = async (
  config: ServiceConfig,
  { limits: { callMs }, createResolver }: Required<Dependencies>,
): Promise<readonly Finding[]> => {
  const { dnsProvider, managedDomains } = config
  if (dnsProvider.kind === 'local') {
    return [notChecked('dns', 'the built-in server runs inside the service; it is for development')]
  }
  const sql = createDatabaseClient(config.database.url, { applicationName: 'allocation-api doctor', maxConnections: 1 })
  const { provider, zoneOf } = await dnsProvider.start({ listZones: () => managedDomains, sql, onError: () => {} })
  try {
    const checked = await checkZones(provider, { zones: managedDomains, timeoutMs: callMs })
    const toZoneFinding = async ({ zone, result }: CheckedZone): Promise<Finding> => {
      const check = `zone ${zone}`
      const found = zoneOf(zone) === zone ? 'it exists' : `the zone ${zoneOf(zone)} has it`
      // Without a database, its own check says so.
      const hidden =
        result.kind === 'unusable' ? [] : await findHiddenNames(provider, sql, zone, callMs).catch(() => [])
      const [reason = '', advice = ''] = hidden[0]?.split('. ') ?? []
      if (hidden.length > 0)
        return bad(check, hidden.length > 1 ? `${reason}, and so for ${hidden.length - 1} more names` : reason, advice)
      if (result.kind === 'writable' && result.defect) return bad(check, result.defect.reason, result.defect.advice)
      if (result.kind === 'writable')
        return good(check, `${found}, and ${dnsProvider.kind} lets the service read and change it`)
      if (result.kind === 'unusable') return bad(check, result.reason, result.advice)
      return good(check, `${found} and can be read; whether it can be changed was not checked: ${result.reason}`)
    }
    const findings: Finding[] = []
    // A provider can accept one call at a time.
    for (const one of checked) findings.push(await toZoneFinding(one))
    if (!usesRecords(config)) return findings
    const resolver = createResolver(callMs)
    const zones = new Set(managedDomains.map(pool => zoneOf(pool) ?? pool))
    return [...findings, ...(await Promise.all(Array.from(zones, zone => checkRecordsZone(zone, resolver))))]
  } finally {
    await provider.close()
    await sql.end({ timeout: 0 })
  }
}

const checkStorage = async (
  { objectStorage, objectStorageCa, env }: ServiceConfig,
  { createGet, limits }: Required<Dependencies>,
): Promise<readonly Finding[]> => {
  const get = createGet({ deadlineMs: limits.callMs, extraCa: objectStorageCa })
  const unreachable = await findUnreachableStorage(objectStorage.domain, get)
  const check = 'object storage'
  if (unreachable.length === 0) return [good(check, `every region of ${objectStorage.domain} answers`)]
  const advice = 'correct OBJECT_STORAGE_DOMAIN, or OBJECT_STORAGE_CA_FILE for a private certificate authority'
  return unreachable.map(reason =>
    // The default is used by deployments with object storage only, if there are any.
    env.OBJECT_STORAGE_DOMAIN?.trim()
      ? bad(check, reason, advice)
      : notChecked(check, reason, `if deployments use it: ${advice}`),
  )
}

const toFinding = ({ variable, detail }: ConfigIssue): Finding => {
  const [text = '', ...advice] = detail.split('; ')
  return bad('configuration', `${variable} ${text}`, advice.join('; ') || `correct ${variable}`)
}

const checkConfig = (config: ServiceConfig): readonly Finding[] => {
  const warnings = findConfigWarnings(config.env, config)
  if (warnings.length === 0) return [good('configuration', 'every variable is valid and known')]
  return warnings.map(toFinding)
}

/** A group that does not end gives a line, and does not hide the others. */
const runGroup = async (name: string, run: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> => {
  try {
    return await withTimeout(run(), GROUP_TIMEOUT_MS)
  } catch (error) {
    const reason = redact(error instanceof Error ? error.message : String(error))
    return [bad(name, `the check did not end: ${reason}`, 'run the doctor again; if it happens again, report it')]
  }
}

/** Checks everything that the service needs. Writes nothing that stays. */
const findAll = async (config: ServiceConfig, dependencies: Required<Dependencies>): Promise<readonly Finding[]> => {
  const { database, deployments, env, retention } = config
  const { statementMs, callMs } = dependencies.limits
  const connections = Object.values(toPoolSizes(database.poolSize)).reduce((sum, size) => sum + size)
  const groups = await Promise.all([
    checkConfig(config),
    runGroup('database', async () =>
      checkDatabase({
        database,
        retention,
        connections,
        schema: await readSchema(),
        wallClock: Date.now,
        statementTimeoutMs: statementMs,
      }),
    ),
    runGroup('dns', () => checkDns(config, dependencies)),
    runGroup('records of tenants', async () =>
      usesRecords(config) && config.recordsUrl !== null ? [await checkRecordsUrl(config.recordsUrl, callMs)] : [],
    ),
    runGroup('object storage', () => checkStorage(config, dependencies)),
    runGroup('lease witness', () => checkWitness(config.witness, callMs)),
    runGroup('deployments', async () => {
      const { runner, stopTimeoutMs } = deployments
      if (runner) return checkRunner(deployments, createRemoteProvisioner(runner, stopTimeoutMs))
      const prerequisites = createPrerequisites({ ...deployments, env })
      return checkDeployments(deployments, prerequisites, env, () => findExposure({ ...deployments, env }))
    }),
  ])
  return groups.flat()
}

const REDACTED = '<redacted>'

/** The texts are written without secrets. This holds even if one of them quotes a server that quotes a key. */
const removeSecrets = (findings: readonly Finding[], env: Env): readonly Finding[] => {
  const secrets = findSecrets(env)
  const clean = (text: string): string => secrets.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text)
  return findings.map(({ text, advice, ...finding }) => ({
    ...finding,
    text: clean(text),
    ...(advice === undefined ? {} : { advice: clean(advice) }),
  }))
}

const parseOptions = (args: readonly string[]): { readonly json: boolean } | null => {
  try {
    return parseArgs({ args: [...args], options: { json: { type: 'boolean', default: false } } }).values
  } catch {
    return null
  }
}

/** For tests, which need no network and do not wait. */
interface Dependencies {
  readonly createGet?: typeof createHttpsGet
  readonly createResolver?: typeof createZoneResolver
  readonly limits?: Limits
}

export interface DoctorIo extends Dependencies {
  readonly env: Env
  /** After `doctor`. */
  readonly args: readonly string[]
  readonly print: (text: string) => void
}

/**
 * Prints the report and returns the exit code. 0: no problem; 1: at least one; 2: the configuration or an argument is invalid,
 * and nothing else was checked.
 */
export const runDoctor = async ({
  env,
  args,
  print,
  createGet = createHttpsGet,
  createResolver = createZoneResolver,
  limits = LIMITS,
}: DoctorIo): Promise<number> => {
  const options = parseOptions(args)
  if (options === null) {
    print('doctor: the only option is --json\n')
    return EXIT_INVALID_CONFIG
  }
  const report = (findings: readonly Finding[]): void => print(options.json ? toJson(findings) : toText(findings))
  const parsed = readServiceConfig(env)
  if ('issues' in parsed) {
    report([...parsed.issues.map(toFinding), notChecked('everything else', 'the configuration is invalid')])
    return EXIT_INVALID_CONFIG
  }
  const findings = removeSecrets(await findAll(parsed.config, { createGet, createResolver, limits }), parsed.config.env)
  report(findings)
  return countProblems(findings) === 0 ? 0 : EXIT_FAILURE
}
