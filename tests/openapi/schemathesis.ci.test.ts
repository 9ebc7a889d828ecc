import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { documentFiles } from '@pool/contract/openapi/documents'
import { Program } from '@pool/test-kit/program.ts'
import { isProof, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { isMissing, type Services, startServices, type TokenRights } from './support/services.ts'

/**
 * The coverage phase tries every rule of every field. It has no limit of requests and takes most of the time, so only the proof
 * has it.
 */
const PHASES = isProof ? 'examples,coverage,fuzzing' : 'examples,fuzzing'
/** Requests for each operation that Schemathesis generates in the fuzzing phase, at most. */
const examples = { 'allocation-api': proofSize(420, 4), 'lease-witness': proofSize(700, 4) }
/**
 * Runs of the stateful phase, each with a seed of its own, and the sequences of requests in each. Hypothesis ends a run when a
 * sequence that it repeats has another result, as it has after other sequences have changed the state of the service.
 */
const statefulRuns = proofSize(6)
const SEQUENCES = isProof ? 50 : 15
const TIMEOUT_MS = 1_800_000
/** The same requests in every run, so that a run fails only for a change. */
const SEED = Number(process.env.SCHEMATHESIS_SEED ?? 1)

const folder = fileURLToPath(new URL('./schemathesis', import.meta.url))
/** The hooks import a file beside them, and leave no files there. */
const pythonEnv = { ...process.env, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' }
const isSchemathesisMissing = isMissing('Schemathesis', ['schemathesis'], 'pip install schemathesis')

type Service = keyof typeof examples

/** The number of responses of one kind. `isPositive`: the requests are valid by the document. */
interface ResponseCount {
  readonly operation: string
  readonly phase: 'examples' | 'coverage' | 'fuzzing' | 'stateful'
  readonly isPositive: boolean
  readonly status: number
  readonly count: number
}

interface Target {
  readonly service: Service
  readonly url: string
  /** The first one has all rights. */
  readonly tokens: readonly TokenRights[]
}

interface Run {
  readonly output: string
  readonly responses: readonly ResponseCount[]
}

/** Operations that Schemathesis does not call: see the configuration of each service. */
const notCalled: Readonly<Record<Service, readonly string[]>> = {
  'allocation-api': ['followChanges'],
  'lease-witness': [],
}

/** Operations that no request can complete in these tests, and why. */
const incomplete: Readonly<Record<Service, Readonly<Record<string, string>>>> = {
  'allocation-api': {
    getSession: 'the requests have a token instead of a session',
    importInstallation: 'the installation is not empty',
    liftBucketClaim: 'there is no object storage, so there is no claim',
    listWitnessLeases: 'no witness is configured',
    liftCoolOff: 'no name cools off: this follows the end of infrastructure with a name',
    readWitnessHistory: 'no witness is configured',
    releaseWitnessLease: 'no witness is configured',
    resumeZone: 'no zone is stopped',
    startSession: 'a generated token is not that of an operator',
    unlockDeployment: 'no run is killed, so no lock is left behind',
    validateObjectStorageKeys: 'there is no object storage',
    validateToken: 'no provider answers',
  },
  'lease-witness': { drainLeases: 'the witness accepts writes' },
}

/** Operations that a sequence of valid requests along the links must complete. */
const sequences: Readonly<Record<Service, readonly string[]>> = {
  'allocation-api': [
    'applyDeployment',
    'commitName',
    'createDeployment',
    'destroyDeployment',
    'followDeployment',
    'getAllocation',
    'getDeployment',
    'releaseName',
    'renewReservation',
    'reserveName',
  ],
  'lease-witness': ['readLease', 'readLeaseHistory', 'releaseLease', 'writeLease'],
}

const document = (service: Service) => {
  const file = documentFiles.find(file => file.service === service)
  if (!file) throw new Error(`no document of ${service}`)
  return file.current
}

const readOperations = (service: Service): readonly string[] => {
  const { paths } = JSON.parse(readFileSync(document(service), 'utf8')) as {
    paths: Record<string, Record<string, { operationId: string }>>
  }
  return Object.values(paths)
    .flatMap(methods => Object.values(methods).map(({ operationId }) => operationId))
    .sort()
}

const run = async (
  { service, url, tokens }: Target,
  phases: string,
  size: number,
  seed: number,
  more: readonly string[] = [],
): Promise<Run> => {
  const work = mkdtempSync(join(tmpdir(), 'pool-schemathesis-'))
  onTestFinished(() => rmSync(work, { recursive: true, force: true }))
  const responses = join(work, 'responses.json')
  const args = [
    ...['--config-file', `${service}.toml`, 'run', fileURLToPath(document(service))],
    ...['--url', url, '--no-color', '--continue-on-failure'],
    ...['--phases', phases, '-n', String(size), '--seed', String(seed), ...more],
  ]
  const env = { ...pythonEnv, RESPONSES_FILE: responses, TOKENS: JSON.stringify(tokens) }
  await using program = new Program({ command: 'schemathesis', args, cwd: folder, env })
  const output = await program.untilSucceeded(20_000)
  return { output, responses: JSON.parse(readFileSync(responses, 'utf8')) }
}

/**
 * Schemathesis 4.32 counts the links that it has followed by operation, not by status. If every PUT of a sequence had a 412, it
 * waits for the link of a 200, and ends with this error.
 */
const DEAD_END = 'No progress can be made from state'
const MAX_DEAD_ENDS = 5

/** A run of the stateful phase. After a dead end, it is repeated with other sequences. */
const runStateful = async (target: Target, seed: number): Promise<Run> => {
  for (let deadEnds = 0; ; deadEnds += 1) {
    try {
      return await run(target, 'stateful', SEQUENCES, seed + 1_000 * deadEnds)
    } catch (error) {
      if (deadEnds === MAX_DEAD_ENDS || !String(error).includes(DEAD_END)) throw error
    }
  }
}

const readNumber = (output: string, pattern: RegExp): number =>
  Number(pattern.exec(output)?.[1]?.replaceAll(',', '') ?? 0)

const isSuccess = ({ isPositive, status }: ResponseCount): boolean => isPositive && status >= 200 && status < 300

const listOperations = (responses: readonly ResponseCount[]): readonly string[] =>
  [...new Set(responses.map(({ operation }) => operation))].sort()

describe.skipIf(isSchemathesisMissing)('Schemathesis finds no failure', () => {
  let services: Services
  beforeAll(async () => {
    services = await startServices()
  })
  afterAll(() => services?.[Symbol.asyncDispose]())

  test.each<Service>(['allocation-api', 'lease-witness'])('of %s', { timeout: TIMEOUT_MS }, async service => {
    const { operatorUrl, operatorTokens, witnessUrl, witnessTokens } = services
    const target: Target =
      service === 'lease-witness'
        ? { service, url: witnessUrl, tokens: witnessTokens }
        : { service, url: operatorUrl, tokens: operatorTokens }
    const runs = [await run(target, PHASES, examples[service], SEED)]
    for (let at = 0; at < statefulRuns; at += 1) {
      runs.push(await runStateful(target, SEED + at))
    }
    const requests = runs.reduce((sum, { output }) => sum + readNumber(output, /([\d,]+) generated/), 0)
    const responses = runs.flatMap(({ responses }) => responses)
    const completed = listOperations(responses.filter(isSuccess))
    const inSequence = responses.filter(({ phase }) => phase === 'stateful')
    const completedInSequence = listOperations(inSequence.filter(isSuccess))
    const steps = inSequence.reduce((sum, { count }) => sum + count, 0)
    reportProof(
      `Schemathesis, ${service}: ${requests} requests, of these ${steps} in sequences that follow links, 0 failures, seed ${SEED}; completed in a sequence: ${completedInSequence.join(', ')}`,
    )
    const operations = readOperations(service).filter(id => !notCalled[service].includes(id))
    expect(listOperations(responses.filter(({ isPositive }) => isPositive)), 'operations with a valid request').toEqual(
      operations,
    )
    expect(completedInSequence, 'operations that the stateful phase completed').not.toEqual([])
    if (!isProof) return
    const exceptions = Object.keys(incomplete[service])
    const expected = operations.filter(id => !exceptions.includes(id))
    expect(completed, 'operations that a valid request completed').toEqual(expected)
    expect(completedInSequence, 'operations that the stateful phase completed').toEqual(
      expect.arrayContaining([...sequences[service]]),
    )
  })
})

test.skipIf(isMissing('the oracles', ['python3'], 'apt-get install python3'))(
  'the oracles find planted violations',
  async () => {
    await using program = new Program({ command: 'python3', args: ['oracles_test.py'], cwd: folder, env: pythonEnv })
    await program.untilSucceeded(20_000)
  },
)

test.skipIf(isSchemathesisMissing)('Schemathesis reports what the oracles find', async () => {
  const token = 'token-of-the-tests'
  const server = createServer((_, response) => {
    response.setHeader('X-Token', token)
    response.end()
  })
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const target: Target = {
    service: 'allocation-api',
    url: `http://127.0.0.1:${port}`,
    tokens: [{ token, access: 'write' }],
  }
  const only = ['--include-operation-id', 'getLiveness']
  await expect(run(target, 'fuzzing', 1, SEED, only)).rejects.toThrow(/a secret in a response/)
})
