import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startNode } from '@pool/dev-server/process'
import { expect, test } from 'vitest'
import { temporaryDirectory } from './support/witness.ts'

const WORKER = `export default { fetch: (_, env) => Response.json(env) }`

test('the worker gets only the variables of wrangler.toml and ours, and nothing is written to HOME', async () => {
  using directory = temporaryDirectory()
  const toPath = (name: string) => join(directory.path, name)
  mkdirSync(toPath('home'))
  writeFileSync(toPath('worker.mjs'), WORKER)
  writeFileSync(
    toPath('wrangler.toml'),
    'name = "w"\nmain = "worker.mjs"\ncompatibility_date = "2026-11-01"\n[vars]\nLOG_LEVEL = "info"\n',
  )
  writeFileSync(toPath('.env'), 'PDM_DATABASE_URL=secret\nLOG_LEVEL=debug\n')
  writeFileSync(toPath('.env.local'), 'OTHER=secret\n')
  const lines: string[] = []
  for (const withDevVars of [false, true]) {
    if (withDevVars) writeFileSync(toPath('.dev.vars'), 'BEARER_TOKENS_CSV=theirs\nTHIRD=secret\n')
    const witness = startNode({
      entry: resolve(import.meta.dirname, 'support/run-worker.ts'),
      env: { HOME: toPath('home'), WORKER: toPath('wrangler.toml'), DATA_DIR: toPath('data'), FOURTH: 'secret' },
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
