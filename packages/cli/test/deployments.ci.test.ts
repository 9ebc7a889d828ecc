import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { startAllocationApi, type TestAllocationApi } from '@pool/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CliOptions, createCliFolder, runPoolctl } from './support/cli.ts'

const isInstalled = ['terraform', 'tofu'].some(tool => spawnSync(tool, ['version']).error === undefined)
export const missingTerraform = isInstalled
  ? undefined
  : 'poolctl deployments: missing terraform or tofu (https://developer.hashicorp.com/terraform/install)'

// Deployments with Terraform, and Ctrl-C during operations that take long at the service.

let source: TestAllocationApi
let target: TestAllocationApi
const home = createCliFolder()

/** Every text that poolctl printed in this file. */
const printed: string[] = []
const poolctl = async (line: string, options: CliOptions = {}) => {
  const result = await runPoolctl(line.split(' '), { env: home.env, fetch: globalThis.fetch, ...options })
  printed.push(result.stdout, result.stderr)
  return result
}

beforeAll(async () => {
  ;[source, target] = await Promise.all([startAllocationApi({ env: { PDM_BYO_PROOF: 'off' } }), startAllocationApi()])
  for (const [name, api] of Object.entries({ source, target })) {
    const token = join(home.folder, name)
    writeFileSync(token, api.operatorToken, { mode: 0o600 })
    await poolctl(`contexts set ${name} --api ${api.operatorUrl} --api-token-file ${token}`)
  }
  await poolctl('contexts use source')
})
afterAll(async () => {
  await Promise.all([source?.stop(), target?.stop()])
  home[Symbol.dispose]()
})

/** Sends the first half of a body and then nothing. `onHalf` is called when the connection has taken it. */
const sendHalf =
  (onHalf: () => void): typeof fetch =>
  async (input, init) => {
    if (!(init?.body instanceof ReadableStream)) return fetch(input, init)
    const bytes = await new Response(init.body).bytes()
    const parts = [bytes.subarray(0, bytes.length / 2)]
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const part = parts.shift()
        if (part) controller.enqueue(part)
        else onHalf()
      },
    })
    return fetch(input, { ...init, body, duplex: 'half' } as RequestInit)
  }

test('an import that Ctrl-C ends imports nothing, and can be repeated', async () => {
  for (const name of ['one', 'two', 'three']) {
    expect(await poolctl(`names reserve ${name} pool.test`)).toMatchObject({ exitCode: 0 })
    expect(await poolctl(`names commit ${name} pool.test --address 203.0.113.10`)).toMatchObject({ exitCode: 0 })
  }
  const file = join(home.folder, 'export.ndjson')
  expect(await poolctl(`export ${file}`)).toMatchObject({ exitCode: 0 })

  const [interrupted, killed] = [new AbortController(), new AbortController()]
  const signals = { interrupted: interrupted.signal, killed: killed.signal }
  const half = Promise.withResolvers<void>()
  const importing = poolctl(`import ${file} --yes --context target`, { ...signals, fetch: sendHalf(half.resolve) })
  await half.promise
  interrupted.abort('SIGINT')
  killed.abort('SIGINT')
  expect(await importing).toMatchObject({
    exitCode: 130,
    stderr: expect.stringContaining('waiting for the response to the request in flight; press Ctrl-C again to stop'),
  })
  expect(await poolctl('names list pool.test --context target')).toMatchObject({ exitCode: 0, stdout: '' })

  const repeated = await poolctl(`import ${file} --yes --context target`)
  expect(repeated, repeated.stderr).toMatchObject({ exitCode: 0 })
  expect((await poolctl('names list pool.test --context target -o name')).stdout.trim().split('\n')).toHaveLength(3)
})

/** The flags of a deployment of this name. */
const toInput = (subdomain: string): string => {
  const keyFile = join(home.folder, 'key.pub')
  writeFileSync(keyFile, 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f test')
  return `--org-name Umbrella --org-email ops@umbrella.example --pool pool.test --subdomain ${subdomain} --provider local --region local --ssh-public-key ${keyFile}`
}

test.skipIf(shouldSkip(missingTerraform))('a deployment is created, planned, destroyed and deleted', async () => {
  const input = toInput('umbrella')

  // Ctrl-C twice while the response is on its way: the same command has the same deployment.
  const lateResponse = await source.delay(600_000, { method: 'POST', path: '/api/v1/deployments' })
  const [interrupted, killed] = [new AbortController(), new AbortController()]
  const signals = { interrupted: interrupted.signal, killed: killed.signal }
  const cut = poolctl(`deployments create ${input}`, signals)
  await lateResponse.occurred()
  interrupted.abort('SIGINT')
  killed.abort('SIGINT')
  expect(await cut).toMatchObject({ exitCode: 130 })
  await lateResponse.cancel()
  const created = await poolctl(`deployments create ${input}`)
  expect(created, created.stderr).toMatchObject({ exitCode: 0 })
  const [id = '', ...others] = (await poolctl('deployments list -o name')).stdout.trim().split('\n')
  expect(others).toEqual([])

  // Ctrl-C ends the log; the deployment continues.
  const silence = await source.partition({ method: 'GET', path: `/api/v1/deployments/${id}/logs` })
  const follow = new AbortController()
  const following = poolctl(`deployments logs -f ${id}`, { interrupted: follow.signal })
  await silence.occurred()
  follow.abort('SIGINT')
  expect(await following).toMatchObject({
    exitCode: 130,
    stderr: expect.stringContaining(`the deployment continues. Follow it with: poolctl deployments logs -f ${id}`),
  })
  await silence.cancel()
  expect(await poolctl(`deployments logs -f ${id}`)).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining(`${id} is ready.`),
  })
  expect(await poolctl(`deployments get ${id}`)).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/status: +ready/),
  })
  expect((await poolctl(`deployments logs ${id}`)).stdout).toContain('The deployment is ready.')
  expect(await poolctl(`deployments plan ${id}`)).toMatchObject({ exitCode: 0 })
  expect(await poolctl(`deployments delete ${id} --yes`)).toMatchObject({
    exitCode: 3,
    stderr: expect.stringContaining('still-up'),
  })
  expect(await poolctl(`deployments cancel ${id} --yes`)).toMatchObject({
    exitCode: 3,
    stderr: expect.stringMatching(/^error: there is no run to cancel: the deployment is ready; .*\n$/),
  })
  // Repeated after a broken connection, it has started the operation once.
  for (const operation of ['apply', 'destroy']) {
    const lost = await source.dropNextResponse({ method: 'POST', path: `/api/v1/deployments/${id}/${operation}` })
    const yes = operation === 'destroy' ? '--yes ' : ''
    expect(await poolctl(`deployments ${operation} ${id} ${yes}--follow`)).toMatchObject({ exitCode: 0 })
    await lost.occurred()
  }
  const history = await poolctl('deployments history -o ndjson')
  expect(history.stdout.match(/-requested/g)).toHaveLength(2)
  expect(await poolctl(`deployments delete ${id} --yes`)).toMatchObject({ exitCode: 0 })
})

test.skipIf(shouldSkip(missingTerraform))('a plan that Ctrl-C ends changes nothing, and can be repeated', async () => {
  const input = toInput('initech')
  const created = await poolctl(`deployments create ${input} --follow`)
  expect(created, created.stderr).toMatchObject({ exitCode: 0 })
  const id = (await poolctl('deployments list -o name')).stdout.trim()
  const read = async () => (await poolctl(`deployments get ${id} -o json`)).stdout
  const before = await read()

  const interrupted = new AbortController()
  const isPlanning = Promise.withResolvers<void>()
  const whenPlanning: typeof fetch = (input, init) => {
    if (String(input).endsWith('/plan')) isPlanning.resolve()
    return fetch(input, init)
  }
  const planning = poolctl(`deployments plan ${id}`, { interrupted: interrupted.signal, fetch: whenPlanning })
  await isPlanning.promise
  interrupted.abort('SIGINT')
  expect(await planning).toMatchObject({ exitCode: 130, stdout: '' })
  expect(await read()).toBe(before)

  const silence = await source.delay(600_000, { method: 'POST', path: `/api/v1/deployments/${id}/plan` })
  const late = new AbortController()
  const planned = poolctl(`deployments plan ${id}`, { interrupted: late.signal })
  await silence.occurred()
  late.abort('SIGINT')
  expect(await planned).toMatchObject({ exitCode: 130, stdout: '' })
  await silence.cancel()
  expect(await read()).toBe(before)
  const [planHash = ''] = /(?<=--plan-hash )\w+/.exec((await poolctl(`deployments plan ${id}`)).stderr) ?? []
  expect(await poolctl(`deployments apply ${id} --plan-hash ${'0'.repeat(64)} --follow`)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('is failed: plan-changed: '),
  })
  expect(await poolctl(`deployments apply ${id} --plan-hash ${planHash} --follow`)).toMatchObject({ exitCode: 0 })
})

test('no token was printed', () => {
  const files = readdirSync(join(home.folder, 'state'), { recursive: true, withFileTypes: true })
  const tokens = files
    .filter(file => file.isFile())
    .flatMap(file => JSON.parse(readFileSync(join(file.parentPath, file.name), 'utf8')).token ?? [])
  expect(tokens).not.toEqual([])
  const text = printed.join('\n')
  for (const token of [...tokens, source.operatorToken, target.operatorToken]) expect(text).not.toContain(token)
})
