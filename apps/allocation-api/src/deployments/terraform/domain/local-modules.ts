/** A call of another module by a relative path, which Terraform resolves from the directory of the calling file. */
export interface LocalModuleCall {
  /** Name of the file with the call. */
  readonly file: string
  readonly source: string
}

/**
 * A string and a heredoc are one token each. A template that contains strings is several tokens, whose braces match unless one
 * of these strings has a single brace; then later calls are missed, and Terraform reports them.
 */
const TOKEN = /(?:#|\/\/).*|\/\*[\s\S]*?\*\/|<<-?(\w+)\r?\n[\s\S]*?\n[ \t]*\1\b|"(?:[^"\\]|\\.)*"|[\w-]+|\S/g
const COMMENT = /^(?:#|\/[/*])/

/** Only a literal says where the module is. */
const LOCAL_SOURCE = /^\.\.?\/[^$%\\]*$/

const findInBlocks = (text: string): readonly string[] => {
  const tokens = (text.match(TOKEN) ?? []).filter(token => !COMMENT.test(token))
  const sources: string[] = []
  let depth = 0
  let isModule = false
  for (const [index, token] of tokens.entries()) {
    if (token === '{') {
      if (depth === 0) isModule = tokens[index - 2] === 'module'
      depth += 1
    } else if (token === '}') {
      depth -= 1
    } else if (token === 'source' && depth === 1 && isModule && tokens[index + 1] === '=') {
      sources.push(tokens[index + 2]?.replace(/^"(.*)"$/, '$1') ?? '')
    }
  }
  return sources
}

/** In the JSON syntax, each block is an object or a list of objects. */
const toBlocks = (value: unknown): readonly object[] =>
  Array.isArray(value) ? value.flatMap(toBlocks) : typeof value === 'object' && value !== null ? [value] : []

const findInJson = (text: string): readonly string[] => {
  const parse = (): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      return null
    }
  }
  return toBlocks(parse())
    .flatMap(root => toBlocks('module' in root ? root.module : null))
    .flatMap(modules => Object.values(modules).flatMap(toBlocks))
    .flatMap(call => ('source' in call && typeof call.source === 'string' ? [call.source] : []))
}

/** A file that Terraform and OpenTofu both read: of `a.tf` and `a.tofu`, OpenTofu reads the latter only. */
const isReadByBoth = (name: string, names: ReadonlySet<string>): boolean =>
  /\.tf(?:\.json)?$/.test(name) && !names.has(name.replace(/\.tf(?=\.json$|$)/, '.tofu'))

const isOverride = (name: string): boolean => /(?:^|_)override\.(?:tf|tofu)(?:\.json)?$/.test(name)

/**
 * The calls by a relative path in the files of one directory, by name and text. It returns none where a call can be missed or
 * replaced: in files that only one of Terraform and OpenTofu reads, and in a directory with override files.
 */
export const findLocalModuleCalls = (files: ReadonlyMap<string, string>): readonly LocalModuleCall[] => {
  const names = new Set(files.keys())
  if ([...names].some(isOverride)) return []
  return [...files].flatMap(([file, text]) => {
    if (!isReadByBoth(file, names)) return []
    const sources = file.endsWith('.json') ? findInJson(text) : findInBlocks(text)
    return sources.filter(source => LOCAL_SOURCE.test(source)).map(source => ({ file, source }))
  })
}
