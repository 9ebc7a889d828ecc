import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { collapseWhitespace, readState, SECRET_MARK } from './fixtures/module-fixture.ts'
import { changedPaths } from './fixtures/plan.ts'
import { withTerraform } from './fixtures/with-terraform.ts'
import { createWitnessFixture, token } from './fixtures/witness-fixture.ts'

const migrationRecorded = { applied_migration_tag: 'v1' }

// The fixture searches the output of every command for the mark, which every token contains.
withTerraform('tokens', () => {
  test('are in the uploaded binding and in the state, and in no output', async () => {
    const { account, directory, apply, outputs, terraform } = await createWitnessFixture()
    await apply()
    const { bindings } = account.script('lease-witness')
    expect(bindings).toContainEqual(
      expect.objectContaining({ name: 'BEARER_TOKENS_CSV', type: 'secret_text', text: token('one') }),
    )
    await terraform('show')
    await terraform('output')
    expect(JSON.stringify(await outputs())).not.toContain(SECRET_MARK)
    // In plain text. For this reason the README requires an encrypted backend with access control.
    expect(readState(directory)).toContain(token('one'))
  })

  test('are rotated by two applies that change one binding each', async () => {
    const { account, set, plan, apply } = await createWitnessFixture()
    await apply()
    set(migrationRecorded)
    await apply()
    const readTokens = () =>
      account.script('lease-witness').bindings.find(({ name }) => name === 'BEARER_TOKENS_CSV')?.text
    for (const [tokens, csv] of [
      [[token('two'), token('one')], `${token('one')},${token('two')}`],
      [[token('two')], token('two')],
    ] as const) {
      set({ ...migrationRecorded, bearer_tokens: tokens })
      expect(changedPaths(await plan())).toEqual(['cloudflare_workers_script.witness.bindings.2.text'])
      await apply()
      expect(readTokens()).toBe(csv)
    }
  })

  test('in another order cause no change', async () => {
    const { set, plan, apply } = await createWitnessFixture()
    set({ bearer_tokens: [token('one'), token('two')] })
    await apply()
    set({ bearer_tokens: [token('two'), token('one')] })
    expect(changedPaths(await plan())).toEqual([])
  })

  test('may have 32 characters, and any visible ASCII character except the comma', async () => {
    const { account, set, apply } = await createWitnessFixture()
    const allCharacters = Array.from({ length: 94 }, (_, n) => String.fromCharCode(33 + n))
      .join('')
      .replace(',', '')
    set({ bearer_tokens: [token('one').slice(0, 32), allCharacters] })
    await apply()
    const uploaded = account.script('lease-witness').bindings.find(({ name }) => name === 'BEARER_TOKENS_CSV')?.text
    expect(String(uploaded).split(',').toSorted()).toEqual([token('one').slice(0, 32), allCharacters].toSorted())
  })

  test('are a sensitive variable', async () => {
    const { plan } = await createWitnessFixture()
    expect((await plan()).configuration.root_module.variables.bearer_tokens?.sensitive).toBe(true)
  })

  test.each([
    ['none', [], 'bearer_tokens is empty: the witness would reject all requests. Add a token.'],
    ['a short one', [token('one'), token('one').slice(0, 31)], 'at least 32 characters'],
    ['one with a comma', [`${token('one')},${token('two')}`], 'without commas'],
    ['one with a space', [`${token('one')} `], 'no white space'],
    ['one with a newline', [`${token('one')}\n`], 'no white space'],
    ['one with a control character', [`${token('one')}\u0007`], 'no control character'],
    ['one with a character outside ASCII', [`${token('one')}é`], 'visible ASCII'],
    ['too many', Array.from({ length: 200 }, (_, n) => token(String(n))), 'at most 5120 characters'],
  ])('%s: rejected without quoting the file', async (_, tokens, expectedError) => {
    const { account, directory, set, terraform } = await createWitnessFixture()
    set({ bearer_tokens: tokens })
    const fromFile = await terraform('apply', '-auto-approve', '-no-color')
    // All tokens are in one line, so an error that quotes a line would contain all of them.
    writeFileSync(join(directory, 'z.auto.tfvars'), `bearer_tokens = ${JSON.stringify(tokens)}\n`)
    const fromLine = await terraform('apply', '-auto-approve', '-no-color')
    for (const { code, output } of [fromFile, fromLine]) {
      expect(code, output).toBe(1)
      expect(collapseWhitespace(output)).toContain(expectedError)
    }
    expect(account.namespaces.size + account.scripts.size).toBe(0)
  })

  test.each([
    ['a short one', JSON.stringify([SECRET_MARK]), 'at least 32 characters'],
    ['not a list', JSON.stringify(SECRET_MARK), 'set of string required'],
    ['a syntax error', `[${SECRET_MARK}`, 'Error'],
  ])('%s in the environment: rejected without quoting it', async (_, text, expectedError) => {
    const { environment, set, terraform } = await createWitnessFixture()
    set({ bearer_tokens: undefined })
    environment.TF_VAR_bearer_tokens = text
    const { code, output } = await terraform('plan', '-no-color')
    expect(code, output).toBe(1)
    expect(collapseWhitespace(output)).toContain(expectedError)
  })
})
