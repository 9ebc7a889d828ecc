import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { documentFiles } from '@pool/openapi/files'
import { proofScale, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isMissing } from '../src/programs.ts'
import { type Services, startServices } from '../src/services.ts'

/**
 * Requests for each operation that Schemathesis generates in a phase, at most. The coverage phase, which tries every rule of
 * every field, has no such limit: it sends 1,700 requests.
 */
const examples =
  proofScale() < 1
    ? { 'allocation-api': 4, 'lease-witness': 4 }
    : { 'allocation-api': proofSize(420), 'lease-witness': proofSize(700) }
const TIMEOUT_MS = 1_800_000
/** The same requests in every run, so that a run fails only for a change. */
const SEED = process.env.SCHEMATHESIS_SEED ?? '1'

const folder = fileURLToPath(new URL('../schemathesis', import.meta.url))
const isSchemathesisMissing = isMissing('Schemathesis', ['schemathesis'], 'pip install schemathesis')

type Service = keyof typeof examples

const run = (service: Service, url: string, token: string) => {
  const document = documentFiles.find(file => file.service === service)?.current
  const options = ['--config-file', `${service}.toml`, 'run', fileURLToPath(document ?? '')]
  const target = ['--url', url, '-H', `Authorization: Bearer ${token}`, '--no-color']
  const size = [
    '--phases',
    'examples,coverage,fuzzing,stateful',
    '-n',
    String(examples[service]),
    '--seed',
    SEED,
    '--continue-on-failure',
  ]
  return new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    const child = spawn('schemathesis', [...options, ...target, ...size], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const output: Buffer[] = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => output.push(chunk))
    child.on('error', reject)
    child.on('close', code => resolve({ code, output: Buffer.concat(output).toString() }))
  })
}

const readNumber = (output: string, pattern: RegExp): number => Number(pattern.exec(output)?.[1]?.replaceAll(',', ''))

describe.skipIf(isSchemathesisMissing)('Schemathesis finds no failure', () => {
  let services: Services
  beforeAll(async () => {
    services = await startServices()
  })
  afterAll(() => services?.[Symbol.asyncDispose]())

  test.each<Service>(['allocation-api', 'lease-witness'])('of %s', { timeout: TIMEOUT_MS }, async service => {
    const isWitness = service === 'lease-witness'
    const { operatorUrl, operatorToken, witnessUrl, witnessToken } = services
    const { code, output } = isWitness
      ? await run(service, witnessUrl, witnessToken)
      : await run(service, operatorUrl, operatorToken)
    expect(code, output.slice(-20_000)).toBe(0)
    const requests = readNumber(output, /([\d,]+) generated/)
    const links = readNumber(output, /API Links:\s+([\d,]+) covered/)
    expect(requests).toBeGreaterThan(isWitness ? 300 : 1_000)
    expect(links, 'links that the stateful phase followed').toBeGreaterThan(0)
    reportProof(`Schemathesis, ${service}: ${requests} requests, ${links} links followed, 0 failures, seed ${SEED}`)
  })
})
