import { expect, test } from 'vitest'
import { readEnvironment } from './read-environment.ts'

const known = { prefixes: ['APP_'], names: ['APP_PORT', 'APP_SECRET', 'APP_SECRET_FILE'] }
const read = (variables: Record<string, string>) =>
  readEnvironment(variables, { known, secrets: ['APP_SECRET'] }, env => ({
    port: env.integer('APP_PORT', 80, { min: 1, max: 99 }),
    secret: env.required('APP_SECRET', 'a secret'),
  }))
/** The beginning of each issue. */
const toWords = (result: ReturnType<typeof read>): readonly string[] =>
  'issues' in result
    ? result.issues.map(({ variable, detail }) => `${variable} ${detail.split(' ').slice(0, 3).join(' ')}`)
    : []

test.each<readonly [what: string, variables: Record<string, string>, issues: readonly string[]]>([
  ['valid', { APP_SECRET: 's', APP_PORT: '8' }, []],
  ['valid, with a misspelt variable', { APP_SECRET: 's', APP_PROT: '8' }, []],
  ['invalid', { APP_SECRET: 's', APP_PORT: 'x' }, ['APP_PORT must be a']],
  [
    'invalid, with a misspelt variable',
    { APP_SECERT: 's', APP_PORT: 'x' },
    ['APP_PORT must be a', 'APP_SECRET is required: a', 'APP_SECERT is not a'],
  ],
  [
    'a file that cannot be read: the secret is not missing too',
    { APP_SECRET_FILE: '/no/file' },
    ['APP_SECRET_FILE names /no/file, which'],
  ],
])('%s', (_, variables, issues) => {
  const result = read(variables)
  expect(toWords(result)).toEqual(issues)
  expect('config' in result).toBe(issues.length === 0)
})

test('a caller that returns null has added an issue', () => {
  const { issues } = readEnvironment({}, { known, secrets: [] }, env => {
    env.addIssue('APP_PORT', 'is wrong')
    return null
  }) as { issues: unknown }
  expect(issues).toEqual([{ variable: 'APP_PORT', detail: 'is wrong' }])
})
