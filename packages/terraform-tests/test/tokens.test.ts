import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changedPaths } from './fixtures/plan.ts'
import { flat, mark, stateOf } from './fixtures/stage.ts'
import { withTerraform } from './fixtures/terraform-test.ts'
import { token, workspace } from './fixtures/workspace.ts'

const applied = { applied_migration_tag: 'v1' }

// The workspace searches whatever any command says for the mark that every token has.
withTerraform('tokens', () => {
  test('are told to Cloudflare and to the state, and to nobody else', async () => {
    const { account, directory, apply, outputs, terraform } = await workspace()
    await apply()
    const { bindings } = account.script('lease-witness')
    expect(bindings).toContainEqual(
      expect.objectContaining({ name: 'BEARER_TOKENS_CSV', type: 'secret_text', text: token('one') }),
    )
    await terraform('show')
    await terraform('output')
    expect(JSON.stringify(await outputs())).not.toContain(mark)
    // In clear: why the README asks for a backend that is encrypted and guarded.
    expect(stateOf(directory)).toContain(token('one'))
  })

  test('rotate in two applies that change one binding each', async () => {
    const { account, set, plan, apply } = await workspace()
    await apply()
    set(applied)
    await apply()
    const held = () => account.script('lease-witness').bindings.find(({ name }) => name === 'BEARER_TOKENS_CSV')?.text
    for (const [tokens, csv] of [
      [[token('two'), token('one')], `${token('one')},${token('two')}`],
      [[token('two')], token('two')],
    ] as const) {
      set({ ...applied, bearer_tokens: tokens })
      expect(changedPaths(await plan())).toEqual(['cloudflare_workers_script.witness.bindings.2.text'])
      await apply()
      expect(held()).toBe(csv)
    }
  })

  test('in another order are no change', async () => {
    const { set, plan, apply } = await workspace()
    set({ bearer_tokens: [token('one'), token('two')] })
    await apply()
    set({ bearer_tokens: [token('two'), token('one')] })
    expect(changedPaths(await plan())).toEqual([])
  })

  test('may have 32 characters, and any visible one of ASCII but the comma', async () => {
    const { account, set, apply } = await workspace()
    const every = Array.from({ length: 94 }, (_, n) => String.fromCharCode(33 + n))
      .join('')
      .replace(',', '')
    set({ bearer_tokens: [token('one').slice(0, 32), every] })
    await apply()
    const held = account.script('lease-witness').bindings.find(({ name }) => name === 'BEARER_TOKENS_CSV')?.text
    expect(String(held).split(',').toSorted()).toEqual([token('one').slice(0, 32), every].toSorted())
  })

  test('are a sensitive variable', async () => {
    const { plan } = await workspace()
    expect((await plan()).configuration.root_module.variables.bearer_tokens?.sensitive).toBe(true)
  })

  test.each([
    ['none', [], 'bearer_tokens is empty: the witness would reject all requests. Add a token.'],
    ['one that is short', [token('one'), token('one').slice(0, 31)], 'at least 32 characters'],
    ['one with a comma', [`${token('one')},${token('two')}`], 'without commas'],
    ['one with a space', [`${token('one')} `], 'no white space'],
    ['one with a line end', [`${token('one')}\n`], 'no white space'],
    ['one with a control character', [`${token('one')}\u0007`], 'no control character'],
    ['one that is not ASCII', [`${token('one')}é`], 'visible ASCII'],
    ['too many', Array.from({ length: 200 }, (_, n) => token(String(n))), 'at most 5120 characters'],
  ])('%s: refused, and the file that it stands in is not quoted', async (_, tokens, why) => {
    const { account, directory, set, terraform } = await workspace()
    set({ bearer_tokens: tokens })
    const fromFile = await terraform('apply', '-auto-approve', '-no-color')
    // One line, which an error about it would quote whole.
    writeFileSync(join(directory, 'z.auto.tfvars'), `bearer_tokens = ${JSON.stringify(tokens)}\n`)
    const fromLine = await terraform('apply', '-auto-approve', '-no-color')
    for (const { code, output } of [fromFile, fromLine]) {
      expect(code, output).toBe(1)
      expect(flat(output)).toContain(why)
    }
    expect(account.namespaces.size + account.scripts.size).toBe(0)
  })

  test.each([
    ['one that is short', JSON.stringify([mark]), 'at least 32 characters'],
    ['a text that is no list', JSON.stringify(mark), 'set of string required'],
    ['a text that is nothing', `[${mark}`, 'Error'],
  ])('%s: refused from the environment, and not quoted', async (_, text, why) => {
    const { environment, set, terraform } = await workspace()
    set({ bearer_tokens: undefined })
    environment.TF_VAR_bearer_tokens = text
    const { code, output } = await terraform('plan', '-no-color')
    expect(code, output).toBe(1)
    expect(flat(output)).toContain(why)
  })
})
