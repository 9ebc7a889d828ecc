export interface ShellBlock {
  /** The line of the fence, from 1. */
  readonly line: number
  /** What a test lacks to run the block, from `needs=` after the language; undefined: a test runs it. */
  readonly needs: string | undefined
  readonly code: string
}

/** The blocks of shell commands of a Markdown page, also those that are indented in a list. */
export const parseShellBlocks = (page: string): readonly ShellBlock[] =>
  Array.from(
    page.matchAll(/^( *)```(?:sh|bash|shell|console)\b(.*)\n([\s\S]*?)^ *```$/gm),
    ({ index, 1: indent = '', 2: info = '', 3: code = '' }) => ({
      line: page.slice(0, index).split('\n').length,
      needs: /\bneeds=([\w-]+)/.exec(info)?.[1],
      code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }),
  )
