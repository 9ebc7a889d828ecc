import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { type KubernetesObject, readFile } from './chart.ts'
import type { CheckName } from './checks.ts'

type Json = KubernetesObject['spec']

interface Row {
  readonly title: string
  readonly values?: Json
  readonly both?: Json
  readonly is?: Json
  readonly are?: Json
  readonly without?: readonly CheckName[]
}

const rows: readonly Row[] = parse(readFile(fileURLToPath(new URL('value-table.yaml', import.meta.url))), {
  merge: true,
})

const toValues = ({ values = {}, both = {} }: Row): Json => ({ api: both, witness: both, ...values })

const readPath = (value: Json, [key, ...others]: readonly string[]): Json => {
  if (key === undefined) return value ?? null
  if (key === '*') return Object.values(value ?? []).map(each => readPath(each, others))
  return readPath(key === '-1' ? value?.at(-1) : value?.[key], others)
}

/** What a row expects at its paths, and what the objects have there. */
const compare = ({ is = {}, are = {} }: Row, objects: readonly KubernetesObject[]) =>
  Object.entries<Json>({ ...is, ...are }).map(([at, value]) => {
    const [kind, path = ''] = at.split(' ')
    const found = objects.filter(object => kind === '*' || object.kind === kind)
    return {
      found: found.map(each => readPath(each, path.split('.'))),
      expected: at in are ? value : found.map(() => value),
    }
  })

/** The paths of values that a row sets, each with a final slash. */
const toPaths = (value: Json, path = '/'): string[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.entries(value).flatMap(([key, field]) => toPaths(field, `${path}${key}/`))
    : [path]

const isCompatible = (first: Row, second: Row): boolean =>
  toPaths(toValues(first)).every(path =>
    toPaths(toValues(second)).every(other => !path.startsWith(other) && !other.startsWith(path)),
  )

/** Each row, and each with another one, which is far enough away in the table to be of another kind. */
export const valueCases = [
  ...rows.map(row => [row]),
  ...rows.flatMap((row, index) => {
    const other = rows[(index + 13) % rows.length]
    return other && isCompatible(row, other) ? [[row, other]] : []
  }),
].map(each => ({
  title: each.map(({ title }) => title).join(', and '),
  values: each.map(toValues),
  without: each.flatMap(({ without = [] }) => without),
  compare: (objects: readonly KubernetesObject[]) => each.flatMap(row => compare(row, objects)),
}))
