import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changedPaths, collapseWhitespace, readState, SECRET_MARK } from './support/module-fixture.ts'
import { isTofu, withTerraform } from './support/terraform.ts'
import { createWitnessFixture, hashToken, token, type WitnessFixture } from './support/witness-fixture.ts'

const readSecret = ({ account }: WitnessFixture, secret: string): string | undefined => {
  const { bindings } = account.script('lease-witness')
  const found = bindings.find(({ name, type }) => name === secret && type === 'secret_text')
  return found && String(found.text)
}

const policy = (name: string) => ({ token: hashToken(token(name)), access: 'write' })

// The fixture searches the output of every command for the mark, which every token contains.
withTerraform('token policies', () => {
  test('are a secret of the script, and neither the account nor the state contains a token', async () => {
    const fixture = await createWitnessFixture()
    fixture.set({
      token_policies: {
        'region-a': policy('a'),
        'region-b': {
          token: hashToken(token('b')),
          access: 'read',
          slots: ['eu/', 'db/'],
          holders: ['node-*', 'batch'],
          expires_at: '2027-01-31T00:00:00Z',
          max_requests_per_minute: 120,
        },
      },
    })
    await fixture.apply()
    expect(JSON.parse(readSecret(fixture, 'TOKEN_POLICIES') ?? '')).toEqual([
      { name: 'region-a', token: hashToken(token('a')), access: 'write' },
      {
        name: 'region-b',
        token: hashToken(token('b')),
        access: 'read',
        slots: ['db/', 'eu/'],
        holders: ['batch', 'node-*'],
        expiresAt: '2027-01-31T00:00:00Z',
        maxRequestsPerMinute: 120,
      },
    ])
    expect(readSecret(fixture, 'BEARER_TOKENS_CSV')).toBe(undefined)
    expect(readState(fixture.directory)).not.toContain(SECRET_MARK)
  })

  test('are rotated by two applies that change one binding each', async () => {
    const fixture = await createWitnessFixture()
    await fixture.apply()
    await fixture.apply()
    for (const policies of [{ one: policy('one'), two: policy('two') }, { two: policy('two') }]) {
      fixture.set({ token_policies: policies })
      expect(changedPaths(await fixture.plan())).toEqual(['cloudflare_workers_script.witness.bindings.2.text'])
      await fixture.apply()
      const names = (JSON.parse(readSecret(fixture, 'TOKEN_POLICIES') ?? '') as { name: string }[]).map(
        ({ name }) => name,
      )
      expect(names).toEqual(Object.keys(policies))
    }
  })

  test('in another order cause no change', async () => {
    const { set, plan, apply } = await createWitnessFixture()
    const slots = { one: { ...policy('one'), slots: ['a/', 'b/'] }, two: policy('two') }
    set({ token_policies: slots })
    await apply()
    await apply()
    set({ token_policies: { two: policy('two'), one: { ...policy('one'), slots: ['b/', 'a/'] } } })
    expect(changedPaths(await plan())).toEqual([])
  })

  const token64 = `${SECRET_MARK}${'0'.repeat(54)}`
  test.each([
    ['a token', token('one'), 'never the token'],
    ['a token of 64 digits', token64, 'never the token'],
    ['a token after the prefix', `sha256:${token64}`, 'never the token'],
    ['a hash in upper case', hashToken('one').toUpperCase(), '64 lower-case hexadecimal digits'],
  ])('%s instead of a hash: rejected without quoting it', async (_, text, expectedError) => {
    const { account, directory, set, terraform } = await createWitnessFixture()
    const token_policies = { one: { token: text, access: 'write' } }
    set({ token_policies })
    const fromJson = await terraform('apply', '-auto-approve', '-no-color')
    writeFileSync(join(directory, 'z.auto.tfvars'), `token_policies = ${JSON.stringify(token_policies)}\n`)
    const fromHcl = await terraform('apply', '-auto-approve', '-no-color')
    for (const { code, output } of [fromJson, fromHcl]) {
      expect(code, output).toBe(1)
      expect(collapseWhitespace(output)).toContain(expectedError)
    }
    expect(account.namespaces.size + account.scripts.size).toBe(0)
  })

  test.each([
    ['none', {}, 'the witness would reject all requests'],
    ['beside a secret of a store', { one: policy('one') }, 'exclude each other'],
    ['two with one token', { one: policy('one'), two: policy('one') }, 'have the same token'],
    [
      'too many',
      Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`region-${n}`, policy(String(n))])),
      'at most 5120 characters',
    ],
  ])('%s: rejected with the reason, and nothing is created', async (_, token_policies, expectedError) => {
    const { account, set, terraform } = await createWitnessFixture()
    const token_policies_secret = { store_id: '5ec5'.repeat(8), secret_name: 'policies' }
    set({ token_policies, ...(expectedError === 'exclude each other' && { token_policies_secret }) })
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(collapseWhitespace(output)).toContain(expectedError)
    expect(account.namespaces.size + account.scripts.size).toBe(0)
  })

  test.each([
    ['name', 'sha256:0', {}, ['names of token_policies']],
    ['field', 'one', { access: undefined }, ['attribute "access" is required']],
    [
      'value',
      'one',
      { access: 'all', slots: [''], holders: ['a '], expires_at: '2027-01-31', max_requests_per_minute: 0.5 },
      [
        'must be "read" or "write"',
        'prefixes of 1 to 506',
        'names of holders',
        'a time with an offset',
        'a whole number from 1',
      ],
    ],
    ['list', 'one', { slots: [], holders: [] }, ['Omit slots for all slots', 'Omit holders for all holders']],
    ['null', 'one', { access: null, slots: [null] }, ['must be "read" or "write"', 'prefixes of 1 to 506']],
  ])('with an invalid %s are rejected with the reason', async (_, name, fields, expectedErrors) => {
    const { set, terraform } = await createWitnessFixture()
    set({ token_policies: { [name]: { ...policy('one'), ...fields } } })
    const { code, output } = await terraform('plan', '-no-color')
    expect(code, output).toBe(1)
    // OpenTofu reports the first one only.
    const reported = isTofu ? expectedErrors.slice(0, 1) : expectedErrors
    expect(collapseWhitespace(output)).toMatch(new RegExp(reported.join('.*')))
  })

  test('of the number in the documentation fit', async () => {
    const { set, apply } = await createWitnessFixture()
    const restrict = (n: number) => ({ ...policy(String(n)), slots: ['eu/'], holders: [`region-${n}-*`] })
    const policies = Array.from({ length: 30 }, (_, n) => [`region-${n}`, restrict(n)])
    set({ token_policies: Object.fromEntries(policies) })
    await apply()
  })
})

withTerraform('bearer tokens', () => {
  const onlyTokens = (...bearer_tokens: string[]) => ({ token_policies: {}, bearer_tokens })

  test('are in the uploaded binding and in the state, and in no output', async () => {
    const fixture = await createWitnessFixture()
    fixture.set(onlyTokens(token('one')))
    await fixture.apply()
    expect(readSecret(fixture, 'BEARER_TOKENS_CSV')).toBe(token('one'))
    expect(readSecret(fixture, 'TOKEN_POLICIES')).toBe(undefined)
    await fixture.terraform('show')
    await fixture.terraform('output')
    expect(JSON.stringify(await fixture.outputs())).not.toContain(SECRET_MARK)
    // In plain text, as the description of the variable warns.
    expect(readState(fixture.directory)).toContain(token('one'))
  })

  test('are rotated by two applies that change one binding each', async () => {
    const fixture = await createWitnessFixture()
    fixture.set(onlyTokens(token('one')))
    await fixture.apply()
    await fixture.apply()
    for (const tokens of [[token('one'), token('two')], [token('two')]]) {
      fixture.set(onlyTokens(...tokens.toReversed()))
      expect(changedPaths(await fixture.plan())).toEqual(['cloudflare_workers_script.witness.bindings.2.text'])
      await fixture.apply()
      expect(readSecret(fixture, 'BEARER_TOKENS_CSV')).toBe(tokens.join(','))
    }
  })

  test('in another order cause no change', async () => {
    const { set, plan, apply } = await createWitnessFixture()
    set(onlyTokens(token('one'), token('two')))
    await apply()
    await apply()
    set(onlyTokens(token('two'), token('one')))
    expect(changedPaths(await plan())).toEqual([])
  })

  test('may have 32 characters, and any visible ASCII character except the comma', async () => {
    const fixture = await createWitnessFixture()
    const allCharacters = Array.from({ length: 94 }, (_, n) => String.fromCharCode(33 + n))
      .join('')
      .replace(',', '')
    fixture.set(onlyTokens(token('one').slice(0, 32), allCharacters))
    await fixture.apply()
    const uploaded = readSecret(fixture, 'BEARER_TOKENS_CSV')
    expect(uploaded?.split(',').toSorted()).toEqual([token('one').slice(0, 32), allCharacters].toSorted())
  })

  test('move to policies in two applies, and the state then contains none', async () => {
    const fixture = await createWitnessFixture()
    const token_policies = { one: policy('one') }
    fixture.set({ ...onlyTokens(token('one')), token_policies })
    await fixture.apply()
    expect(readSecret(fixture, 'BEARER_TOKENS_CSV')).toBe(token('one'))
    expect(readSecret(fixture, 'TOKEN_POLICIES')).toContain(hashToken(token('one')))
    expect(readState(fixture.directory)).toContain(token('one'))
    fixture.set({ token_policies })
    await fixture.apply()
    expect(readSecret(fixture, 'BEARER_TOKENS_CSV')).toBe(undefined)
    expect(readState(fixture.directory)).not.toContain(token('one'))
    expect(changedPaths(await fixture.plan())).toEqual([])
  })

  test('are a sensitive variable', async () => {
    const { plan } = await createWitnessFixture()
    expect((await plan()).configuration.root_module.variables.bearer_tokens?.sensitive).toBe(true)
  })

  test.each([
    ['a short one', [token('one'), token('one').slice(0, 31)], 'at least 32 characters'],
    ['one with a comma', [`${token('one')},${token('two')}`], 'without commas'],
    ['one with a space', [`${token('one')} `], 'no white space'],
    ['one with a newline', [`${token('one')}\n`], 'no white space'],
    ['one with a control character', [`${token('one')}\u0007`], 'no control character'],
    ['one with a character outside ASCII', [`${token('one')}é`], 'visible ASCII'],
    ['too many', Array.from({ length: 200 }, (_, n) => token(String(n))), 'at most 5120 characters'],
  ])('%s: rejected without quoting the file', async (_, tokens, expectedError) => {
    const { account, directory, set, terraform } = await createWitnessFixture()
    set(onlyTokens(...tokens))
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
