import type { Attributes } from './value.ts'

/** The id of an import, `one/two`, as the attributes that it says. */
export const partsOf = (id: string, ...names: readonly string[]): Attributes => {
  const parts = id.split('/')
  return Object.fromEntries(names.map((name, index) => [name, parts[index] ?? null]))
}
