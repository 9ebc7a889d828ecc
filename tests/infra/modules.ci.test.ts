import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createModuleFixture, repository } from './support/module-fixture.ts'
import { binary, howToInstall, run, withTerraform } from './support/terraform.ts'
import { createWitnessFixture } from './support/witness-fixture.ts'

const folders = ['infra/object-storage-inputs', 'infra/first-boot-secret', 'infra/local-deployment'] as const

withTerraform('the modules', () => {
  test.each(['infra', 'examples/hetzner', 'apps/allocation-api/test/fixtures'])('in %s are formatted', async folder => {
    const { code, output } = await run(join(repository, folder), ['fmt', '-check', '-recursive'], {})
    expect(output).toBe('')
    expect(code).toBe(0)
  })
})

withTerraform('the modules without a provider', () => {
  test.each(folders)('%s is valid and passes all of its own test files', async folder => {
    const { terraform } = await createModuleFixture({ folders: [folder, ...folders] })
    const valid = await terraform('validate', '-no-color')
    expect(valid.code, valid.output).toBe(0)
    expect(valid.output).not.toContain('Warning')
    const { code, output } = await terraform('test', '-no-color')
    expect(code, output).toBe(0)
    const files = readdirSync(join(repository, folder, 'tests'))
    expect(files).not.toEqual([])
    for (const file of files) expect(output).toContain(`tests/${file}... pass`)
    expect(output).toContain(' 0 failed')
  })
})

// The reporter does not show the titles of skipped tests, so this prints the reason once for all files.
if (binary === null) process.stderr.write(`The tests of infra/ are skipped: ${howToInstall}\n`)

withTerraform('the lease-witness module', () => {
  test('is valid', async () => {
    const { terraform } = await createWitnessFixture()
    const { code, output } = await terraform('validate', '-no-color')
    expect(code, output).toBe(0)
    expect(output).not.toContain('Warning')
  })

  test('passes all of its own test files', async () => {
    const { terraform } = await createWitnessFixture()
    const { code, output } = await terraform('test', '-no-color')
    expect(code, output).toBe(0)
    for (const file of ['address', 'invalid-inputs', 'script'])
      expect(output).toContain(`tests/${file}.tftest.hcl... pass`)
    expect(output).toContain(' 0 failed')
  })
})
