import { expect, test } from 'vitest'
import { binary, howToInstall } from '../src/terraform.ts'
import { withTerraform } from './fixtures/terraform-test.ts'
import { workspace } from './fixtures/workspace.ts'

// The reporter does not show the titles of skipped tests, so this prints the reason once for all files.
if (binary === null) process.stderr.write(`infra/ is not checked: this machine ${howToInstall}\n`)

withTerraform('the module of the witness', () => {
  test('is valid', async () => {
    const { terraform } = await workspace()
    const { code, output } = await terraform('validate', '-no-color')
    expect(code, output).toBe(0)
    expect(output).not.toContain('Warning')
  })

  test('passes its own tests, whose files it finds', async () => {
    const { terraform } = await workspace()
    const { code, output } = await terraform('test', '-no-color')
    expect(code, output).toBe(0)
    for (const file of ['address', 'refused', 'script']) expect(output).toContain(`tests/${file}.tftest.hcl... pass`)
    expect(output).toContain(' 0 failed')
  })
})
