import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev/process'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createTerraform } from '../../src/deployments/terraform/terraform.ts'
import {
  findProcesses,
  isTerraformMissing,
  killProcesses,
  readFiles,
  type Site,
  secrets,
  startApply,
  startDestroy,
  toRequest,
  useSites,
} from './support/terraform.ts'

const createTestSite = useSites()

/** Stores the keys, as the user data of a machine does, twice: the second write would make a backup of the first one. */
const toModule = (end: string) => `
resource "terraform_data" "data" { input = var.object_storage_secret_key }
resource "terraform_data" "more" {
  input = [terraform_data.data.id, var.object_storage_access_key]
  provisioner "local-exec" {
    command     = "echo waiting; until [ -e ../go ]; do sleep 0.02; done; ${end}"
    working_dir = path.module
  }
}`

/** Files with a secret, in any of its forms that a program would write. */
const findLeaks = ({ options }: Site, except = /^$/): string[] => {
  const forms = Object.values(secrets).flatMap(secret => [
    secret,
    JSON.stringify(secret).slice(1, -1),
    secret.slice(0, 16),
  ])
  return readFiles(options.dataDir)
    .filter(({ path, text }) => !except.test(path) && forms.some(form => text.includes(form)))
    .map(({ path }) => path)
}

const findEnvironments = (site: Site): string[] =>
  findProcesses(site.folder).map(({ pid }) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8')
    } catch {
      return ''
    }
  })

describe.skipIf(isTerraformMissing)('an operation', () => {
  test.each(['ends', 'fails', 'is cancelled', 'is killed'])(
    'that %s has no secret outside its state, in a file or an environment',
    async end => {
      const site = createTestSite(toModule(end === 'fails' ? 'exit 1' : 'true'))
      const options = { ...site.options, env: { ...site.options.env, TMPDIR: site.folder } }
      const waiting = '(local-exec): waiting'
      const run = end === 'is killed' ? null : startApply(options)
      if (run) await until('it waits', () => run.logged(waiting))
      else {
        const entry = fileURLToPath(new URL('support/run-until-killed.ts', import.meta.url))
        const env = { ...options.env, TEST_OPTIONS: JSON.stringify(options) }
        await startNode({ entry, env, isReady: line => String(line.message).includes(waiting) }).ready
      }
      const environments = findEnvironments(site)
      expect(environments.length).toBeGreaterThan(2)
      expect(environments.filter(text => Object.values(secrets).some(secret => text.includes(secret)))).toEqual([])
      if (end === 'is cancelled') run?.stop()
      else if (run) writeFileSync(join(site.folder, 'go'), '')
      else await killProcesses(site.folder)
      await run?.result
      expect(findLeaks(site, /\/terraform\.tfstate$/)).toEqual([])
      expect(findLeaks(site)).not.toEqual([])

      site.write(toModule('true'))
      writeFileSync(join(site.folder, 'go'), '')
      expect(await startApply(options, { run: 2 }).result).toMatchObject({ kind: 'applied' })
      // That of an earlier release.
      writeFileSync(
        join(options.dataDir, 'state/acme.pool.test/terraform.tfstate.backup'),
        secrets.object_storage_secret_key,
      )
      expect(await startDestroy(options, { run: 3 }).result).toEqual({ kind: 'destroyed' })
      await createTerraform(options).cleanUp('m1', 4, () => {})
      expect(findLeaks(site)).toEqual([])
      await createTerraform(options).discard(toRequest())
      expect(existsSync(join(options.dataDir, 'state/acme.pool.test'))).toBe(false)
    },
  )
})

test('with a cold cache of providers, concurrent operations run one init at a time', async () => {
  const site = createTestSite()
  const cache = join(site.folder, 'cache')
  mkdirSync(cache)
  const binary = join(site.folder, 'terraform')
  const fill =
    'mkdir "$TF_PLUGIN_CACHE_DIR/filling" || echo overlap >> "$TF_PLUGIN_CACHE_DIR/log"; sleep 0.3; rmdir "$TF_PLUGIN_CACHE_DIR/filling"; echo init >> "$TF_PLUGIN_CACHE_DIR/log"'
  writeFileSync(binary, `#!/bin/sh\n[ "$1" = init ] || exit 0\n${fill}\n`)
  chmodSync(binary, 0o755)
  const env = { ...site.options.env, TF_PLUGIN_CACHE_DIR: cache }
  const terraform = createTerraform({ ...site.options, binary, env })
  const { signal } = new AbortController()
  await Promise.all(
    ['a', 'b', 'c'].flatMap(stateKey => [
      terraform.apply({ ...toRequest({ id: stateKey, stateKey }) }, () => {}, signal),
      terraform.inspect(toRequest({ id: stateKey, stateKey: `${stateKey}.test` }), signal),
    ]),
  )
  expect(readFileSync(join(cache, 'log'), 'utf8')).toBe('init\n'.repeat(6))
})
