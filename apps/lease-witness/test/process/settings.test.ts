import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startNode } from '@pool/dev-server/process'
import { expect, test } from 'vitest'
import { temporaryFolder } from './support/witness.ts'

const WORKER = `export default { fetch: (_, env) => Response.json(env) }`

test('the worker gets the variables of wrangler.toml and ours, nothing that lies beside; nobody’s home is written to', async () => {
  using folder = temporaryFolder()
  const inFolder = (name: string) => join(folder.path, name)
  mkdirSync(inFolder('home'))
  writeFileSync(inFolder('worker.mjs'), WORKER)
  writeFileSync(
    inFolder('wrangler.toml'),
    'name = "w"\nmain = "worker.mjs"\ncompatibility_date = "2026-11-01"\n[vars]\nLOG_LEVEL = "info"\n',
  )
  writeFileSync(inFolder('.env'), 'PDM_DATABASE_URL=secret\nLOG_LEVEL=debug\n')
  writeFileSync(inFolder('.env.local'), 'OTHER=secret\n')
  const lines: string[] = []
  for (const withDevVars of [false, true]) {
    if (withDevVars) writeFileSync(inFolder('.dev.vars'), 'BEARER_TOKENS_CSV=theirs\nTHIRD=secret\n')
    const witness = startNode({
      entry: resolve(import.meta.dirname, 'support/run-worker.ts'),
      env: { HOME: inFolder('home'), WORKER: inFolder('wrangler.toml'), DATA_DIR: inFolder('data'), FOURTH: 'secret' },
      onLine: line => lines.push(line),
    })
    const { port } = await witness.ready
    const answer = await fetch(`http://127.0.0.1:${port}/`)
    expect(await answer.json()).toEqual({ LOG_LEVEL: 'info', BEARER_TOKENS_CSV: 'ours' })
    await witness.stop()
  }
  expect(lines.map(line => JSON.parse(line).msg)).toEqual(['ready', 'ready'])
  expect(readdirSync(inFolder('home'))).toEqual([])
})
