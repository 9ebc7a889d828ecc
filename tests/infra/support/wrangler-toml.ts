type Scalar = string | boolean | number
export type TomlTable = { [key: string]: Scalar | Scalar[] | TomlTable | TomlTable[] }

/**
 * The subset of TOML in wrangler.toml: tables, arrays of tables, and one-line values that are valid JSON. Anything else is
 * an error.
 */
export function parseToml(text: string): TomlTable {
  const root: TomlTable = {}
  let table = root
  for (const [index, line] of text.split('\n').entries()) {
    const text = line.trim()
    if (text === '' || text.startsWith('#')) continue
    const arrayName = /^\[\[([\w.]+)\]\]$/.exec(text)?.[1]
    const tableName = /^\[([\w.]+)\]$/.exec(text)?.[1]
    const pair = /^(\w+)\s*=\s*(.+?)(\s+#[^"]*)?$/.exec(text)
    if (arrayName) table = append(root, arrayName.split('.'))
    else if (tableName) table = descend(root, tableName.split('.'))
    else if (pair?.[1] && pair[2]) table[pair[1]] = readValue(pair[2], index + 1)
    else throw new Error(`line ${index + 1}: unsupported TOML`)
  }
  return root
}

function readValue(text: string, line: number): Scalar | Scalar[] {
  try {
    return JSON.parse(text) as Scalar | Scalar[]
  } catch {
    throw new Error(`line ${line}: unsupported TOML value`)
  }
}

function descend(table: TomlTable, path: readonly string[]): TomlTable {
  return path.reduce((at, key) => {
    at[key] ??= {}
    const next = at[key]
    if (typeof next !== 'object' || Array.isArray(next)) throw new Error(`${key} is not a table`)
    return next
  }, table)
}

function append(root: TomlTable, path: readonly string[]): TomlTable {
  const parent = descend(root, path.slice(0, -1))
  const key = path.at(-1) ?? ''
  const created: TomlTable = {}
  const existing = parent[key]
  parent[key] = Array.isArray(existing) ? ([...existing, created] as TomlTable[]) : [created]
  return created
}
