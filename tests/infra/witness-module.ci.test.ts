import { expect, test } from 'vitest'
import { binary, howToInstall } from './support/terraform.ts'
import { withTerraform } from './support/with-terraform.ts'
import { createWitnessFixture } from './support/witness-fixture.ts'

// The reporter does not show the titles of skipped tests, so this prints the reason once for all files.
if (binary === null) process.stderr.write(`The tests of infra/ are skipped: ${howToInstall}\n`)

withTerraform('the lease-witness module', () => {
  test('is valid', async () => {
    const { terraform } = await createWitnessFixture()
    const { code, output } = await terraform('validate', '-no-color')
    expect(code, output).toBe(0)
    expect(output).not.toContain('Warning')
  })

  test('passes its own tests', async () => {
    const { terraform } = await createWitnessFixture()
    const { code, output } = await terraform('test', '-no-color')
    expect(code, output).toBe(0)
    expect(output).toContain('tests/invalid-inputs.tftest.hcl... pass')
    expect(output).toContain(' 0 failed')
  })
})
