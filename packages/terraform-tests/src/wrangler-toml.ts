type Scalar = string | boolean | number
export type Table = { [key: string]: Scalar | Scalar[] | Table | Table[] }

/**
 * The part of TOML that wrangler.toml is written in: tables, arrays of tables, and one-line values that JSON can read.
 * Anything else is an error and not a guess.
 */
export function parseToml(text: string): Table {
  const root: Table = {}
  let table = root
  for (const [index, line] of text.split('\n').entries()) {
    const stated = line.trim()
    if (stated === '' || stated.startsWith('#')) continue
    const many = /^\[\[([\w.]+)\]\]$/.exec(stated)?.[1]
    const one = /^\[([\w.]+)\]$/.exec(stated)?.[1]
    const pair = /^(\w+)\s*=\s*(.+?)(\s+#[^"]*)?$/.exec(stated)
    if (many) table = append(root, many.split('.'))
    else if (one) table = descend(root, one.split('.'))
    else if (pair?.[1] && pair[2]) table[pair[1]] = readValue(pair[2], index + 1)
    else throw new Error(`line ${index + 1} is not of the TOML that is read here`)
  }
  return root
}

function readValue(text: string, line: number): Scalar | Scalar[] {
  try {
    return JSON.parse(text) as Scalar | Scalar[]
  } catch {
    throw new Error(`the value of line ${line} is not of the TOML that is read here`)
  }
}

function descend(table: Table, path: readonly string[]): Table {
  return path.reduce((at, key) => {
    at[key] ??= {}
    const next = at[key]
    if (typeof next !== 'object' || Array.isArray(next)) throw new Error(`${key} is no table`)
    return next
  }, table)
}

function append(root: Table, path: readonly string[]): Table {
  const parent = descend(root, path.slice(0, -1))
  const key = path.at(-1) ?? ''
  const made: Table = {}
  const before = parent[key]
  parent[key] = Array.isArray(before) ? ([...before, made] as Table[]) : [made]
  return made
}
