import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { missingGateway } from '@pool/test-kit/ceph/gateway.ts'
import { type GatewaySite, startGatewaySite } from '@pool/test-kit/terraform/gateway-site.ts'
import { usesRealProviders } from '@pool/test-kit/terraform/real-providers.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  accessKey,
  bucketProvider,
  createBucketFixture,
  inputs,
  renderRootModule,
  secretKey,
} from './support/bucket-fixture.ts'
import { collapseWhitespace, readState } from './support/module-fixture.ts'
import { mustRun, withTerraform } from './support/terraform.ts'

const isSkipped = !usesRealProviders || (missingGateway !== undefined && !mustRun)
if (!usesRealProviders) {
  process.stderr.write('The versions of the bucket provider are not compared: set REAL_PROVIDERS=1 to run them.\n')
}

const address = 'module.bucket.minio_s3_bucket.backups'
const permitted = '>= 3.6.4, < 3.11.2'

/** A failed lookup counts as a missing bucket. */
const FORGETS = 'forgets'
/** Creates a private bucket with a request for which a Ceph gateway sends 200, and the provider accepts only 204. */
const REMOVES_POLICY = 'removes the policy'

/** The table in the README of the module. */
const versions = [
  ['3.5.0', FORGETS],
  ['3.6.4', 'permitted'],
  ['3.11.1', 'permitted'],
  ['3.11.2', REMOVES_POLICY],
  ['3.38.0', REMOVES_POLICY],
] as const

const setVersion = (moduleDirectory: string, constraint: string): void => {
  const file = join(moduleDirectory, 'versions.tf')
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(/^(\s+version = ").*"/m, `$1${constraint}"`))
}

withTerraform('the versions of the bucket provider', () => {
  describe.skipIf(isSkipped)('on a real object gateway', () => {
    let site: GatewaySite
    beforeAll(async () => {
      site = await startGatewaySite({ accessKey, secretKey })
    })
    afterAll(() => site?.stop())

    const createSite = async (bucket: string, version: string, more = '') => {
      const variables = {
        ...inputs,
        object_storage_domain: site.domain,
        object_storage_bucket: bucket,
      }
      const change = (directory: string) => setVersion(directory, version)
      const rootModule = renderRootModule(more)
      const fixture = await createBucketFixture({ rootModule, variables, site, change })
      const execute = async (...args: string[]) => {
        const { code, output } = await fixture.terraform(...args, '-no-color')
        return { code, output: collapseWhitespace(output) }
      }
      return {
        ...fixture,
        module: join(fixture.root, 'infra/object-storage-bucket'),
        execute,
        applyOnce: () => execute('apply', '-auto-approve'),
        /** 0: empty, 1: refused, 2: with changes. */
        planCode: async () => (await execute('plan', '-detailed-exitcode')).code,
        isTainted: () => readState(fixture.directory).includes('"status": "tainted"'),
      }
    }
    const importBlock = (bucket: string) => `${bucketProvider}import {\n  to = ${address}\n  id = "${bucket}"\n}\n`

    test('init chooses the newest permitted one, and a lock file of another needs an upgrade', async () => {
      const { directory, module, execute } = await createSite('catalyst-chosen', permitted)
      const readLock = () => readFileSync(join(directory, '.terraform.lock.hcl'), 'utf8')
      expect(readLock()).toContain('version     = "3.11.1"')
      setVersion(module, '3.38.0')
      expect((await execute('init', '-upgrade')).code).toBe(0)
      setVersion(module, permitted)
      const refused = await execute('init')
      expect(refused.code).toBe(1)
      expect(refused.output).toContain('-upgrade')
      expect((await execute('init', '-upgrade')).code).toBe(0)
      expect(readLock()).toContain('version     = "3.11.1"')
    })

    test.each(versions)('%s: first apply, second plan, import, destroy (%s)', async (version, fault) => {
      const bucket = `catalyst-first-${version.replaceAll('.', '-')}`
      const first = await createSite(bucket, version)
      const { code, output } = await first.applyOnce()
      if (fault === REMOVES_POLICY) {
        expect(code, output).toBe(1)
        expect(output).toContain(`unable to remove bucket policy (${bucket}): 200 OK`)
        expect(first.isTainted()).toBe(true)
        const refused = await first.execute('plan')
        expect(refused.output).toMatch(/instance cannot be destroyed/i)
        expect((await first.execute('untaint', address)).code).toBe(0)
      } else {
        expect(code, output).toBe(0)
      }
      expect(await first.planCode()).toBe(0)
      expect((await site.client.signed(`/${bucket}`)).status).toBe(200)
      const destroyed = await first.execute('destroy', '-auto-approve')
      expect(destroyed.code).toBe(1)
      expect(destroyed.output).toContain('prevent_destroy set')

      const second = await createSite(bucket, version, importBlock(bucket))
      const imported = await second.applyOnce()
      expect(imported.code, imported.output).toBe(0)
      expect(imported.output).toContain('1 imported, 0 added, 0 changed, 0 destroyed')
      expect(await second.planCode()).toBe(0)

      // The permitted version reads the state of every other one.
      setVersion(second.module, permitted)
      expect((await second.execute('init', '-upgrade')).code).toBe(0)
      expect(await second.planCode()).toBe(0)
    })

    test.each(versions)('%s: the state of 3.5.0 needs no change', async version => {
      const bucket = `catalyst-upgrade-${version.replaceAll('.', '-')}`
      const { module, applyOnce, execute, planCode } = await createSite(bucket, '3.5.0')
      expect((await applyOnce()).code).toBe(0)
      setVersion(module, version)
      expect((await execute('init', '-upgrade')).code).toBe(0)
      expect(await planCode()).toBe(0)
      const { code, output } = await applyOnce()
      expect(code, output).toBe(0)
      expect(output).toContain('0 added, 0 changed, 0 destroyed')
    })

    test.each(versions)(
      '%s: an apply whose lookup fails after the creation, and its repair (%s)',
      async (version, fault) => {
        const bucket = `catalyst-half-${version.replaceAll('.', '-')}`
        const { root, applyOnce, execute, planCode, isTainted } = await createSite(bucket, version)
        site.answerPolicyRemoval(204)
        site.rejectLookups(true)
        const failed = await applyOnce().finally(() => {
          site.rejectLookups(false)
          site.answerPolicyRemoval(null)
        })
        const { status } = await site.client.signed(`/${bucket}`)
        if (version === '3.38.0') {
          // It also looks for the bucket before it creates it.
          expect(failed.code, failed.output).toBe(1)
          expect([status, (await execute('state', 'list')).output.includes(address)]).toEqual([404, false])
          return
        }
        expect(status).toBe(200)
        if (fault === FORGETS) {
          expect(isTainted()).toBe(false)
          expect((await execute('state', 'list')).output).not.toContain(address)
          writeFileSync(join(root, 'main.tf'), renderRootModule(importBlock(bucket)))
          expect((await applyOnce()).output).toContain('1 imported, 0 added, 0 changed, 0 destroyed')
        } else {
          expect(failed.code, failed.output).toBe(1)
          expect(failed.output).toContain(`(${bucket}): Access Denied.`)
          expect(isTainted()).toBe(true)
          expect(await planCode()).toBe(1)
          expect((await execute('untaint', address)).code).toBe(0)
        }
        expect(await planCode()).toBe(0)
      },
    )

    test.each(versions.filter(([, fault]) => fault === REMOVES_POLICY))(
      '%s works only with storage that answers 204',
      async version => {
        for (const status of [204, 403] as const) {
          const bucket = `catalyst-${status}-${version.replaceAll('.', '-')}`
          const { applyOnce, planCode } = await createSite(bucket, version)
          site.answerPolicyRemoval(status)
          const { code, output } = await applyOnce().finally(() => site.answerPolicyRemoval(null))
          expect(code, output).toBe(status === 204 ? 0 : 1)
          if (status === 403) expect(output).toContain(`unable to remove bucket policy (${bucket}): Access Denied.`)
          expect(await planCode()).toBe(status === 204 ? 0 : 1)
        }
      },
    )
  })
})
