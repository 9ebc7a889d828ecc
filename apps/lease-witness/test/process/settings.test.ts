import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startNode } from '@pool/dev/process'
import { startLocalWitness } from '@pool/test-kit/services.ts'
import { expect, test } from 'vitest'
import { createClient } from './support/client.ts'
import { temporaryDirectory } from './support/witness.ts'

const WORKER = `export default { fetch: (_, env) => Response.json(env) }`

test('the worker gets only the variables of wrangler.toml and ours, and nothing is written to HOME', async () => {
  using directory = temporaryDirectory()
  const toPath = (name: string) => join(directory.path, name)
  mkdirSync(toPath('home'))
  writeFileSync(toPath('worker.mjs'), WORKER)
  writeFileSync(
    toPath('wrangler.toml'),
    'name = "w"\nmain = "worker.mjs"\ncompatibility_date = "2026-05-01"\n[vars]\nLOG_LEVEL = "info"\n' +
      // What only a deployment has.
      '[[analytics_engine_datasets]]\nbinding = "METRICS"\n' +
      '[[secrets_store_secrets]]\nbinding = "TOKEN_POLICIES"\nstore_id = "a"\nsecret_name = "b"\n',
  )
  writeFileSync(toPath('.env'), 'PDM_DATABASE_URL=secret\nLOG_LEVEL=debug\n')
  writeFileSync(toPath('.env.local'), 'OTHER=secret\n')
  const lines: string[] = []
  for (const withDevVars of [false, true]) {
    if (withDevVars) writeFileSync(toPath('.dev.vars'), 'BEARER_TOKENS_CSV=theirs\nTHIRD=secret\n')
    const witness = startNode({
      entry: resolve(import.meta.dirname, 'support/run-worker.ts'),
      env: {
        HOME: toPath('home'),
        WORKER: toPath('wrangler.toml'),
        DATA_DIR: toPath('data'),
        BEARER_TOKENS_CSV: 'ours',
        FOURTH: 'secret',
      },
      onLine: line => lines.push(line),
    })
    const { port } = await witness.ready
    const response = await fetch(`http://127.0.0.1:${port}/`)
    expect(await response.json()).toEqual({ LOG_LEVEL: 'info', BEARER_TOKENS_CSV: 'ours' })
    await witness.stop()
  }
  expect(lines.map(line => JSON.parse(line).msg)).toEqual(['ready', 'ready'])
  expect(readdirSync(toPath('home'))).toEqual([])
})

test('LOOPBACK_HOSTS_ONLY, which start sets: only loopback names reach the witness', async () => {
  using directory = temporaryDirectory()
  await using witness = await startLocalWitness(directory.path, { LOOPBACK_HOSTS_ONLY: 'true' })
  using client = createClient(witness.port)
  const acquire = (Host: string) => client.send('PUT', '/lease/a', { Host, 'If-Match': '0', 'X-Holder': 'a' }, '{}')
  const rejected = await acquire('evil.example')
  expect([rejected.status, JSON.parse(rejected.text).error]).toEqual([403, 'forbidden'])
  for (const host of ['127.0.0.1.evil.example', '10.0.0.1', 'localhost.evil.example']) {
    expect((await acquire(host)).status, host).toBe(403)
  }
  // On the same connection, and the first write: nothing was written before.
  const accepted = await acquire(`localhost:${witness.port}`)
  expect([accepted.status, JSON.parse(accepted.text).generation]).toEqual([200, 1])
})
