import { expect, test } from 'vitest'
import { readProvider } from './registry.ts'

test.each([
  [{}, 'local'],
  [{ DNSPROVIDER_KIND: ' LOCAL ' }, 'local'],
  [{ DNSPROVIDER_KIND: '', DNSPROVIDER_LOCAL_PORT: '5300' }, 'local'],
])('%j chooses %s', (env, kind) => {
  expect(readProvider(env)).toMatchObject({ provider: { kind } })
})

test.each<readonly [env: Record<string, string>, variables: string[]]>([
  [{ DNSPROVIDER_KIND: 'constructor' }, ['DNSPROVIDER_KIND']],
  [{ DNSPROVIDER_KIND: 'route53' }, ['DNSPROVIDER_KIND']],
  [{ DNSPROVIDER_LOCAL_PORT: '-1' }, ['DNSPROVIDER_LOCAL_PORT']],
  [{ DNSPROVIDER_KIND: 'x', DNSPROVIDER_LOCAL_PORT: 'x' }, ['DNSPROVIDER_KIND', 'DNSPROVIDER_LOCAL_PORT']],
])('%j is refused, by variable and in words', (env, variables) => {
  const read = readProvider(env)
  const faults = 'faults' in read ? read.faults : []
  expect(faults.map(({ variable }) => variable)).toEqual(variables)
  for (const { detail } of faults) expect(detail).toMatch(/^must /)
})
