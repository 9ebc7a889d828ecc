import { join } from 'node:path'
import { expect, test } from 'vitest'
import { binary, howToInstall, run } from '../src/terraform.ts'
import { withTerraform } from './fixtures/terraform-test.ts'
import { repository, workspace } from './fixtures/workspace.ts'

// The reporter shows no titles of skipped tests: said here, once for all files.
if (binary === null) process.stderr.write(`infra/ is not checked: this machine ${howToInstall}\n`)

withTerraform('the module', () => {
  test('is formatted', async () => {
    const { code, said } = await run(join(repository, 'infra'), ['fmt', '-check', '-recursive'], {})
    expect(said).toBe('')
    expect(code).toBe(0)
  })

  test('is valid', async () => {
    const { terraform } = await workspace()
    const { code, said } = await terraform('validate', '-no-color')
    expect(code, said).toBe(0)
    expect(said).not.toContain('Warning')
  })

  test('passes its own tests, whose files it finds', async () => {
    const { terraform } = await workspace()
    const { code, said } = await terraform('test', '-no-color')
    expect(code, said).toBe(0)
    for (const file of ['address', 'refused', 'script']) expect(said).toContain(`tests/${file}.tftest.hcl... pass`)
    expect(said).toContain(' 0 failed')
  })
})
