import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCliFolder } from './support/cli.ts'

// The package as users install it: one file without dependencies, on every Node that it supports.

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'poolctl-package-'))

beforeAll(() => {
  execFileSync(process.execPath, ['../dev/src/build/main.ts', 'cli'], { cwd: root })
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--silent', '--pack-destination', folder], { cwd: root, encoding: 'utf8' }),
  )
  writeFileSync(join(folder, 'package.json'), '{"name":"empty","private":true}')
  execFileSync('npm', ['install', '--offline', '--silent', '--no-audit', '--no-fund', `./${packed.filename}`], {
    cwd: folder,
  })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The programs called `node` that are installed, by major version. */
const nodes = ['/usr/bin/node', '/usr/local/bin/node', process.execPath].flatMap(path => {
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  const major = /^v(\d+)\./.exec(stdout ?? '')?.[1]
  return major === undefined ? [] : [[major, path] as const]
})

describe.each(['20', '24'])('the package on Node %s', major => {
  const path = nodes.find(([version]) => version === major)?.[1]
  const skip = shouldSkip(path === undefined ? `poolctl on Node ${major}: install it as /usr/bin/node` : undefined)

  const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    const entry = join(folder, 'node_modules/.bin/poolctl')
    const { status, stdout, stderr } = spawnSync(path ?? '', [entry, ...args], { encoding: 'utf8', env })
    return { status, stdout, stderr }
  }

  test.skipIf(skip)('prints its version and its help', () => {
    expect(run(['--version'])).toEqual({ status: 0, stdout: '1.0.0\n', stderr: '' })
    expect(run(['names', 'check', '--help'])).toMatchObject({ status: 0, stderr: '' })
  })

  test.skipIf(skip)('stores a context and reports an address without a service', () => {
    using home = createCliFolder()
    expect(run(['contexts', 'set', 'a', '--api', 'http://127.0.0.1:1'], home.env)).toMatchObject({ status: 0 })
    expect(run(['names', 'list', 'pool.test', '--timeout', '200ms'], home.env)).toMatchObject({ status: 4, stdout: '' })
  })
})

test('it has no dependencies, and the licences of what it contains', () => {
  const installed = join(folder, 'node_modules/@pool/cli')
  expect(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))).not.toHaveProperty('dependencies')
  const licences = readFileSync(join(installed, 'dist/LICENSES.txt'), 'utf8')
  for (const name of ['commander', 'string-width', 'zod']) expect(licences).toContain(`${name} `)
})
