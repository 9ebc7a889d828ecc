import { expect, test } from 'vitest'
import { bucketName, createBucketFixture, renderRootModule } from './support/bucket-fixture.ts'
import { collapseWhitespace, readState } from './support/module-fixture.ts'
import { readShellBlocks } from './support/readme.ts'
import { withTerraform } from './support/with-terraform.ts'

/** Everything that the provider does after it has created the bucket can fail, and Terraform then marks it as tainted. */
const failedApply = async (fixture: Awaited<ReturnType<typeof createBucketFixture>>, expectedError: string) => {
  const { directory, storage, terraform } = fixture
  const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
  expect(code, output).toBe(1)
  expect(collapseWhitespace(output)).toContain(expectedError)
  expect([...storage.buckets.keys()]).toEqual([bucketName])
  expect(readState(directory)).toContain('"status": "tainted"')
}

const [repair = ''] = readShellBlocks('object-storage-bucket').filter(block => block.includes('untaint'))

withTerraform('an apply that failed after it had created the bucket', () => {
  test('is repaired by the command in the README: the bucket stays, with its objects', async () => {
    const fixture = await createBucketFixture({ rootModule: renderRootModule() })
    const { storage, terraform } = fixture
    storage.rejectsLookups = true
    await failedApply(fixture, `error checking bucket existence (${bucketName}): Access Denied.`)
    storage.rejectsLookups = false
    storage.buckets.get(bucketName)?.objects.add('archive')

    const refused = await terraform('apply', '-auto-approve', '-no-color')
    expect(refused.code, refused.output).toBe(1)
    expect(collapseWhitespace(refused.output)).toMatch(/instance cannot be destroyed/i)

    const [program, ...args] = repair.trim().split(/\s+/)
    expect(program).toBe('terraform')
    expect((await terraform(...args)).code).toBe(0)
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
    expect(storage.buckets.get(bucketName)?.objects).toEqual(new Set(['archive']))
  })

  test.each([
    [200, '200 OK'],
    [403, 'Access Denied.'],
  ])(
    'is what a version that the module excludes leaves behind, with storage that answers %i',
    async (status, reason) => {
      const fixture = await createBucketFixture({ version: { removesPolicy: true } })
      fixture.storage.policyRemovalStatus = status
      await failedApply(fixture, `unable to remove bucket policy (${bucketName}): ${reason}`)
      expect((await fixture.terraform('plan', '-detailed-exitcode')).code).toBe(1)
    },
  )

  test('does not happen if the storage confirms the removal of a policy with 204', async () => {
    const { apply, terraform } = await createBucketFixture({ version: { removesPolicy: true } })
    await apply()
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })
})
